/* The copies of blocks of two and three dimensions, and CUDA arrays. A CUDA array is memory of this process that no
   kernel accesses, because the simulator does not support textures. */
#include "../graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { ARRAY = 0xA99A7000, DEAD = 0xDEAD0000, HOST = 1, DEVICE = 2, OF_ARRAY = 3, UNIFIED = 4 };

/* The driver's name is CUDA_ARRAY3D_DESCRIPTOR. The descriptor for two dimensions has no depth and no flags. */
struct descriptor {
    size_t width, height, depth;
    unsigned format, channels, flags;
};

struct flat_descriptor {
    size_t width, height;
    unsigned format, channels;
};

struct array {
    uint32_t magic;
    struct descriptor descriptor;
    size_t row_bytes, rows, layers;
    unsigned char *bytes;
};

static const struct array *given_array(const void *handle) {
    const struct array *array = handle;
    return kind_of(array) == ARRAY ? array : NULL;
}

static size_t most(size_t a) {
    return a > 0 ? a : 1;
}

/* Return the bytes of one channel, or 0 for a format with blocks of pixels. */
static size_t format_bytes(unsigned format) {
    switch (format) {
    case 0x01:
    case 0x08: return 1;
    case 0x02:
    case 0x09:
    case 0x10: return 2;
    case 0x03:
    case 0x0A:
    case 0x20: return 4;
    }
    return 0;
}

CUresult cuArray3DCreate_v2(void **handle, const struct descriptor *given) {
    CHECK(ready_in_context());
    REQUIRE(handle != NULL && given != NULL && given->width > 0, INVALID_VALUE);
    REQUIRE(given->channels == 1 || given->channels == 2 || given->channels == 4, INVALID_VALUE);
    size_t bytes = format_bytes(given->format) * given->channels, height = most(given->height),
           depth = most(given->depth), total;
    if (bytes == 0)
        return absent("cuArray3DCreate of this format");
    REQUIRE(!__builtin_mul_overflow(given->width, bytes, &total) && !__builtin_mul_overflow(total, height, &total) &&
                !__builtin_mul_overflow(total, depth, &total) && total <= the_device()->total_bytes,
            OUT_OF_MEMORY);
    struct array *made = make_handle(sizeof *made);
    unsigned char *memory = made != NULL ? calloc(1, total) : NULL;
    if (memory == NULL) {
        end_handle(made, sizeof *made);
        return OUT_OF_MEMORY;
    }
    *made = (struct array){ARRAY, *given, given->width * bytes, height, depth, memory};
    *handle = made;
    return SUCCESS;
}

CUresult cuArrayCreate_v2(void **handle, const struct flat_descriptor *given) {
    REQUIRE(given != NULL, INVALID_VALUE);
    struct descriptor wide = {given->width, given->height, 0, given->format, given->channels, 0};
    return cuArray3DCreate_v2(handle, &wide);
}

