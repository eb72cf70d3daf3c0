#ifndef CUDA_TMA_NODES_H
#define CUDA_TMA_NODES_H

#include "graphs.h"

/* The structures are the parameters of nodes in the form of the driver's interface. */

struct kernel_node { /* The driver's name is CUDA_KERNEL_NODE_PARAMS_v2. The first version ends before `kernel`. */
    void *function;
    uint32_t grid[3], block[3], shared_bytes;
    void **values, **extra;
    void *kernel, *context;
};

struct fill_node { /* The driver's name is CUDA_MEMSET_NODE_PARAMS. */
    CUdeviceptr target;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};

struct allocation_node { /* The driver's name is CUDA_MEM_ALLOC_NODE_PARAMS. */
    int properties[22];
    const void *access;
    size_t access_count, size;
    CUdeviceptr address;
};

/* The file executables.c defines executable_node(). The function returns NULL if the graph has no copy of the node. */
struct node *executable_node(void *executable, void *node);

CUresult cuLaunchKernelEx(const struct config *config, void *function, void **values, void **extra);
CUresult cuLaunchHostFunc(void *stream, void (*function)(void *), void *data);

#define NODE_ENTRIES(X)                                                                                   \
    X(cuGraphAddKernelNode_v2, const struct kernel_node *)                                                \
    X(cuGraphAddHostNode, const struct call *)                                                            \
    X(cuGraphAddChildGraphNode, void *)                                                                   \
    X(cuGraphAddEventRecordNode, void *)                                                                  \
    X(cuGraphAddEventWaitNode, void *)                                                                    \
    X(cuGraphAddMemAllocNode, struct allocation_node *)                                                   \
    X(cuGraphAddMemFreeNode, CUdeviceptr)
#define DECLARE(name, type) CUresult name(void **node, void *graph, void *const *before, size_t count, type given);
NODE_ENTRIES(DECLARE)
#undef DECLARE
CUresult cuGraphAddEmptyNode(void **node, void *graph, void *const *before, size_t count);
CUresult cuGraphAddMemcpyNode(void **node, void *graph, void *const *before, size_t count,
                              const struct block_copy *given, void *context);
CUresult cuGraphAddMemsetNode(void **node, void *graph, void *const *before, size_t count,
                              const struct fill_node *given, void *context);

#endif
