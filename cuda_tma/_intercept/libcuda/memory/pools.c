/* Memory pools, hints on managed memory, and copies of two dimensions. */
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
    return pool != NULL && pool->magic == POOL;
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
    struct pool *made = calloc(1, sizeof *made);
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

/* The first three attributes are int. */
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
    *flags = 3; /* read and write */
    return SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, void *stream) {
    REQUIRE(!is_capturing(stream), CAPTURE_UNSUPPORTED);
    return allocate(address, size, POOL_MEMORY);
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, void *pool, void *stream) {
    CHECK(given_pool(pool));
    return cuMemAllocAsync(address, size, stream);
}

/* ---- hints: they change no result ---- */

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

/* ---- copies of two dimensions ---- */

struct side {
    size_t x, y;
    unsigned memory_type;
    const void *host;
    CUdeviceptr device;
    void *array;
    size_t pitch;
};

struct copy {
    struct side source, target;
    size_t width, height;
};

static unsigned char *corner(const struct side *side, const struct copy *copy, CUresult *result) {
    enum { HOST = 1, DEVICE = 2, UNIFIED = 4 };
    size_t pitch = side->pitch ? side->pitch : copy->width;
    if (side->memory_type != HOST && side->memory_type != DEVICE && side->memory_type != UNIFIED) {
        *result = absent("cuMemcpy2D of a CUDA array");
        return NULL;
    }
    uint64_t start = side->memory_type == HOST ? (uint64_t)side->host : side->device;
    start += side->y * pitch + side->x;
    *result = SUCCESS;
    return side->memory_type == DEVICE ? readable(start, (copy->height - 1) * pitch + copy->width, result)
                                       : (unsigned char *)start;
}

CUresult cuMemcpy2D_v2(const struct copy *copy) {
    CUresult result;
    CHECK(ready_in_context());
    REQUIRE(copy != NULL, INVALID_VALUE);
    if (copy->width == 0 || copy->height == 0)
        return SUCCESS;
    size_t from_pitch = copy->source.pitch ? copy->source.pitch : copy->width;
    size_t to_pitch = copy->target.pitch ? copy->target.pitch : copy->width;
    REQUIRE(copy->height == 1 || (from_pitch >= copy->width && to_pitch >= copy->width), INVALID_VALUE);
    unsigned char *from = corner(&copy->source, copy, &result);
    CHECK(result);
    unsigned char *to = corner(&copy->target, copy, &result);
    CHECK(result);
    for (size_t y = 0; y < copy->height; ++y)
        memmove(to + y * to_pitch, from + y * from_pitch, copy->width);
    return SUCCESS;
}

CUresult cuMemcpy2DUnaligned_v2(const struct copy *copy) {
    return cuMemcpy2D_v2(copy);
}

static CUresult run_copy(const void *copy, size_t size) {
    (void)size;
    return cuMemcpy2D_v2(copy);
}

CUresult cuMemcpy2DAsync_v2(const struct copy *copy, void *stream) {
    REQUIRE(copy != NULL, INVALID_VALUE);
    return now_or_later(stream, run_copy, copy, sizeof *copy);
}
