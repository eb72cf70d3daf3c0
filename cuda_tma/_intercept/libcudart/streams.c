/* Streams and events. */
#include "runtime.h"

cudaError cudaStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    RUN(cuStreamCreateWithPriority(stream, flags, priority));
}

cudaError cudaStreamCreateWithFlags(void **stream, unsigned flags) {
    RUN(cuStreamCreateWithPriority(stream, flags, 0));
}

cudaError cudaStreamCreate(void **stream) {
    RUN(cuStreamCreateWithPriority(stream, 0, 0));
}

cudaError cudaStreamDestroy(void *stream) {
    RUN(cuStreamDestroy_v2(stream));
}

cudaError cudaStreamSynchronize(void *stream) {
    RUN(cuStreamSynchronize(stream));
}
ALSO(cudaStreamSynchronize, cudaStreamSynchronize_ptsz)

cudaError cudaStreamQuery(void *stream) {
    RUN(cuStreamQuery(stream));
}
ALSO(cudaStreamQuery, cudaStreamQuery_ptsz)

cudaError cudaStreamWaitEvent(void *stream, void *event, unsigned flags) {
    RUN(cuStreamWaitEvent(stream, event, flags));
}
ALSO(cudaStreamWaitEvent, cudaStreamWaitEvent_ptsz)

cudaError cudaStreamGetFlags(void *stream, unsigned *flags) {
    RUN(cuStreamGetFlags(stream, flags));
}
ALSO(cudaStreamGetFlags, cudaStreamGetFlags_ptsz)

cudaError cudaStreamGetPriority(void *stream, int *priority) {
    RUN(cuStreamGetPriority(stream, priority));
}
ALSO(cudaStreamGetPriority, cudaStreamGetPriority_ptsz)

cudaError cudaStreamGetId(void *stream, uint64_t *number) {
    RUN(cuStreamGetId(stream, number));
}
ALSO(cudaStreamGetId, cudaStreamGetId_ptsz)

static cudaError device_of(int *device) {
    REQUIRE(device != NULL, INVALID_VALUE);
    *device = 0;
    return SUCCESS;
}

cudaError cudaStreamGetDevice(void *stream, int *device) {
    (void)stream;
    RUN(device_of(device));
}
ALSO(cudaStreamGetDevice, cudaStreamGetDevice_ptsz)

cudaError cudaStreamAddCallback(void *stream, void (*function)(void *, cudaError, void *), void *data, unsigned flags) {
    RUN(cuStreamAddCallback(stream, function, data, flags));
}
ALSO(cudaStreamAddCallback, cudaStreamAddCallback_ptsz)

/* ---- events ---- */

cudaError cudaEventCreateWithFlags(void **event, unsigned flags) {
    RUN(cuEventCreate(event, flags));
}

cudaError cudaEventCreate(void **event) {
    RUN(cuEventCreate(event, 0));
}

cudaError cudaEventDestroy(void *event) {
    RUN(cuEventDestroy_v2(event));
}

cudaError cudaEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    RUN(cuEventRecordWithFlags(event, stream, flags));
}
ALSO(cudaEventRecordWithFlags, cudaEventRecordWithFlags_ptsz)

cudaError cudaEventRecord(void *event, void *stream) {
    RUN(cuEventRecordWithFlags(event, stream, 0));
}
ALSO(cudaEventRecord, cudaEventRecord_ptsz)

cudaError cudaEventSynchronize(void *event) {
    RUN(cuEventSynchronize(event));
}

cudaError cudaEventQuery(void *event) {
    RUN(cuEventQuery(event));
}

cudaError cudaEventElapsedTime(float *milliseconds, void *first, void *last) {
    RUN(cuEventElapsedTime_v2(milliseconds, first, last));
}
ALSO(cudaEventElapsedTime, cudaEventElapsedTime_v2)
