/* The entries for CUDA arrays, and for copies and fills of three dimensions. */
#include "runtime.h"

/* The struct channels is cudaChannelFormatDesc, with the bits of each channel and the kind of the channels. */
struct channels {
    int x, y, z, w, kind;
};

struct extent { /* The width is in elements if one side is an array, and otherwise in bytes. */
    size_t width, height, depth;
};

struct position {
    size_t x, y, z;
};

struct pitched { /* The runtime's name of the structure is cudaPitchedPtr. */
    void *address;
    size_t pitch, width, height;
};

struct descriptor { /* The driver's name of the structure is CUDA_ARRAY3D_DESCRIPTOR. */
    size_t width, height, depth;
    unsigned format, channels, flags;
};

struct part { /* The struct part is a field of cudaMemcpy3DParms. */
    void *array;
    struct position position;
    struct pitched pitched;
};

struct parts {
    struct part source, target;
    struct extent extent;
    int direction;
};

CUresult cuArray3DCreate_v2(void **array, const struct descriptor *given);
CUresult cuArray3DGetDescriptor_v2(struct descriptor *target, const void *array);
CUresult cuArrayDestroy(void *array);
CUresult cuThreadExchangeStreamCaptureMode(int *mode);

enum { HOST = 1, DEVICE = 2, OF_ARRAY = 3, ANY = 4, BY_ADDRESS = 4 };

struct channels cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
    return (struct channels){x, y, z, w, kind};
}

/* Return the CUarray_format for the kind of channels and their bits. */
static unsigned format_of(const struct channels *channels) {
    enum { SIGNED = 0, UNSIGNED = 1, FLOAT = 2 };
    unsigned size = channels->x == 8 ? 0 : channels->x == 16 ? 1 : channels->x == 32 ? 2 : 3;
    if (size == 3)
        return 0;
    switch (channels->kind) {
    case SIGNED: return 0x08 + size;
    case UNSIGNED: return 0x01 + size;
    case FLOAT: return size == 1 ? 0x10 : size == 2 ? 0x20 : 0;
    }
    return 0;
}

static cudaError make(void **array, const struct channels *channels, struct extent extent, unsigned flags) {
    REQUIRE(array != NULL && channels != NULL, INVALID_VALUE);
    unsigned count = (channels->x > 0) + (channels->y > 0) + (channels->z > 0) + (channels->w > 0);
    struct descriptor descriptor = {extent.width, extent.height, extent.depth, format_of(channels), count, flags};
    return cuArray3DCreate_v2(array, &descriptor);
}

ENTRY(cudaMallocArray, (void **array, const struct channels *channels, size_t width, size_t height, unsigned flags),
      make(array, channels, (struct extent){width, height, 0}, flags))
ENTRY(cudaMalloc3DArray, (void **array, const struct channels *channels, struct extent extent, unsigned flags),
      make(array, channels, extent, flags))
ENTRY(cudaFreeArray, (void *array), array == NULL ? SUCCESS : cuArrayDestroy(array))
ENTRY(cudaThreadExchangeStreamCaptureMode, (int *mode), cuThreadExchangeStreamCaptureMode(mode))

static unsigned bits_of(unsigned format) {
    return format == 0x01 || format == 0x08 ? 8 : format == 0x02 || format == 0x09 || format == 0x10 ? 16 : 32;
}

static cudaError describe(struct channels *channels, struct extent *extent, unsigned *flags, void *array) {
    struct descriptor found;
    CHECK(cuArray3DGetDescriptor_v2(&found, array));
    int bits = bits_of(found.format), kind = found.format >= 0x10 ? 2 : found.format < 0x08;
    if (channels != NULL)
        *channels = (struct channels){bits, found.channels > 1 ? bits : 0, found.channels > 2 ? bits : 0,
                                      found.channels > 3 ? bits : 0, kind};
    if (extent != NULL)
        *extent = (struct extent){found.width, found.height, found.depth};
    if (flags != NULL)
        *flags = found.flags;
    return SUCCESS;
}

ENTRY(cudaArrayGetInfo, (struct channels *channels, struct extent *extent, unsigned *flags, void *array),
      describe(channels, extent, flags, array))
ENTRY(cudaGetChannelDesc, (struct channels *channels, void *array), describe(channels, NULL, NULL, array))

/* ---- copies ---- */

static size_t element_bytes(const void *array) {
    struct descriptor found;
    return array != NULL && cuArray3DGetDescriptor_v2(&found, array) == SUCCESS
               ? (size_t)bits_of(found.format) / 8 * found.channels
               : 1;
}

