/* The entries for memory, and for queries of addresses. */
#include "runtime.h"

#include <string.h>

struct pitched { /* The runtime's name of the structure is cudaPitchedPtr. */
    void *address;
    size_t pitch, width, height;
};

struct extent { /* The runtime's name of the structure is cudaExtent. */
    size_t width, height, depth;
};

/* An allocation of no bytes has no address. */
static cudaError take(void **address, size_t size, int kind) {
    REQUIRE(address != NULL, INVALID_VALUE);
    *address = NULL;
    return size == 0 ? SUCCESS : allocate((CUdeviceptr *)address, size, kind);
}

cudaError cudaMalloc(void **address, size_t size) {
    RUN(take(address, size, DEVICE_MEMORY));
}

cudaError cudaMallocAsync(void **address, size_t size, void *stream) {
    RUN(is_capturing(stream) ? allocation_later((CUdeviceptr *)address, size, stream) : take(address, size, POOL_MEMORY));
}
ALSO(cudaMallocAsync, cudaMallocAsync_ptsz)

cudaError cudaMallocFromPoolAsync(void **address, size_t size, void *pool, void *stream) {
    RUN(cuMemAllocFromPoolAsync((CUdeviceptr *)address, size, pool, stream));
}
ALSO(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync_ptsz)

cudaError cudaMallocManaged(void **address, size_t size, unsigned flags) {
    RUN(cuMemAllocManaged((CUdeviceptr *)address, size, flags));
}

cudaError cudaHostAlloc(void **address, size_t size, unsigned flags) {
    (void)flags;
    RUN(take(address, size, HOST_MEMORY));
}

cudaError cudaMallocHost(void **address, size_t size) {
    RUN(take(address, size, HOST_MEMORY));
}

cudaError cudaMallocPitch(void **address, size_t *pitch, size_t width, size_t height) {
    RUN(cuMemAllocPitch_v2((CUdeviceptr *)address, pitch, width, height, 4));
}

static cudaError take_extent(struct pitched *found, struct extent extent) {
    REQUIRE(found != NULL && (extent.depth == 0 || extent.height <= SIZE_MAX / extent.depth), INVALID_VALUE);
    *found = (struct pitched){NULL, 0, extent.width, extent.height};
    return cuMemAllocPitch_v2((CUdeviceptr *)&found->address, &found->pitch, extent.width, extent.height * extent.depth,
                              4);
}

cudaError cudaMalloc3D(struct pitched *found, struct extent extent) {
    RUN(take_extent(found, extent));
}

cudaError cudaFree(void *address) {
    RUN(cuMemFree_v2((CUdeviceptr)address));
}

cudaError cudaFreeAsync(void *address, void *stream) {
    RUN(is_capturing(stream) ? free_later((CUdeviceptr)address, stream) : cuMemFree_v2((CUdeviceptr)address));
}
ALSO(cudaFreeAsync, cudaFreeAsync_ptsz)

cudaError cudaFreeHost(void *address) {
    RUN(cuMemFreeHost(address));
}

cudaError cudaHostRegister(void *address, size_t size, unsigned flags) {
    RUN(cuMemHostRegister_v2(address, size, flags));
}

cudaError cudaHostUnregister(void *address) {
    RUN(cuMemHostUnregister(address));
}

cudaError cudaHostGetDevicePointer(void **address, void *host, unsigned flags) {
    RUN(cuMemHostGetDevicePointer_v2((CUdeviceptr *)address, host, flags));
}

cudaError cudaHostGetFlags(unsigned *flags, void *host) {
    RUN(cuMemHostGetFlags(flags, host));
}

cudaError cudaMemGetInfo(size_t *free_bytes, size_t *total) {
    RUN(cuMemGetInfo_v2(free_bytes, total));
}

/* ---- hints, which change no result ---- */

cudaError cudaMemPrefetchAsync(void) {
    RUN(SUCCESS);
}
ALSO(cudaMemPrefetchAsync, cudaMemPrefetchAsync_ptsz)
ALSO(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2)
ALSO(cudaMemPrefetchAsync, cudaMemPrefetchAsync_v2_ptsz)
ALSO(cudaMemPrefetchAsync, cudaMemAdvise)
ALSO(cudaMemPrefetchAsync, cudaMemAdvise_v2)
ALSO(cudaMemPrefetchAsync, cudaStreamAttachMemAsync)
ALSO(cudaMemPrefetchAsync, cudaStreamAttachMemAsync_ptsz)
ALSO(cudaMemPrefetchAsync, cudaCtxResetPersistingL2Cache)

/* ---- pools ---- */

cudaError cudaDeviceGetDefaultMemPool(void **pool, int device) {
    RUN(cuDeviceGetDefaultMemPool(pool, device));
}

cudaError cudaDeviceGetMemPool(void **pool, int device) {
    RUN(cuDeviceGetMemPool(pool, device));
}

cudaError cudaDeviceSetMemPool(int device, void *pool) {
    RUN(cuDeviceSetMemPool(device, pool));
}

cudaError cudaMemPoolCreate(void **pool, const void *properties) {
    RUN(cuMemPoolCreate(pool, properties));
}

cudaError cudaMemPoolDestroy(void *pool) {
    RUN(cuMemPoolDestroy(pool));
}

cudaError cudaMemPoolGetAttribute(void *pool, unsigned attribute, void *value) {
    RUN(cuMemPoolGetAttribute(pool, attribute, value));
}

cudaError cudaMemPoolSetAttribute(void *pool, unsigned attribute, const void *value) {
    RUN(cuMemPoolSetAttribute(pool, attribute, value));
}

cudaError cudaMemPoolTrimTo(void *pool, size_t size) {
    RUN(cuMemPoolTrimTo(pool, size));
}

/* ---- addresses ---- */

/* The struct is cudaPointerAttributes. In the runtime 13, reserved bytes follow the struct. */
struct pointer_attributes {
    int kind, device;
    void *address, *host;
};

static cudaError describe(struct pointer_attributes *found, const void *given) {
    enum { UNREGISTERED = 0, MANAGED = 3, MEMORY_TYPE = 2, IS_MANAGED = 8 };
    uint32_t type, is_managed;
    REQUIRE(found != NULL, INVALID_VALUE);
    *found = (struct pointer_attributes){UNREGISTERED, -2, NULL, (void *)given};
    if (given == NULL || cuPointerGetAttribute(&type, MEMORY_TYPE, (CUdeviceptr)given) != SUCCESS)
        return SUCCESS;
    CHECK(cuPointerGetAttribute(&is_managed, IS_MANAGED, (CUdeviceptr)given));
    int is_host = type == 1 || is_managed;
    void *host = is_host ? (void *)given : NULL;
    *found = (struct pointer_attributes){is_managed ? MANAGED : (int)type, 0, (void *)given, host};
    return SUCCESS;
}

cudaError cudaPointerGetAttributes(struct pointer_attributes *found, const void *given) {
    RUN(describe(found, given));
}
