/* The entries for graphs, and for the capture of streams. The nodes and graphs are those of the driver. */
#include "runtime.h"

#include "../libcuda/graphs/nodes.h"

/* Dependencies are those of the driver. */
OF_STREAM(cudaStreamBeginCapture, (void *stream, int mode), cuStreamBeginCapture_v2(stream, mode))
OF_STREAM(cudaStreamEndCapture, (void *stream, void **graph), cuStreamEndCapture(stream, graph))
OF_STREAM(cudaStreamIsCapturing, (void *stream, int *status), cuStreamIsCapturing(stream, status))
OF_STREAM(cudaStreamGetCaptureInfo, (void *stream, int *status, uint64_t *number),
          cuStreamGetCaptureInfo_v2(stream, status, number, NULL, NULL, NULL))
OF_STREAM(cudaStreamGetCaptureInfo_v2,
          (void *stream, int *status, uint64_t *number, void **graph, void ***nodes, size_t *count),
          cuStreamGetCaptureInfo_v2(stream, status, number, graph, nodes, count))
OF_STREAM(cudaStreamGetCaptureInfo_v3,
          (void *stream, int *status, uint64_t *number, void **graph, void ***nodes, void **edges, size_t *count),
          cuStreamGetCaptureInfo_v3(stream, status, number, graph, nodes, edges, count))
OF_STREAM(cudaStreamUpdateCaptureDependencies, (void *stream, void *const *nodes, size_t count, unsigned flags),
          cuStreamUpdateCaptureDependencies(stream, nodes, count, flags))
OF_STREAM(cudaStreamBeginCaptureToGraph,
          (void *stream, void *graph, void *const *before, const void *edges, size_t count, int mode),
          cuStreamBeginCaptureToGraph(stream, graph, before, edges, count, mode))

ENTRY(cudaGraphCreate, (void **graph, unsigned flags), cuGraphCreate(graph, flags))
ENTRY(cudaGraphClone, (void **clone, void *graph), cuGraphClone(clone, graph))
ENTRY(cudaGraphDestroy, (void *graph), cuGraphDestroy(graph))
/* CUDA 11 has an address in place of the flags. */
ENTRY(cudaGraphInstantiate, (void **executable, void *graph, uint64_t flags),
      cuGraphInstantiateWithFlags(executable, graph, flags < 256 ? flags : 0))
ALSO(cudaGraphInstantiate, cudaGraphInstantiateWithFlags)
OF_STREAM(cudaGraphInstantiateWithParams, (void **executable, void *graph, void *given),
          cuGraphInstantiateWithParams(executable, graph, given))
OF_STREAM(cudaGraphUpload, (void *executable, void *stream), cuGraphUpload(executable, stream))
OF_STREAM(cudaGraphLaunch, (void *executable, void *stream), cuGraphLaunch(executable, stream))
ENTRY(cudaGraphExecDestroy, (void *executable), cuGraphExecDestroy(executable))
ENTRY(cudaGraphExecUpdate, (void *executable, void *graph, void *update), cuGraphExecUpdate_v2(executable, graph, update))
ENTRY(cudaGraphGetNodes, (void *graph, void **nodes, size_t *count), cuGraphGetNodes(graph, nodes, count))
ENTRY(cudaGraphGetRootNodes, (void *graph, void **nodes, size_t *count), cuGraphGetRootNodes(graph, nodes, count))
ENTRY(cudaGraphNodeGetType, (void *node, int *type), cuGraphNodeGetType(node, type))
ENTRY(cudaGraphNodeFindInClone, (void **found, void *node, void *clone), cuGraphNodeFindInClone(found, node, clone))
ENTRY(cudaGraphDestroyNode, (void *node), cuGraphDestroyNode(node))
ENTRY(cudaGraphDebugDotPrint, (void *graph, const char *path, unsigned flags), cuGraphDebugDotPrint(graph, path, flags))
ENTRY(cudaGraphNodeSetEnabled, (void *executable, void *node, unsigned is_enabled),
      cuGraphNodeSetEnabled(executable, node, is_enabled))
ENTRY(cudaGraphNodeGetEnabled, (void *executable, void *node, unsigned *is_enabled),
      cuGraphNodeGetEnabled(executable, node, is_enabled))

