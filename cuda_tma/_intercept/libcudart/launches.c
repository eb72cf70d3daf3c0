/* The entries for launches, and for attributes and occupancy of kernels. */
#include "runtime.h"

#include <string.h>

enum { DEPTH = 64, MAX_THREADS = 0, COOPERATIVE_ID = 2 };

struct launch_config { /* The runtime's name of the structure is cudaLaunchConfig_t. */
    struct dim3 grid, block;
    size_t shared_bytes;
    void *stream;
    const struct attribute *attributes;
    unsigned count;
};

struct pushed {
    struct dim3 grid, block;
    size_t shared_bytes;
    void *stream;
};

/* The entries are configurations of <<<...>>> whose arguments the program is evaluating. */
static __thread struct pushed calls[DEPTH];
static __thread int depth;

unsigned __cudaPushCallConfiguration(struct dim3 grid, struct dim3 block, size_t shared_bytes, void *stream) {
    REQUIRE(depth < DEPTH, 1);
    calls[depth++] = (struct pushed){grid, block, shared_bytes, stream};
    return 0;
}

cudaError __cudaPopCallConfiguration(struct dim3 *grid, struct dim3 *block, size_t *shared_bytes, void **stream) {
    enum { MISSING_CONFIGURATION = 52 };
    REQUIRE(depth > 0, finish(MISSING_CONFIGURATION));
    const struct pushed *call = &calls[--depth];
    *grid = call->grid;
    *block = call->block;
    *shared_bytes = call->shared_bytes;
    *stream = call->stream;
    return SUCCESS;
}

static int is_block(const struct function *function, struct dim3 block) {
    uint64_t threads = (uint64_t)block.x * block.y;
    return block.x > 0 && block.y > 0 && block.z > 0 && block.x <= 1024 && block.y <= 1024 && block.z <= 64 &&
           threads * block.z <= (uint64_t)function->attributes[MAX_THREADS];
}

static cudaError launch(const struct launch_config *given, const void *symbol, void **values) {
    struct function *function;
    REQUIRE(given != NULL, INVALID_VALUE);
    CHECK(find_function(symbol, &function));
    struct dim3 grid = given->grid, block = given->block;
    REQUIRE(grid.x > 0 && grid.y > 0 && grid.z > 0 && is_block(function, block), INVALID_CONFIGURATION);
    REQUIRE(given->shared_bytes <= UINT32_MAX, INVALID_VALUE);
    struct config config = {{grid.x, grid.y, grid.z},   {block.x, block.y, block.z}, given->shared_bytes,
                            given->stream, given->attributes, given->count};
    return cuLaunchKernelEx(&config, function, values, NULL);
}

cudaError cudaLaunchKernelExC(const struct launch_config *config, const void *symbol, void **values) {
    RUN(launch(config, symbol, values));
}
ALSO(cudaLaunchKernelExC, cudaLaunchKernelExC_ptsz)

cudaError cudaLaunchKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **values, size_t shared_bytes,
                           void *stream) {
    struct launch_config config = {grid, block, shared_bytes, stream, NULL, 0};
    RUN(launch(&config, symbol, values));
}
ALSO(cudaLaunchKernel, cudaLaunchKernel_ptsz)
ALSO(cudaLaunchKernel, __cudaLaunchKernel)
ALSO(cudaLaunchKernel, __cudaLaunchKernel_ptsz)

cudaError cudaLaunchCooperativeKernel(const void *symbol, struct dim3 grid, struct dim3 block, void **values,
                                      size_t shared_bytes, void *stream) {
    struct attribute cooperative = {COOPERATIVE_ID, 0, {.number = 1}};
    struct launch_config config = {grid, block, shared_bytes, stream, &cooperative, 1};
    RUN(launch(&config, symbol, values));
}
ALSO(cudaLaunchCooperativeKernel, cudaLaunchCooperativeKernel_ptsz)

cudaError cudaLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    RUN(cuLaunchHostFunc(stream, function, data));
}
ALSO(cudaLaunchHostFunc, cudaLaunchHostFunc_ptsz)

/* ---- attributes ---- */

struct function_attributes { /* The runtime's name of the structure is cudaFuncAttributes. */
    size_t shared_bytes, constant_bytes, local_bytes;
    int most_threads, registers, ptx_version, binary_version, cache_mode, most_dynamic_bytes, carveout;
    int must_have_cluster, cluster[3], scheduling, has_large_clusters, reserved[16];
};

/* Call an entry of the driver with the function of a kernel. */
#define OF_FUNCTION(call)                                        \
    do {                                                         \
        struct function *function;                               \
        cudaError begun_ = begin_runtime();                      \
        if (begun_ == SUCCESS)                                   \
            begun_ = find_function(symbol, &function);           \
        return finish(begun_ != SUCCESS ? begun_ : (call));      \
    } while (0)

static cudaError describe(struct function_attributes *found, const struct function *function) {
    const int32_t *given = function->attributes;
    REQUIRE(found != NULL, INVALID_VALUE);
    *found = (struct function_attributes){
        given[1], given[2], given[3], given[0], given[4],  given[5],  given[6],    given[7],
        given[8], given[9], given[10], {given[11], given[12], given[13]}, given[15], given[14], {0}};
    return SUCCESS;
}

cudaError cudaFuncGetAttributes(struct function_attributes *found, const void *symbol) {
    OF_FUNCTION(describe(found, function));
}

cudaError cudaFuncSetAttribute(const void *symbol, unsigned attribute, int value) {
    OF_FUNCTION(cuFuncSetAttribute(function, attribute, value));
}

cudaError cudaKernelSetAttributeForDevice(const void *symbol, unsigned attribute, int value, int device) {
    REQUIRE(device == 0, finish(INVALID_DEVICE));
    OF_FUNCTION(cuFuncSetAttribute(function, attribute, value));
}

cudaError cudaFuncSetCacheConfig(const void *symbol, int config) {
    (void)config;
    OF_FUNCTION(SUCCESS);
}
ALSO(cudaFuncSetCacheConfig, cudaFuncSetSharedMemConfig)

cudaError cudaFuncGetName(const char **name, const void *symbol) {
    OF_FUNCTION(cuFuncGetName(name, function));
}

cudaError cudaFuncGetParamInfo(const void *symbol, size_t index, size_t *offset, size_t *size) {
    OF_FUNCTION(cuFuncGetParamInfo(function, index, offset, size));
}

/* ---- occupancy ---- */

cudaError cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count, const void *symbol, int threads, size_t shared) {
    OF_FUNCTION(cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads, shared));
}
ALSO(cudaOccupancyMaxActiveBlocksPerMultiprocessor, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)

cudaError cudaOccupancyAvailableDynamicSMemPerBlock(size_t *size, const void *symbol, int blocks, int threads) {
    OF_FUNCTION(cuOccupancyAvailableDynamicSMemPerBlock(size, function, blocks, threads));
}

cudaError cudaOccupancyMaxPotentialClusterSize(int *size, const void *symbol, const void *config) {
    OF_FUNCTION(cuOccupancyMaxPotentialClusterSize(size, function, config));
}

cudaError cudaOccupancyMaxActiveClusters(int *count, const void *symbol, const void *config) {
    OF_FUNCTION(cuOccupancyMaxActiveClusters(count, function, config));
}