static struct side side_of(const struct part *part, unsigned memory_type, size_t element) {
    return (struct side){.x = part->position.x * (part->array != NULL ? element : 1), .y = part->position.y,
                         .z = part->position.z, .memory_type = part->array != NULL ? OF_ARRAY : memory_type,
                         .host = part->pitched.address, .device = (CUdeviceptr)part->pitched.address,
                         .array = part->array, .pitch = part->pitched.pitch, .height = part->pitched.height};
}

static cudaError copy(const struct parts *given, void *stream) {
    REQUIRE(given != NULL, INVALID_VALUE);
    REQUIRE(given->direction >= 0 && given->direction <= BY_ADDRESS, INVALID_DIRECTION);
    unsigned from = given->direction == BY_ADDRESS ? ANY : given->direction & 2 ? DEVICE : HOST;
    unsigned to = given->direction == BY_ADDRESS ? ANY : given->direction & 1 ? DEVICE : HOST;
    size_t element = element_bytes(given->source.array != NULL ? given->source.array : given->target.array);
    struct block_copy block = {side_of(&given->source, from, element), side_of(&given->target, to, element),
                               given->extent.width * element, given->extent.height, given->extent.depth};
    return block_copy_later(&block, stream);
}

OF_STREAM(cudaMemcpy3DAsync, (const struct parts *given, void *stream), copy(given, stream))
ENTRY(cudaMemcpy3D, (const struct parts *given), copy(given, NULL))
ALSO(cudaMemcpy3D, cudaMemcpy3D_ptds)

static cudaError add_copy(void **node, void *graph, void *const *before, size_t count, const struct parts *given) {
    CHECK(begin_node(graph, before, count));
    return end_node(node, copy(given, NULL));
}

ENTRY(cudaGraphAddMemcpyNode, (void **node, void *graph, void *const *before, size_t count, const struct parts *given),
      add_copy(node, graph, before, count, given))

/* Copy rows between an array and other memory, from a corner in bytes and rows. */
static cudaError copy_rows(void *array, size_t x, size_t y, const void *other, size_t pitch, size_t width,
                           size_t height, int direction, int to_array, void *stream) {
    REQUIRE(direction >= 0 && direction <= BY_ADDRESS, INVALID_DIRECTION);
    int on_device = to_array ? direction & 2 : direction & 1;
    unsigned type = direction == BY_ADDRESS ? ANY : on_device ? DEVICE : HOST;
    struct side here = {.x = x, .y = y, .memory_type = OF_ARRAY, .array = array};
    struct side there = {.memory_type = type, .host = other, .device = (CUdeviceptr)other, .pitch = pitch};
    struct block_copy block = {to_array ? there : here, to_array ? here : there, width, height, 1};
    return block_copy_later(&block, stream);
}

#define ROWS_TO void *array, size_t x, size_t y, const void *source, size_t pitch, size_t width, size_t height
#define ROWS_FROM void *target, size_t pitch, const void *array, size_t x, size_t y, size_t width, size_t height
OF_STREAM(cudaMemcpy2DToArrayAsync, (ROWS_TO, int direction, void *stream),
          copy_rows(array, x, y, source, pitch, width, height, direction, 1, stream))
ENTRY(cudaMemcpy2DToArray, (ROWS_TO, int direction),
      copy_rows(array, x, y, source, pitch, width, height, direction, 1, NULL))
OF_STREAM(cudaMemcpy2DFromArrayAsync, (ROWS_FROM, int direction, void *stream),
          copy_rows((void *)array, x, y, target, pitch, width, height, direction, 0, stream))
ENTRY(cudaMemcpy2DFromArray, (ROWS_FROM, int direction),
      copy_rows((void *)array, x, y, target, pitch, width, height, direction, 0, NULL))

/* ---- fills ---- */

static cudaError fill(struct pitched target, int value, struct extent extent, void *stream) {
    for (size_t z = 0; z < extent.depth; ++z)
        CHECK(cuMemsetD2D8Async((CUdeviceptr)target.address + z * target.height * target.pitch, target.pitch, value,
                                extent.width, extent.height, stream));
    return SUCCESS;
}

OF_STREAM(cudaMemset3DAsync, (struct pitched target, int value, struct extent extent, void *stream),
          fill(target, value, extent, stream))
ENTRY(cudaMemset3D, (struct pitched target, int value, struct extent extent), fill(target, value, extent, NULL))
