/* The entries of the driver for the device and its contexts. */
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { CONTEXT = 0xC0417E87, DEAD = 0xDEAD0000, DEPTH = 64 };

struct context {
    uint32_t magic, flags;
    uint64_t number;
    size_t limits[16];
};

static struct context primary;
static int primary_retained;
static uint64_t contexts;
static __thread struct context *stack[DEPTH];
static __thread int depth;

static int is_context(const struct context *context) {
    return (context == &primary ? primary.magic : kind_of(context)) == CONTEXT;
}

static void begin(struct context *context, uint32_t flags) {
    static const size_t limits[16] = {1024, 1 << 20, 8 << 20, 2, 2048, 64};
    context->magic = CONTEXT;
    context->flags = flags;
    context->number = __atomic_add_fetch(&contexts, 1, __ATOMIC_RELAXED);
    memcpy(context->limits, limits, sizeof limits);
}

void *current_context(void) {
    return depth > 0 && is_context(stack[depth - 1]) ? stack[depth - 1] : NULL;
}

int is_destroyed(const void *context) {
    const struct context *given = context != NULL ? context : depth > 0 ? stack[depth - 1] : NULL;
    return given != NULL && given->magic == DEAD;
}

static void set_current(struct context *context) {
    if (depth == 0)
        depth = 1;
    stack[depth - 1] = context;
}

static CUresult given_device(CUdevice device) {
    CHECK(ready());
    return device == 0 ? SUCCESS : INVALID_DEVICE;
}

/* ---- the device ---- */

CUresult cuDeviceGetCount(int *count) {
    CHECK(ready());
    REQUIRE(count != NULL, INVALID_VALUE);
    *count = 1;
    return SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CHECK(given_device(ordinal));
    REQUIRE(device != NULL, INVALID_VALUE);
    *device = 0;
    return SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(name != NULL && size > 0, INVALID_VALUE);
    strncpy(name, the_device()->name, size);
    name[size - 1] = 0;
    return SUCCESS;
}

CUresult cuDeviceGetUuid_v2(void *uuid, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(uuid != NULL, INVALID_VALUE);
    memcpy(uuid, "cuda_tma-gpu-000", 16);
    return SUCCESS;
}

CUresult cuDeviceGetUuid(void *uuid, CUdevice device) {
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(id != NULL && size > 12, INVALID_VALUE);
    strcpy(id, "0000:00:00.0");
    return SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *size, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(size != NULL, INVALID_VALUE);
    *size = the_device()->total_bytes;
    return SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(value != NULL && attribute > 0, INVALID_VALUE);
    *value = attribute < ATTRIBUTES ? the_device()->attributes[attribute] : 0;
    return SUCCESS;
}

CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    CHECK(cuDeviceGetAttribute(major, 75, device));
    return cuDeviceGetAttribute(minor, 76, device);
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    CHECK(given_device(device));
    CHECK(given_device(peer));
    REQUIRE(can != NULL, INVALID_VALUE);
    *can = 0;
    return SUCCESS;
}

/* A device cannot be its own peer, and there is no other device. */
CUresult cuDeviceGetP2PAttribute(int *value, int attribute, CUdevice device, CUdevice peer) {
    (void)attribute;
    CHECK(given_device(device));
    CHECK(given_device(peer));
    return value != NULL ? INVALID_DEVICE : INVALID_VALUE;
}

CUresult cuCtxEnablePeerAccess(void *peer, unsigned flags) {
    CHECK(ready_in_context());
    REQUIRE(flags == 0, INVALID_VALUE);
    return is_context(peer) ? PEER_UNSUPPORTED : INVALID_CONTEXT;
}

CUresult cuCtxDisablePeerAccess(void *peer) {
    CHECK(ready_in_context());
    return is_context(peer) ? PEER_NOT_ENABLED : INVALID_CONTEXT;
}

/* ---- the primary context ---- */

CUresult cuDevicePrimaryCtxRetain(void **context, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(context != NULL, INVALID_VALUE);
    if (!is_context(&primary))
        begin(&primary, 0);
    ++primary_retained;
    *context = &primary;
    return SUCCESS;
}

/* The context is not destroyed, so that memory and modules stay valid if a library releases it too often. */
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(primary_retained > 0, INVALID_CONTEXT);
    --primary_retained;
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    return given_device(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    CHECK(given_device(device));
    primary.flags = flags;
    return SUCCESS;
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *is_active) {
    CHECK(given_device(device));
    REQUIRE(flags != NULL && is_active != NULL, INVALID_VALUE);
    *flags = primary.flags;
    *is_active = is_context(&primary);
    return SUCCESS;
}

/* ---- contexts ---- */

CUresult cuCtxPushCurrent_v2(void *context) {
    CHECK(ready());
    REQUIRE(is_context(context), INVALID_CONTEXT);
    REQUIRE(depth < DEPTH, INVALID_VALUE);
    stack[depth++] = context;
    return SUCCESS;
}