/* From CUDA 13 on, functions for dependencies also take the data of edges. */
ENTRY(cudaGraphGetEdges_v2, (void *graph, void **from, void **to, void *edges, size_t *count),
      cuGraphGetEdges_v2(graph, from, to, edges, count))
ENTRY(cudaGraphNodeGetDependencies_v2, (void *node, void **nodes, void *edges, size_t *count),
      cuGraphNodeGetDependencies_v2(node, nodes, edges, count))
ENTRY(cudaGraphNodeGetDependentNodes_v2, (void *node, void **nodes, void *edges, size_t *count),
      cuGraphNodeGetDependentNodes_v2(node, nodes, edges, count))
ENTRY(cudaGraphAddDependencies_v2,
      (void *graph, void *const *from, void *const *to, const void *edges, size_t count),
      cuGraphAddDependencies_v2(graph, from, to, edges, count))
ENTRY(cudaGraphRemoveDependencies_v2,
      (void *graph, void *const *from, void *const *to, const void *edges, size_t count),
      cuGraphRemoveDependencies_v2(graph, from, to, edges, count))

/* ---- nodes that a program adds ---- */

struct runtime_kernel { /* The runtime's name of the structure is cudaKernelNodeParams. */
    const void *symbol;
    struct dim3 grid, block;
    unsigned shared_bytes;
    void **values, **extra;
};

#define NODE void **node, void *graph, void *const *before, size_t count

#define ADD(call)                                         \
    do {                                                  \
        cudaError begun_ = begin_runtime();               \
        if (begun_ == SUCCESS)                            \
            begun_ = begin_node(graph, before, count);    \
        if (begun_ != SUCCESS)                            \
            return finish(begun_);                        \
        return finish(end_node(node, (call)));            \
    } while (0)

cudaError cudaGraphAddKernelNode(NODE, const struct runtime_kernel *given) {
    REQUIRE(given != NULL && given->extra == NULL, finish(INVALID_VALUE));
    ADD(cudaLaunchKernel(given->symbol, given->grid, given->block, given->values, given->shared_bytes, NULL));
}

static CUresult change(struct node *node, const struct runtime_kernel *given) {
    REQUIRE(given != NULL && given->extra == NULL, INVALID_VALUE);
    CHECK(begin_change(node));
    return end_change(
        cudaLaunchKernel(given->symbol, given->grid, given->block, given->values, given->shared_bytes, NULL));
}

ENTRY(cudaGraphKernelNodeSetParams, (void *node, const struct runtime_kernel *given), change(given_node(node), given))
ENTRY(cudaGraphExecKernelNodeSetParams, (void *executable, void *node, const struct runtime_kernel *given),
      change(executable_node(executable, node), given))

cudaError cudaGraphAddMemcpyNode1D(NODE, void *target, const void *source, size_t size, int direction) {
    ADD(cudaMemcpyAsync(target, source, size, direction, NULL));
}

ENTRY(cudaGraphAddMemsetNode, (NODE, const struct fill_node *given),
      cuGraphAddMemsetNode(node, graph, before, count, given, NULL))
ENTRY(cudaGraphAddHostNode, (NODE, const struct call *given), cuGraphAddHostNode(node, graph, before, count, given))
ENTRY(cudaGraphAddEmptyNode, (NODE), cuGraphAddEmptyNode(node, graph, before, count))
ENTRY(cudaGraphAddChildGraphNode, (NODE, void *child), cuGraphAddChildGraphNode(node, graph, before, count, child))
ENTRY(cudaGraphAddEventRecordNode, (NODE, void *event), cuGraphAddEventRecordNode(node, graph, before, count, event))
ENTRY(cudaGraphAddEventWaitNode, (NODE, void *event), cuGraphAddEventWaitNode(node, graph, before, count, event))
ENTRY(cudaGraphAddMemAllocNode, (NODE, struct allocation_node *given),
      cuGraphAddMemAllocNode(node, graph, before, count, given))
ENTRY(cudaGraphAddMemFreeNode, (NODE, void *address),
      cuGraphAddMemFreeNode(node, graph, before, count, (CUdeviceptr)address))
