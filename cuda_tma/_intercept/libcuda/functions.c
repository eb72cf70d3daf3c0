/* The attributes and the occupancy of functions and kernels, which are one kind of object in this library. */
#include "driver.h"

#include <stdlib.h>

enum { MAX_THREADS = 0, SHARED = 1, MAX_DYNAMIC_SHARED = 8, FUNCTION_ATTRIBUTES = 16 };

static CUresult given_function(void *function) {
    CHECK(ready());
    return function_of(function) != NULL ? SUCCESS : INVALID_HANDLE;
}

CUresult cuFuncGetAttribute(int *value, unsigned attribute, void *function) {
    CHECK(given_function(function));
    REQUIRE(value != NULL && attribute < FUNCTION_ATTRIBUTES, INVALID_VALUE);
    *value = function_of(function)->attributes[attribute];
    return SUCCESS;
}

CUresult cuFuncSetAttribute(void *function, unsigned attribute, int value) {
    enum { OPT_IN = 97 };
    CHECK(given_function(function));
    REQUIRE(attribute >= MAX_DYNAMIC_SHARED && attribute < FUNCTION_ATTRIBUTES, INVALID_VALUE);
    int32_t *attributes = function_of(function)->attributes;
    if (attribute == MAX_DYNAMIC_SHARED)
        REQUIRE(value >= 0 && value <= the_device()->attributes[OPT_IN] - attributes[SHARED], INVALID_VALUE);
    attributes[attribute] = value;
    return SUCCESS;
}

CUresult cuFuncSetCacheConfig(void *function, int config) {
    (void)config;
    return given_function(function);
}

CUresult cuFuncSetSharedMemConfig(void *function, int config) {
    (void)config;
    return given_function(function);
}

CUresult cuFuncGetModule(void **module, void *function) {
    CHECK(given_function(function));
    REQUIRE(module != NULL, INVALID_VALUE);
    *module = function_of(function)->module;
    return SUCCESS;
}

CUresult cuFuncGetName(const char **name, void *function) {
    REQUIRE(name != NULL && function != NULL, INVALID_VALUE);
    CHECK(given_function(function));
    *name = function_of(function)->name;
    return SUCCESS;
}

CUresult cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *size) {
    CHECK(given_function(function));
    REQUIRE(offset != NULL && index < function_of(function)->count, INVALID_VALUE);
    const struct parameter *parameter = &function_of(function)->parameters[index];
    *offset = parameter->offset;
    if (size != NULL)
        *size = parameter->size;
    return SUCCESS;
}

CUresult cuFuncGetParamCount(void *function, size_t *count) {
    CHECK(given_function(function));
    REQUIRE(count != NULL, INVALID_VALUE);
    *count = function_of(function)->count;
    return SUCCESS;
}

CUresult cuFuncIsLoaded(int *state, void *function) {
    CHECK(given_function(function));
    REQUIRE(state != NULL, INVALID_VALUE);
    *state = 1;
    return SUCCESS;
}

CUresult cuFuncLoad(void *function) {
    return given_function(function);
}

CUresult cuKernelGetFunction(void **function, void *kernel) {
    CHECK(given_function(kernel));
    REQUIRE(function != NULL, INVALID_VALUE);
    *function = kernel;
    return SUCCESS;
}

CUresult cuKernelGetLibrary(void **library, void *kernel) {
    return cuFuncGetModule(library, kernel);
}

CUresult cuKernelGetName(const char **name, void *kernel) {
    return cuFuncGetName(name, kernel);
}

CUresult cuKernelGetAttribute(int *value, unsigned attribute, void *kernel, CUdevice device) {
    REQUIRE(device == 0, INVALID_DEVICE);
    return cuFuncGetAttribute(value, attribute, kernel);
}

CUresult cuKernelSetAttribute(unsigned attribute, int value, void *kernel, CUdevice device) {
    REQUIRE(device == 0, INVALID_DEVICE);
    return cuFuncSetAttribute(kernel, attribute, value);
}

CUresult cuKernelSetCacheConfig(void *kernel, int config, CUdevice device) {
    (void)config;
    REQUIRE(device == 0, INVALID_DEVICE);
    return given_function(kernel);
}

CUresult cuKernelGetParamInfo(void *kernel, size_t index, size_t *offset, size_t *size) {
    return cuFuncGetParamInfo(kernel, index, offset, size);
}

CUresult cuKernelGetParamCount(void *kernel, size_t *count) {
    return cuFuncGetParamCount(kernel, count);
}

/* ---- occupancy by threads and shared memory, because the number of registers is not known ---- */

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *count, void *function, int threads, size_t shared,
                                                              unsigned flags) {
    enum { THREADS = 39, SHARED_OF_MULTIPROCESSOR = 81, BLOCKS = 106 };
    (void)flags;
    CHECK(given_function(function));
    REQUIRE(count != NULL && threads > 0, INVALID_VALUE);
    const int32_t *limits = the_device()->attributes, *attributes = function_of(function)->attributes;
    size_t bytes = shared + attributes[SHARED] + 1024;
    int by_threads = limits[THREADS] / ((threads + 31) / 32 * 32);
    int by_shared = limits[SHARED_OF_MULTIPROCESSOR] / bytes;
    *count = threads > attributes[MAX_THREADS] || shared > (size_t)attributes[MAX_DYNAMIC_SHARED] ? 0
             : by_threads < by_shared                                                            ? by_threads
                                                                                                 : by_shared;
    *count = *count > limits[BLOCKS] ? limits[BLOCKS] : *count;
    return SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count, void *function, int threads, size_t shared) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, void *function,
                                                   size_t (*shared_of)(int threads), size_t shared, int limit,
                                                   unsigned flags) {
    enum { MULTIPROCESSORS = 16 };
    CHECK(given_function(function));
    REQUIRE(grid != NULL && block != NULL, INVALID_VALUE);
    int most = function_of(function)->attributes[MAX_THREADS], best = 0;
    most = limit > 0 && limit < most ? limit : most;
    *grid = *block = 0;
    for (int threads = most; threads > 0; threads = (threads - 1) / 32 * 32) {
        int count;
        size_t bytes = shared_of != NULL ? shared_of(threads) : shared;
        CHECK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&count, function, threads, bytes, flags));
        if (count * threads > best) {
            best = count * threads;
            *block = threads;
            *grid = count * the_device()->attributes[MULTIPROCESSORS];
        }
    }
    return SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t (*shared_of)(int threads),
                                          size_t shared, int limit) {
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, shared_of, shared, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, void *function, int blocks, int threads) {
    CHECK(given_function(function));
    REQUIRE(size != NULL && blocks > 0 && threads > 0, INVALID_VALUE);
    *size = function_of(function)->attributes[MAX_DYNAMIC_SHARED];
    return SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, void *function, const void *config) {
    CHECK(given_function(function));
    REQUIRE(size != NULL && config != NULL, INVALID_VALUE);
    *size = 8;
    return SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, void *function, const void *config) {
    CHECK(given_function(function));
    REQUIRE(count != NULL && config != NULL, INVALID_VALUE);
    *count = the_device()->attributes[16];
    return SUCCESS;
}
