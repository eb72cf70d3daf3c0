/* The entries for the device and versions, and for access to entries of the driver. */
#include "runtime.h"

#include <string.h>

enum { RUNTIME_VERSION = 13000, LAST_VERSION_OF_12 = 12090 };

cudaError begin_runtime(void) {
    void *context;
    CHECK(cuInit(0));
    if (current_context() != NULL)
        return SUCCESS;
    CHECK(cuDevicePrimaryCtxRetain(&context, 0));
    return cuCtxSetCurrent(context);
}

static cudaError given_device(int device) {
    return device == 0 ? SUCCESS : INVALID_DEVICE;
}

cudaError cudaGetDeviceCount(int *count) {
    RUN(cuDeviceGetCount(count));
}

static cudaError put(int *target, int value) {
    REQUIRE(target != NULL, INVALID_VALUE);
    *target = value;
    return SUCCESS;
}

cudaError cudaGetDevice(int *device) {
    RUN(put(device, 0));
}

cudaError cudaSetDevice(int device) {
    RUN(given_device(device));
}

cudaError cudaInitDevice(int device) {
    RUN(given_device(device));
}

cudaError cudaSetValidDevices(const int *devices, int count) {
    (void)devices, (void)count;
    RUN(SUCCESS);
}

cudaError cudaChooseDevice(int *device, const void *properties) {
    (void)properties;
    RUN(put(device, 0));
}

cudaError cudaDeviceGetAttribute(int *value, int attribute, int device) {
    RUN(cuDeviceGetAttribute(value, attribute, device));
}

cudaError cudaDeviceGetPCIBusId(char *id, int size, int device) {
    RUN(cuDeviceGetPCIBusId(id, size, device));
}

cudaError cudaDeviceCanAccessPeer(int *can, int device, int peer) {
    (void)device, (void)peer;
    RUN(put(can, 0));
}

cudaError cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
    (void)peer;
    RUN(flags == 0 ? INVALID_DEVICE : INVALID_VALUE);
}

cudaError cudaDeviceDisablePeerAccess(int peer) {
    RUN(peer == 0 ? PEER_NOT_ENABLED : INVALID_DEVICE);
}

cudaError cudaDeviceGetP2PAttribute(int *value, int attribute, int device, int peer) {
    RUN(cuDeviceGetP2PAttribute(value, attribute, device, peer));
}

/* ---- properties ---- */

static void put_field(char *target, int size, uint64_t value) {
    uint32_t narrow = value;
    if (size == 8)
        memcpy(target, &value, 8);
    else
        memcpy(target, &narrow, 4);
}

static cudaError describe(char *found, size_t size, int is_12, int device) {
    enum { NAME = 256, UUID = 256, TOTAL = 288, COMPUTE_MODE_OF_12 = 404 };
    const struct device *known = the_device();
    REQUIRE(found != NULL, INVALID_VALUE);
    CHECK(given_device(device));
    memset(found, 0, size);
    memcpy(found, known->name, strnlen(known->name, sizeof known->name));
    memcpy(found + UUID, "cuda_tma-gpu-000", 16);
    put_field(found + TOTAL, 8, known->total_bytes);
#define X(at_12, at_13, bytes, attribute)                        \
    if ((is_12 ? at_12 : at_13) >= 0)                            \
        put_field(found + (is_12 ? at_12 : at_13), bytes, (uint32_t)known->attributes[attribute]);
#include "properties.h"
#undef X
    return SUCCESS;
}

/* CUDA 12 uses the name with the suffix v2 for this structure, and CUDA 13 uses the name without the suffix. */
cudaError cudaGetDeviceProperties(char *found, int device) {
    RUN(describe(found, 1008, 0, device));
}

cudaError cudaGetDeviceProperties_v2(char *found, int device) {
    RUN(describe(found, 1032, 1, device));
}

/* ---- synchronization: every launch and copy is complete when its entry returns ---- */

cudaError cudaDeviceSynchronize(void) {
    RUN(SUCCESS);
}
ALSO(cudaDeviceSynchronize, cudaThreadSynchronize)

cudaError cudaDeviceReset(void) {
    RUN(SUCCESS);
}
ALSO(cudaDeviceReset, cudaThreadExit)

cudaError cudaProfilerStart(void) {
    RUN(SUCCESS);
}
ALSO(cudaProfilerStart, cudaProfilerStop)

/* ---- settings ---- */

cudaError cudaSetDeviceFlags(unsigned flags) {
    (void)flags;
    RUN(SUCCESS);
}
ALSO(cudaSetDeviceFlags, cudaDeviceSetCacheConfig)
ALSO(cudaSetDeviceFlags, cudaDeviceSetSharedMemConfig)

cudaError cudaGetDeviceFlags(unsigned *flags) {
    RUN(put((int *)flags, 0));
}
ALSO(cudaGetDeviceFlags, cudaDeviceGetCacheConfig)
ALSO(cudaGetDeviceFlags, cudaDeviceGetSharedMemConfig)

cudaError cudaDeviceGetLimit(size_t *value, unsigned limit) {
    RUN(cuCtxGetLimit(value, limit));
}

cudaError cudaDeviceSetLimit(unsigned limit, size_t value) {
    RUN(cuCtxSetLimit(limit, value));
}

cudaError cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
    RUN(cuCtxGetStreamPriorityRange(least, greatest));
}

/* ---- versions, and entries of the driver ---- */

cudaError cudaDriverGetVersion(int *version) {
    return finish(cuDriverGetVersion(version));
}

cudaError cudaRuntimeGetVersion(int *version) {
    return finish(put(version, RUNTIME_VERSION));
}

static cudaError find_entry(const char *name, void **entry, unsigned version, int *status) {
    int is_known;
    REQUIRE(name != NULL && entry != NULL, INVALID_VALUE);
    *entry = entry_named(name, version, &is_known);
    if (status != NULL)
        /* The results mean: found, of a later version, and not found. */
        *status = *entry != NULL ? 0 : is_known ? 2 : 1;
    return *entry != NULL || status != NULL ? SUCCESS : NOT_FOUND;
}

cudaError cudaGetDriverEntryPointByVersion(const char *name, void **entry, unsigned version, uint64_t flags,
                                           int *status) {
    (void)flags;
    RUN(find_entry(name, entry, version, status));
}
ALSO(cudaGetDriverEntryPointByVersion, cudaGetDriverEntryPointByVersion_ptsz)

cudaError cudaGetDriverEntryPoint(const char *name, void **entry, uint64_t flags, int *status) {
    (void)flags;
    RUN(find_entry(name, entry, LAST_VERSION_OF_12, status));
}
ALSO(cudaGetDriverEntryPoint, cudaGetDriverEntryPoint_ptsz)
