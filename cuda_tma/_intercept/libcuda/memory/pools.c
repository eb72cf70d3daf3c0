/* The entries for memory pools, and for hints on managed memory. */
#include "../graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { POOL = 0x9001C0DE, DEAD = 0xDEAD0000, POOL_ATTRIBUTES = 16, RELEASE_THRESHOLD = 4 };

struct pool {
    uint32_t magic;
    uint64_t attributes[POOL_ATTRIBUTES];
};

static struct pool standard = {POOL, {0}};
static struct pool *current = &standard;

static int is_pool(const struct pool *pool) {
    return pool == &standard || kind_of(pool) == POOL;
}

static CUresult given_pool(const void *pool) {
    CHECK(ready());
    return is_pool(pool) ? SUCCESS : INVALID_VALUE;
}

CUresult cuDeviceGetDefaultMemPool(void **pool, CUdevice device) {
    CHECK(ready());
    REQUIRE(device == 0, INVALID_DEVICE);
    REQUIRE(pool != NULL, INVALID_VALUE);
    *pool = &standard;
    return SUCCESS;
}

CUresult cuDeviceGetMemPool(void **pool, CUdevice device) {
    CHECK(cuDeviceGetDefaultMemPool(pool, device));
    *pool = current;
    return SUCCESS;
}

CUresult cuDeviceSetMemPool(CUdevice device, void *pool) {
    CHECK(given_pool(pool));
    REQUIRE(device == 0, INVALID_DEVICE);
    current = pool;
    return SUCCESS;
}

CUresult cuMemPoolCreate(void **pool, const void *properties) {
    CHECK(ready());
    REQUIRE(pool != NULL && properties != NULL, INVALID_VALUE);
    struct pool *made = make_handle(sizeof *made);
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    made->magic = POOL;
    *pool = made;
    return SUCCESS;
}

CUresult cuMemPoolDestroy(void *pool) {
    CHECK(given_pool(pool));
    REQUIRE(pool != &standard, INVALID_VALUE);
    ((struct pool *)pool)->magic = DEAD;
    if (current == pool)
        current = &standard;
    return SUCCESS;
}

/* The first three attributes have the type int. */
CUresult cuMemPoolGetAttribute(void *pool, unsigned attribute, void *value) {
    CHECK(given_pool(pool));
    REQUIRE(value != NULL && attribute > 0 && attribute < POOL_ATTRIBUTES, INVALID_VALUE);
    uint64_t found = ((struct pool *)pool)->attributes[attribute];
    memcpy(value, &found, attribute < RELEASE_THRESHOLD ? 4 : 8);
    return SUCCESS;
}

CUresult cuMemPoolSetAttribute(void *pool, unsigned attribute, const void *value) {
    CHECK(given_pool(pool));
    REQUIRE(value != NULL && attribute > 0 && attribute < POOL_ATTRIBUTES, INVALID_VALUE);
    uint64_t given = 0;
    memcpy(&given, value, attribute < RELEASE_THRESHOLD ? 4 : 8);
    ((struct pool *)pool)->attributes[attribute] = given;
    return SUCCESS;
}

CUresult cuMemPoolTrimTo(void *pool, size_t size) {
    (void)size;
    return given_pool(pool);
}

CUresult cuMemPoolSetAccess(void *pool, const void *list, size_t count) {
    (void)list, (void)count;
    return given_pool(pool);
}

CUresult cuMemPoolGetAccess(unsigned *flags, void *pool, const void *location) {
    CHECK(given_pool(pool));
    REQUIRE(flags != NULL && location != NULL, INVALID_VALUE);
    *flags = 3; /* The flags 3 mean read and write. */
    return SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, void *stream) {
    REQUIRE(is_stream(stream), INVALID_HANDLE);
    return is_capturing(stream) ? allocation_later(address, size, stream) : allocate(address, size, POOL_MEMORY);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, void *pool, void *stream) {
    CHECK(given_pool(pool));
    return cuMemAllocAsync(address, size, stream);
}

/* ---- hints, which change no result ---- */

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t size) {
    (void)address, (void)size;
    return ready_in_context();
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size) {
    return cuMemPrefetchAsync(address, size);
}

CUresult cuMemAdvise(CUdeviceptr address, size_t size) {
    return cuMemPrefetchAsync(address, size);
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size) {
    return cuMemPrefetchAsync(address, size);
}