CUresult cuArray3DGetDescriptor_v2(struct descriptor *target, const void *handle) {
    CHECK(ready());
    REQUIRE(given_array(handle) != NULL, INVALID_HANDLE);
    REQUIRE(target != NULL, INVALID_VALUE);
    *target = given_array(handle)->descriptor;
    return SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(struct flat_descriptor *target, const void *handle) {
    struct descriptor found;
    CHECK(cuArray3DGetDescriptor_v2(&found, handle));
    REQUIRE(target != NULL, INVALID_VALUE);
    *target = (struct flat_descriptor){found.width, found.height, found.format, found.channels};
    return SUCCESS;
}

CUresult cuArrayDestroy(void *handle) {
    CHECK(ready());
    REQUIRE(given_array(handle) != NULL, INVALID_HANDLE);
    struct array *array = handle;
    array->magic = DEAD; /* The few bytes are not freed, so that the library still recognizes the handle. */
    free(array->bytes);
    return SUCCESS;
}

/* ---- copies ---- */

/* A struct corner is the start of one side, and the bytes between rows and between layers. */
struct corner {
    unsigned char *start;
    size_t pitch, layer;
};

static CUresult array_corner(const struct side *side, const struct block_copy *copy, struct corner *corner) {
    const struct array *array = given_array(side->array);
    REQUIRE(array != NULL, INVALID_HANDLE);
    REQUIRE(side->x <= array->row_bytes && copy->width <= array->row_bytes - side->x, INVALID_VALUE);
    REQUIRE(side->y <= array->rows && copy->height <= array->rows - side->y, INVALID_VALUE);
    REQUIRE(side->z <= array->layers && copy->depth <= array->layers - side->z, INVALID_VALUE);
    *corner = (struct corner){NULL, array->row_bytes, array->row_bytes * array->rows};
    corner->start = array->bytes + side->z * corner->layer + side->y * corner->pitch + side->x;
    return SUCCESS;
}

static CUresult find_corner(const struct side *side, const struct block_copy *copy, struct corner *corner) {
    CUresult result = SUCCESS;
    if (side->memory_type == OF_ARRAY)
        return array_corner(side, copy, corner);
    REQUIRE(side->memory_type == HOST || side->memory_type == DEVICE || side->memory_type == UNIFIED, INVALID_VALUE);
    size_t pitch = side->pitch ? side->pitch : copy->width, height = side->height ? side->height : copy->height;
    REQUIRE(copy->height == 1 || pitch >= side->x + copy->width, INVALID_VALUE);
    REQUIRE(copy->depth == 1 || height >= side->y + copy->height, INVALID_VALUE);
    uint64_t start = side->memory_type == HOST ? (uint64_t)side->host : side->device;
    start += (side->z * height + side->y) * pitch + side->x;
    size_t size = ((copy->depth - 1) * height + copy->height - 1) * pitch + copy->width;
    *corner = (struct corner){(unsigned char *)start, pitch, pitch * height};
    REQUIRE(start != 0, INVALID_VALUE);
    corner->start = side->memory_type == DEVICE ? readable(start, size, &result) : anywhere(start, size, &result);
    return result;
}

CUresult run_block_copy(const void *data, size_t size) {
    const struct block_copy *copy = data;
    struct corner from, to;
    (void)size;
    CHECK(ready_in_context());
    if (copy->width == 0 || copy->height == 0 || copy->depth == 0)
        return SUCCESS;
    CHECK(find_corner(&copy->source, copy, &from));
    CHECK(find_corner(&copy->target, copy, &to));
    for (size_t z = 0; z < copy->depth; ++z)
        for (size_t y = 0; y < copy->height; ++y)
            memmove(to.start + z * to.layer + y * to.pitch, from.start + z * from.layer + y * from.pitch, copy->width);
    return SUCCESS;
}

CUresult block_copy_later(const struct block_copy *copy, void *stream) {
    REQUIRE(copy != NULL, INVALID_VALUE);
    return now_or_later(stream, COPY_NODE, run_block_copy, copy, sizeof *copy);
}

CUresult cuMemcpy3DAsync_v2(const struct block_copy *copy, void *stream) {
    CHECK(ready_in_context());
    return block_copy_later(copy, stream);
}

CUresult cuMemcpy3D_v2(const struct block_copy *copy) {
    return cuMemcpy3DAsync_v2(copy, NULL);
}

struct flat_side {
    size_t x, y;
    unsigned memory_type;
    const void *host;
    CUdeviceptr device;
    void *array;
    size_t pitch;
};

struct flat_copy { /* The driver's name of the structure is CUDA_MEMCPY2D. */
    struct flat_side source, target;
    size_t width, height;
};

static struct side wide_side(const struct flat_side *side) {
    return (struct side){.x = side->x, .y = side->y, .memory_type = side->memory_type, .host = side->host,
                         .device = side->device, .array = side->array, .pitch = side->pitch};
}

CUresult cuMemcpy2DAsync_v2(const struct flat_copy *copy, void *stream) {
    CHECK(ready_in_context());
    REQUIRE(copy != NULL, INVALID_VALUE);
    struct block_copy wide = {wide_side(&copy->source), wide_side(&copy->target), copy->width, copy->height, 1};
    return block_copy_later(&wide, stream);
}

CUresult cuMemcpy2D_v2(const struct flat_copy *copy) {
    return cuMemcpy2DAsync_v2(copy, NULL);
}

CUresult cuMemcpy2DUnaligned_v2(const struct flat_copy *copy) {
    return cuMemcpy2D_v2(copy);
}

/* Copy one row between an array and other memory, at an offset in the bytes of the array. */
static CUresult copy_row(void *handle, size_t offset, uint64_t other, size_t size, unsigned type, int to_array) {
    const struct array *array = given_array(handle);
    CUresult result = SUCCESS;
    CHECK(ready_in_context());
    REQUIRE(array != NULL, INVALID_HANDLE);
    size_t total = array->row_bytes * array->rows * array->layers;
    REQUIRE(offset <= total && size <= total - offset && other != 0, INVALID_VALUE);
    void *there = type == DEVICE ? readable(other, size, &result) : anywhere(other, size, &result);
    CHECK(result);
    memmove(to_array ? array->bytes + offset : there, to_array ? there : array->bytes + offset, size);
    return SUCCESS;
}

CUresult cuMemcpyHtoA_v2(void *array, size_t offset, const void *source, size_t size) {
    return copy_row(array, offset, (uint64_t)source, size, HOST, 1);
}

CUresult cuMemcpyAtoH_v2(void *target, void *array, size_t offset, size_t size) {
    return copy_row(array, offset, (uint64_t)target, size, HOST, 0);
}

CUresult cuMemcpyDtoA_v2(void *array, size_t offset, CUdeviceptr source, size_t size) {
    return copy_row(array, offset, source, size, DEVICE, 1);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr target, void *array, size_t offset, size_t size) {
    return copy_row(array, offset, target, size, DEVICE, 0);
}
