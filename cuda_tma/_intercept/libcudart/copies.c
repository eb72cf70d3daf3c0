/* Copies and fills. Each is complete when its entry returns. */
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

cudaError cudaMemcpy(void *target, const void *source, size_t size, int direction) {
    RUN(copy(target, source, size, direction));
}
ALSO(cudaMemcpy, cudaMemcpy_ptds)
ALSO(cudaMemcpy, cudaMemcpyAsync)
ALSO(cudaMemcpy, cudaMemcpyAsync_ptsz)

cudaError cudaMemcpyPeer(void *target, int target_device, const void *source, int source_device, size_t size) {
    REQUIRE(target_device == 0 && source_device == 0, finish(INVALID_DEVICE));
    RUN(copy(target, source, size, ON_DEVICE));
}
ALSO(cudaMemcpyPeer, cudaMemcpyPeerAsync)

static cudaError copy_rows(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                           size_t height, int direction) {
    enum { INVALID_PITCH = 12 };
    REQUIRE(height < 2 || (width <= target_pitch && width <= source_pitch), INVALID_PITCH);
    for (size_t y = 0; y < height; ++y)
        CHECK(copy((char *)target + y * target_pitch, (const char *)source + y * source_pitch, width, direction));
    return SUCCESS;
}

cudaError cudaMemcpy2D(void *target, size_t target_pitch, const void *source, size_t source_pitch, size_t width,
                       size_t height, int direction) {
    RUN(copy_rows(target, target_pitch, source, source_pitch, width, height, direction));
}
ALSO(cudaMemcpy2D, cudaMemcpy2D_ptds)
ALSO(cudaMemcpy2D, cudaMemcpy2DAsync)
ALSO(cudaMemcpy2D, cudaMemcpy2DAsync_ptsz)

static cudaError fill(void *target, int value, size_t size) {
    return size == 0 ? SUCCESS : cuMemsetD8_v2((CUdeviceptr)target, value, size);
}

cudaError cudaMemset(void *target, int value, size_t size) {
    RUN(fill(target, value, size));
}
ALSO(cudaMemset, cudaMemset_ptds)
ALSO(cudaMemset, cudaMemsetAsync)
ALSO(cudaMemset, cudaMemsetAsync_ptsz)

cudaError cudaMemset2D(void *target, size_t pitch, int value, size_t width, size_t height) {
    RUN(cuMemsetD2D8_v2((CUdeviceptr)target, pitch, value, width, height));
}
ALSO(cudaMemset2D, cudaMemset2D_ptds)
ALSO(cudaMemset2D, cudaMemset2DAsync)
ALSO(cudaMemset2D, cudaMemset2DAsync_ptsz)
