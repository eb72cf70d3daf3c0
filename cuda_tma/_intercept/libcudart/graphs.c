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
