/* The entries that copy and fill memory. */
#include "../graphs/graphs.h"

#include <string.h>

/* ---- copies ---- */

static CUresult copied(void *target, const void *source, size_t size) {
    memmove(target, source, size);
    return SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void *source, size_t size) {
    CUresult result;
    CHECK(ready_in_context());
    if (size == 0)
        return SUCCESS;
    REQUIRE(source != NULL, INVALID_VALUE);
    void *to = readable(target, size, &result);
    CHECK(result);
    void *from = anywhere((uint64_t)source, size, &result);
    CHECK(result);
    return copied(to, from, size);
}

CUresult cuMemcpyDtoH_v2(void *target, CUdeviceptr source, size_t size) {
    CUresult result;
    CHECK(ready_in_context());
    if (size == 0)
        return SUCCESS;
    REQUIRE(target != NULL, INVALID_VALUE);
    void *from = readable(source, size, &result);
    CHECK(result);
    void *to = anywhere((uint64_t)target, size, &result);
    CHECK(result);
    return copied(to, from, size);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr target, CUdeviceptr source, size_t size) {
    CUresult result;
    CHECK(ready_in_context());
    if (size == 0)
        return SUCCESS;
    void *from = readable(source, size, &result);
    CHECK(result);
    void *to = readable(target, size, &result);
    CHECK(result);
    return copied(to, from, size);
}

CUresult cuMemcpy(CUdeviceptr target, CUdeviceptr source, size_t size) {
    CUresult result;
    CHECK(ready_in_context());
    if (size == 0)
        return SUCCESS;
    REQUIRE(target != 0 && source != 0, INVALID_VALUE);
    void *from = anywhere(source, size, &result);
    CHECK(result);
    void *to = anywhere(target, size, &result);
    CHECK(result);
    return copied(to, from, size);
}

/* The block has one row, which a node of a graph can contain. */
static CUresult row_later(unsigned to, CUdeviceptr target, unsigned from, CUdeviceptr source, size_t size,
                          void *stream) {
    struct block_copy copy = {.width = size, .height = 1, .depth = 1};
    copy.source = (struct side){.memory_type = from, .host = (void *)source, .device = source, .pitch = size};
    copy.target = (struct side){.memory_type = to, .host = (void *)target, .device = target, .pitch = size};
    return block_copy_later(&copy, stream);
}

enum { HOST = 1, DEVICE = 2, ANY = 4 };

#define NOW_OR_ROW(call, to, target, from, source)                                                                  \
    REQUIRE(is_stream(stream), INVALID_HANDLE);                                                                     \
    return is_capturing(stream) ? row_later(to, (CUdeviceptr)target, from, (CUdeviceptr)source, size, stream) : call

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t size, void *stream) {
    NOW_OR_ROW(cuMemcpyHtoD_v2(target, source, size), DEVICE, target, HOST, source);
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t size, void *stream) {
    NOW_OR_ROW(cuMemcpyDtoH_v2(target, source, size), HOST, target, DEVICE, source);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t size, void *stream) {
    NOW_OR_ROW(cuMemcpyDtoD_v2(target, source, size), DEVICE, target, DEVICE, source);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size, void *stream) {
    NOW_OR_ROW(cuMemcpy(target, source, size), ANY, target, ANY, source);
}

/* ---- fills ---- */

CUresult run_fill(const void *data, size_t data_size) {
    const struct fill *fill = data;
    CUdeviceptr target = fill->target;
    size_t pitch = fill->pitch, size = fill->size, width = fill->width, height = fill->height;
    CUresult result;
    (void)data_size;
    CHECK(ready_in_context());
    if (width == 0 || height == 0)
        return SUCCESS;
    REQUIRE(target % size == 0, INVALID_VALUE);
    REQUIRE(width <= SIZE_MAX / size && (height == 1 || (pitch >= width * size && height <= SIZE_MAX / 2 / pitch)),
            INVALID_VALUE);
    unsigned char *to = readable(target, (height - 1) * pitch + width * size, &result);
    CHECK(result);
    for (size_t y = 0; y < height; ++y)
        for (size_t x = 0; x < width; ++x)
            memcpy(to + y * pitch + x * size, fill->value, size);
    return SUCCESS;
}

CUresult fill_later(const struct fill *fill, void *stream) {
    return now_or_later(stream, FILL_NODE, run_fill, fill, sizeof *fill);
}

#define FILL(bits, type)                                                                                         \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height, \
                                      void *stream) {                                                            \
        struct fill fill = {target, pitch, sizeof value, width, height, {0}};                                    \
        memcpy(fill.value, &value, sizeof value);                                                                \
        return fill_later(&fill, stream);                                                                        \
    }                                                                                                            \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height) { \
        return cuMemsetD2D##bits##Async(target, pitch, value, width, height, NULL);                              \
    }                                                                                                            \
    CUresult cuMemsetD##bits##Async(CUdeviceptr target, type value, size_t count, void *stream) {                \
        return cuMemsetD2D##bits##Async(target, 0, value, count, 1, stream);                                     \
    }                                                                                                            \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr target, type value, size_t count) {                                \
        return cuMemsetD2D##bits##Async(target, 0, value, count, 1, NULL);                                       \
    }
FILL(8, uint8_t)
FILL(16, uint16_t)
FILL(32, uint32_t)