CUresult cuCtxPopCurrent_v2(void **context) {
    CHECK(ready());
    REQUIRE(depth > 0, INVALID_CONTEXT);
    --depth;
    if (context != NULL)
        *context = stack[depth];
    return SUCCESS;
}

CUresult cuCtxCreate_v2(void **context, unsigned flags, CUdevice device) {
    CHECK(given_device(device));
    REQUIRE(context != NULL, INVALID_VALUE);
    struct context *made = make_handle(sizeof *made);
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    begin(made, flags);
    *context = made;
    return cuCtxPushCurrent_v2(made);
}

CUresult cuCtxCreate_v3(void **context, void *affinities, int count, unsigned flags, CUdevice device) {
    (void)affinities, (void)count;
    return cuCtxCreate_v2(context, flags, device);
}

CUresult cuCtxCreate_v4(void **context, void *parameters, unsigned flags, CUdevice device) {
    (void)parameters;
    return cuCtxCreate_v2(context, flags, device);
}

/* The few bytes of a destroyed context are not freed, so that the library still recognizes its handle. */
CUresult cuCtxDestroy_v2(void *context) {
    CHECK(ready());
    REQUIRE(is_context(context) && context != &primary, INVALID_CONTEXT);
    ((struct context *)context)->magic = DEAD;
    if (depth > 0 && stack[depth - 1] == context)
        --depth;
    return SUCCESS;
}

CUresult cuCtxSetCurrent(void *context) {
    CHECK(ready());
    REQUIRE(context == NULL || is_context(context), INVALID_CONTEXT);
    set_current(context);
    return SUCCESS;
}

CUresult cuCtxGetCurrent(void **context) {
    CHECK(ready());
    REQUIRE(context != NULL, INVALID_VALUE);
    *context = current_context();
    return SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device) {
    CHECK(ready_in_context());
    REQUIRE(device != NULL, INVALID_VALUE);
    *device = 0;
    return SUCCESS;
}

CUresult cuCtxGetDevice_v2(CUdevice *device, void *context) {
    CHECK(ready());
    REQUIRE(device != NULL, INVALID_VALUE);
    REQUIRE(context == NULL ? current_context() != NULL : is_context(context), INVALID_CONTEXT);
    *device = 0;
    return SUCCESS;
}

CUresult cuCtxGetFlags(unsigned *flags) {
    CHECK(ready_in_context());
    REQUIRE(flags != NULL, INVALID_VALUE);
    *flags = ((struct context *)current_context())->flags;
    return SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
    CHECK(ready_in_context());
    ((struct context *)current_context())->flags = flags;
    return SUCCESS;
}

CUresult cuCtxGetId(void *context, uint64_t *number) {
    CHECK(ready());
    context = context != NULL ? context : current_context();
    REQUIRE(is_context(context), INVALID_CONTEXT);
    REQUIRE(number != NULL, INVALID_VALUE);
    *number = ((struct context *)context)->number;
    return SUCCESS;
}

CUresult cuCtxGetApiVersion(void *context, unsigned *version) {
    CHECK(ready());
    REQUIRE(context == NULL ? current_context() != NULL : is_context(context), INVALID_CONTEXT);
    REQUIRE(version != NULL, INVALID_VALUE);
    *version = 13050;
    return SUCCESS;
}

CUresult cuCtxSynchronize(void) {
    return ready_in_context();
}

CUresult cuCtxSynchronize_v2(void *context) {
    CHECK(ready());
    return context == NULL || is_context(context) ? SUCCESS : INVALID_CONTEXT;
}

CUresult cuCtxGetLimit(size_t *value, unsigned limit) {
    CHECK(ready_in_context());
    REQUIRE(value != NULL && limit < 16, INVALID_VALUE);
    *value = ((struct context *)current_context())->limits[limit];
    return SUCCESS;
}

CUresult cuCtxSetLimit(unsigned limit, size_t value) {
    CHECK(ready_in_context());
    REQUIRE(limit < 16, INVALID_VALUE);
    ((struct context *)current_context())->limits[limit] = value;
    return SUCCESS;
}

CUresult cuCtxGetCacheConfig(int *config) {
    CHECK(ready_in_context());
    REQUIRE(config != NULL, INVALID_VALUE);
    *config = 0;
    return SUCCESS;
}

CUresult cuCtxSetCacheConfig(int config) {
    (void)config;
    return ready_in_context();
}

CUresult cuCtxResetPersistingL2Cache(void) {
    return ready_in_context();
}

CUresult cuProfilerStart(void) {
    return ready_in_context();
}

CUresult cuProfilerStop(void) {
    return ready_in_context();
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    CHECK(ready_in_context());
    if (least != NULL)
        *least = 0;
    if (greatest != NULL)
        *greatest = -5;
    return SUCCESS;
}
