/* Copies and fills. */
#include "driver.h"

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

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t size, void *stream) {
    (void)stream;
    return cuMemcpyHtoD_v2(target, source, size);
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t size, void *stream) {
    (void)stream;
    return cuMemcpyDtoH_v2(target, source, size);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t size, void *stream) {
    (void)stream;
    return cuMemcpyDtoD_v2(target, source, size);
}

CUresult cuMemcpyAsync(CUdeviceptr target, CUdeviceptr source, size_t size, void *stream) {
    (void)stream;
    return cuMemcpy(target, source, size);
}

/* ---- fills ---- */

static CUresult filled(CUdeviceptr target, size_t pitch, const void *value, size_t size, size_t width, size_t height) {
    CUresult result;
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
            memcpy(to + y * pitch + x * size, value, size);
    return SUCCESS;
}

#define FILL(bits, type)                                                                                           \
    CUresult cuMemsetD##bits##_v2(CUdeviceptr target, type value, size_t count) {                                  \
        return filled(target, 0, &value, sizeof value, count, 1);                                                  \
    }                                                                                                              \
    CUresult cuMemsetD##bits##Async(CUdeviceptr target, type value, size_t count, void *stream) {                  \
        (void)stream;                                                                                              \
        return filled(target, 0, &value, sizeof value, count, 1);                                                  \
    }                                                                                                              \
    CUresult cuMemsetD2D##bits##_v2(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height) {   \
        return filled(target, pitch, &value, sizeof value, width, height);                                         \
    }                                                                                                              \
    CUresult cuMemsetD2D##bits##Async(CUdeviceptr target, size_t pitch, type value, size_t width, size_t height,   \
                                      void *stream) {                                                              \
        (void)stream;                                                                                              \
        return filled(target, pitch, &value, sizeof value, width, height);                                         \
    }
FILL(8, uint8_t)
FILL(16, uint16_t)
FILL(32, uint32_t)
