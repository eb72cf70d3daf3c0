/* Graphs, and the capture of streams. */
#include "runtime.h"

cudaError cudaStreamBeginCapture(void *stream, int mode) {
    RUN(cuStreamBeginCapture_v2(stream, mode));
}
ALSO(cudaStreamBeginCapture, cudaStreamBeginCapture_ptsz)

cudaError cudaStreamEndCapture(void *stream, void **graph) {
    RUN(cuStreamEndCapture(stream, graph));
}
ALSO(cudaStreamEndCapture, cudaStreamEndCapture_ptsz)

cudaError cudaStreamIsCapturing(void *stream, int *status) {
    RUN(cuStreamIsCapturing(stream, status));
}
ALSO(cudaStreamIsCapturing, cudaStreamIsCapturing_ptsz)

/* Dependencies are not returned. */
cudaError cudaStreamGetCaptureInfo(void *stream, int *status, uint64_t *number) {
    RUN(cuStreamGetCaptureInfo_v2(stream, status, number, NULL));
}
ALSO(cudaStreamGetCaptureInfo, cudaStreamGetCaptureInfo_ptsz)

cudaError cudaStreamGetCaptureInfo_v2(void *stream, int *status, uint64_t *number, void **graph) {
    RUN(cuStreamGetCaptureInfo_v2(stream, status, number, graph));
}
ALSO(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v2_ptsz)
ALSO(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v3)
ALSO(cudaStreamGetCaptureInfo_v2, cudaStreamGetCaptureInfo_v3_ptsz)

cudaError cudaGraphCreate(void **graph, unsigned flags) {
    RUN(cuGraphCreate(graph, flags));
}

cudaError cudaGraphClone(void **clone, void *graph) {
    RUN(cuGraphClone(clone, graph));
}

cudaError cudaGraphDestroy(void *graph) {
    RUN(cuGraphDestroy(graph));
}

cudaError cudaGraphInstantiate(void **executable, void *graph) {
    RUN(cuGraphInstantiateWithFlags(executable, graph, 0));
}
ALSO(cudaGraphInstantiate, cudaGraphInstantiateWithFlags)
ALSO(cudaGraphInstantiate, cudaGraphInstantiateWithParams)
ALSO(cudaGraphInstantiate, cudaGraphInstantiateWithParams_ptsz)

cudaError cudaGraphUpload(void *executable, void *stream) {
    RUN(cuGraphUpload(executable, stream));
}
ALSO(cudaGraphUpload, cudaGraphUpload_ptsz)

cudaError cudaGraphLaunch(void *executable, void *stream) {
    RUN(cuGraphLaunch(executable, stream));
}
ALSO(cudaGraphLaunch, cudaGraphLaunch_ptsz)

cudaError cudaGraphExecDestroy(void *executable) {
    RUN(cuGraphExecDestroy(executable));
}

cudaError cudaGraphGetNodes(void *graph, void **nodes, size_t *count) {
    RUN(cuGraphGetNodes(graph, nodes, count));
}

/* ---- nodes that a program adds: each runs after those that were added before it ---- */

struct kernel_node { /* cudaKernelNodeParams */
    const void *symbol;
    struct dim3 grid, block;
    unsigned shared_bytes;
    void **values, **extra;
};

struct fill_node { /* cudaMemsetParams */
    void *target;
    size_t pitch;
    unsigned value, element_bytes;
    size_t width, height;
};

struct host_node { /* cudaHostNodeParams */
    void (*function)(void *);
    void *data;
};

#define ADD(call)                                         \
    do {                                                  \
        cudaError begun_ = begin_runtime();               \
        if (begun_ == SUCCESS)                            \
            begun_ = begin_node(graph);                   \
        if (begun_ != SUCCESS)                            \
            return finish(begun_);                        \
        return finish(end_node(node, (call)));            \
    } while (0)

cudaError cudaGraphAddKernelNode(void **node, void *graph, void **before, size_t count,
                                 const struct kernel_node *given) {
    (void)before, (void)count;
    REQUIRE(given != NULL && given->extra == NULL, finish(INVALID_VALUE));
    ADD(cudaLaunchKernel(given->symbol, given->grid, given->block, given->values, given->shared_bytes, NULL));
}

cudaError cudaGraphAddMemcpyNode1D(void **node, void *graph, void **before, size_t count, void *target,
                                   const void *source, size_t size, int direction) {
    (void)before, (void)count;
    ADD(cudaMemcpyAsync(target, source, size, direction, NULL));
}

static CUresult fill(const struct fill_node *given) {
    CUdeviceptr target = (CUdeviceptr)given->target;
    switch (given->element_bytes) {
    case 1: return cuMemsetD2D8Async(target, given->pitch, given->value, given->width, given->height, NULL);
    case 2: return cuMemsetD2D16Async(target, given->pitch, given->value, given->width, given->height, NULL);
    case 4: return cuMemsetD2D32Async(target, given->pitch, given->value, given->width, given->height, NULL);
    }
    return INVALID_VALUE;
}

cudaError cudaGraphAddMemsetNode(void **node, void *graph, void **before, size_t count, const struct fill_node *given) {
    (void)before, (void)count;
    REQUIRE(given != NULL, finish(INVALID_VALUE));
    ADD(fill(given));
}

cudaError cudaGraphAddHostNode(void **node, void *graph, void **before, size_t count, const struct host_node *given) {
    (void)before, (void)count;
    REQUIRE(given != NULL, finish(INVALID_VALUE));
    ADD(cuLaunchHostFunc(NULL, given->function, given->data));
}

static CUresult nothing(const void *data, size_t size) {
    (void)data, (void)size;
    return SUCCESS;
}

cudaError cudaGraphAddEmptyNode(void **node, void *graph, void **before, size_t count) {
    (void)before, (void)count;
    ADD(now_or_later(NULL, nothing, "", 0));
}
