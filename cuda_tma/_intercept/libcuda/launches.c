/* The entries that launch kernels. The parameters of a launch are one block of bytes, and the attributes are those that
   the simulator supports. */
#include "graphs/graphs.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARAMETER_BYTES = 32764, MAX_DYNAMIC_SHARED = 8, SHARED = 1 };

/* Copy the parameters of a launch into one block. If the program passes `extra`, the parameters already are one block.
   */
static CUresult gather(const struct function *function, void **values, void **extra, unsigned char *block,
                       size_t *size) {
    enum { END = 0, POINTER = 1, SIZE = 2 };
    *size = 0;
    for (uint32_t i = 0; i < function->count; ++i) {
        size_t end = (size_t)function->parameters[i].offset + function->parameters[i].size;
        *size = end > *size ? end : *size;
    }
    REQUIRE(*size <= MOST_PARAMETER_BYTES, INVALID_VALUE);
    memset(block, 0, *size);
    if (values == NULL && extra != NULL) {
        const void *given = NULL;
        size_t given_size = 0;
        for (int i = 0; i < 8 && (uintptr_t)extra[i] != END; i += 2) {
            if ((uintptr_t)extra[i] == POINTER)
                given = extra[i + 1];
            else if ((uintptr_t)extra[i] == SIZE)
                given_size = *(const size_t *)extra[i + 1];
        }
        REQUIRE(given != NULL || *size == 0, INVALID_VALUE);
        memcpy(block, given, given_size < *size ? given_size : *size);
        return SUCCESS;
    }
    for (uint32_t i = 0; i < function->count; ++i) {
        REQUIRE(values != NULL && values[i] != NULL, INVALID_VALUE);
        memcpy(block + function->parameters[i].offset, values[i], function->parameters[i].size);
    }
    return SUCCESS;
}

static CUresult take_attributes(const struct config *config, struct launch *launch) {
    enum { COOPERATIVE_ID = 2, CLUSTER_ID = 4, PROGRAMMATIC_ID = 6 };
    REQUIRE(config->count == 0 || config->attributes != NULL, INVALID_VALUE);
    for (uint32_t i = 0; i < config->count; ++i) {
        const struct attribute *attribute = &config->attributes[i];
        if (attribute->id == CLUSTER_ID)
            memcpy(launch->cluster, attribute->value.cluster, sizeof launch->cluster);
        else if (attribute->id == COOPERATIVE_ID)
            launch->flags |= attribute->value.number ? COOPERATIVE : 0;
        else if (attribute->id == PROGRAMMATIC_ID)
            launch->flags |= attribute->value.number ? PROGRAMMATIC : 0;
    }
    return SUCCESS;
}

CUresult run_kernel(const void *data, size_t size) {
    const struct kernel_data *kernel = data;
    copy_registered(1);
    CUresult result = ask(ASK_LAUNCH, &kernel->fixed, size - offsetof(struct kernel_data, fixed), NULL);
    copy_registered(0);
    return result;
}

static CUresult in_living_context(const struct function *function) {
    const void *context = function->module->context;
    if (is_destroyed(NULL) || (context != NULL && is_destroyed(context))) {
        misuse(DESTROYED_CONTEXT, 0, 0);
        return CONTEXT_IS_DESTROYED;
    }
    return ready_in_context();
}

CUresult cuLaunchKernelEx(const struct config *config, void *handle, void **values, void **extra) {
    struct {
        struct kernel_data kernel;
        unsigned char parameters[MOST_PARAMETER_BYTES];
    } request;
    CHECK(ready());
    REQUIRE(config != NULL, INVALID_VALUE);
    const struct function *function = function_of(handle);
    REQUIRE(function != NULL, INVALID_HANDLE);
    CHECK(in_living_context(function));
    for (int i = 0; i < 3; ++i)
        REQUIRE(config->grid[i] > 0 && config->block[i] > 0, INVALID_VALUE);
    REQUIRE(config->shared_bytes <= (uint32_t)function->attributes[MAX_DYNAMIC_SHARED], INVALID_VALUE);
    memset(&request.kernel, 0, sizeof request.kernel);
    struct launch *fixed = &request.kernel.fixed;
    request.kernel.function = handle;
    fixed->module = function->module->number;
    fixed->function = function->index;
    memcpy(fixed->grid, config->grid, sizeof config->grid);
    memcpy(fixed->block, config->block, sizeof config->block);
    fixed->shared_bytes = config->shared_bytes;
    CHECK(take_attributes(config, fixed));
    size_t size;
    CHECK(gather(function, values, extra, request.parameters, &size));
    return now_or_later(config->stream, KERNEL_NODE, run_kernel, &request, sizeof request.kernel + size);
}

CUresult cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, void *stream, void **values,
                        void **extra) {
    struct config config = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, NULL, 0};
    return cuLaunchKernelEx(&config, function, values, extra);
}

CUresult cuLaunchCooperativeKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                   void *stream, void **values) {
    struct attribute cooperative = {2, 0, {.number = 1}};
    struct config config = {
        {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared_bytes, stream, &cooperative, 1};
    return cuLaunchKernelEx(&config, function, values, NULL);
}
