/* The entries for streams and events. */
#include "runtime.h"

ENTRY(cudaStreamCreateWithPriority, (void **stream, unsigned flags, int priority),
      cuStreamCreateWithPriority(stream, flags, priority))
ENTRY(cudaStreamCreateWithFlags, (void **stream, unsigned flags), cuStreamCreateWithPriority(stream, flags, 0))
ENTRY(cudaStreamCreate, (void **stream), cuStreamCreateWithPriority(stream, 0, 0))
ENTRY(cudaStreamDestroy, (void *stream), cuStreamDestroy_v2(stream))
OF_STREAM(cudaStreamSynchronize, (void *stream), cuStreamSynchronize(stream))
OF_STREAM(cudaStreamQuery, (void *stream), cuStreamQuery(stream))
OF_STREAM(cudaStreamWaitEvent, (void *stream, void *event, unsigned flags), cuStreamWaitEvent(stream, event, flags))
OF_STREAM(cudaStreamGetFlags, (void *stream, unsigned *flags), cuStreamGetFlags(stream, flags))
OF_STREAM(cudaStreamGetPriority, (void *stream, int *priority), cuStreamGetPriority(stream, priority))
OF_STREAM(cudaStreamGetId, (void *stream, uint64_t *number), cuStreamGetId(stream, number))

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
OF_STREAM(cudaStreamAddCallback, (void *stream, void (*function)(void *, cudaError, void *), void *data, unsigned flags),
          cuStreamAddCallback(stream, function, data, flags))

/* ---- events ---- */

ENTRY(cudaEventCreateWithFlags, (void **event, unsigned flags), cuEventCreate(event, flags))
ENTRY(cudaEventCreate, (void **event), cuEventCreate(event, 0))
ENTRY(cudaEventDestroy, (void *event), cuEventDestroy_v2(event))
OF_STREAM(cudaEventRecordWithFlags, (void *event, void *stream, unsigned flags),
          cuEventRecordWithFlags(event, stream, flags))
OF_STREAM(cudaEventRecord, (void *event, void *stream), cuEventRecordWithFlags(event, stream, 0))
ENTRY(cudaEventSynchronize, (void *event), cuEventSynchronize(event))
ENTRY(cudaEventQuery, (void *event), cuEventQuery(event))
ENTRY(cudaEventElapsedTime, (float *milliseconds, void *first, void *last),
      cuEventElapsedTime_v2(milliseconds, first, last))
ALSO(cudaEventElapsedTime, cudaEventElapsedTime_v2)
