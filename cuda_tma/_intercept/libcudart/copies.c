/* The entries that copy and fill memory. Each operation is complete when its entry returns, unless its stream is being
   captured. */
#include "runtime.h"

enum { TO_HOST_FROM_HOST = 0, TO_DEVICE = 1, TO_HOST = 2, ON_DEVICE = 3, BY_ADDRESS = 4 };

static cudaError copy(void *target, const void *source, size_t size, int direction) {
    CUdeviceptr to = (CUdeviceptr)target, from = (CUdeviceptr)source;
    REQUIRE(size == 0 || (target != NULL && source != NULL), INVALID_VALUE);
    switch (direction) {
    case TO_DEVICE: return cuMemcpyHtoD_v2(to, source, size);
    case TO_HOST: return cuMemcpyDtoH_v2(target, from, size);
    case ON_DEVICE: return cuMemcpyDtoD_v2(to, from, size);
    case TO_HOST_FROM_HOST:
    case BY_ADDRESS: return cuMemcpy(to, from, size);
    }
    return INVALID_DIRECTION;
}

struct rows { /* The struct rows is a copy of one row or several rows. */
    void *target;
    const void *source;
    size_t target_pitch, source_pitch, width, height;
    int direction;
};

static CUresult copy_rows(const void *data, size_t size) {
    const struct rows *rows = data;
    (void)size;
    for (size_t y = 0; y < rows->height; ++y)
        CHECK(copy((char *)rows->target + y * rows->target_pitch, (const char *)rows->source + y * rows->source_pitch,
                   rows->width, rows->direction));
    return SUCCESS;
}

/* In a stream that is being captured, the copy becomes a node of the graph. */
static CUresult rows_later(const struct rows *rows, void *stream) {
    static const unsigned host = 1, device = 2, any = 4;
    if (!is_capturing(stream))
        return copy_rows(rows, sizeof *rows);
    REQUIRE(rows->direction >= TO_HOST_FROM_HOST && rows->direction <= BY_ADDRESS, INVALID_DIRECTION);
    unsigned from = rows->direction == BY_ADDRESS ? any : rows->direction & 2 ? device : host;
    unsigned to = rows->direction == BY_ADDRESS ? any : rows->direction & 1 ? device : host;
    struct block_copy copy = {.width = rows->width, .height = rows->height, .depth = 1};
    copy.source = (struct side){
        .memory_type = from, .host = rows->source, .device = (CUdeviceptr)rows->source, .pitch = rows->source_pitch};
    copy.target = (struct side){
        .memory_type = to, .host = rows->target, .device = (CUdeviceptr)rows->target, .pitch = rows->target_pitch};
    return block_copy_later(&copy, stream);
}

cudaError cudaMemcpyAsync(void *target, const void *source, size_t size, int direction, void *stream) {
    struct rows rows = {target, source, size, size, size, 1, direction};
    RUN(rows_later(&rows, stream));
}
ALSO(cudaMemcpyAsync, cudaMemcpyAsync_ptsz)

cudaError cudaMemcpy(void *target, const void *source, size_t size, int direction) {
    return cudaMemcpyAsync(target, source, size, direction, NULL);
}
ALSO(cudaMemcpy, cudaMemcpy_ptds)

cudaError cudaMemcpyPeerAsync(void *target, int target_device, const void *source, int source_device, size_t size,
                              void *stream) {
    REQUIRE(target_device == 0 && source_device == 0, finish(INVALID_DEVICE));
    return cudaMemcpyAsync(target, source, size, ON_DEVICE, stream);
}

cudaError cudaMemcpyPeer(void *target, int target_device, const void *source, int source_device, size_t size) {
    return cudaMemcpyPeerAsync(target, target_device, source, source_device, size, NULL);
}

cudaError cudaMemcpy2DAsync(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                            size_t height, int direction, void *stream) {
    enum { INVALID_PITCH = 12 };
    REQUIRE(height < 2 || (width <= target_pitch && width <= source_pitch), finish(INVALID_PITCH));
    struct rows rows = {target, source, target_pitch, source_pitch, width, height, direction};
    RUN(rows_later(&rows, stream));
}
ALSO(cudaMemcpy2DAsync, cudaMemcpy2DAsync_ptsz)

cudaError cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                       size_t height, int direction) {
    return cudaMemcpy2DAsync(target, target_pitch, source, source_pitch, width, height, direction, NULL);
}
ALSO(cudaMemcpy2D, cudaMemcpy2D_ptds)

cudaError cudaMemsetAsync(void *target, int value, size_t size, void *stream) {
    RUN(cuMemsetD8Async((CUdeviceptr)target, value, size, stream));
}
ALSO(cudaMemsetAsync, cudaMemsetAsync_ptsz)

cudaError cudaMemset(void *target, int value, size_t size) {
    return cudaMemsetAsync(target, value, size, NULL);
}
ALSO(cudaMemset, cudaMemset_ptds)

cudaError cudaMemset2DAsync(void *target, size_t pitch, int value, size_t width, size_t height, void *stream) {
    RUN(cuMemsetD2D8Async((CUdeviceptr)target, pitch, value, width, height, stream));
}
ALSO(cudaMemset2DAsync, cudaMemset2DAsync_ptsz)

cudaError cudaMemset2D(void *target, size_t pitch, int value, size_t width, size_t height) {
    return cudaMemset2DAsync(target, pitch, value, width, height, NULL);
}
ALSO(cudaMemset2D, cudaMemset2D_ptds)
