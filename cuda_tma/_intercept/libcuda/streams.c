/* The entries for streams and events. Each operation is complete when its entry returns, so no entry waits. */
#include "graphs/graphs.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAM = 0x57BEA400, EVENT = 0xE7E47000, DEAD = 0xDEAD0000 };

struct stream {
    uint32_t magic, flags;
    int priority;
    uint64_t number;
    void *context;
    struct frontier frontier;
};

struct event {
    uint32_t magic, flags;
    struct frontier frontier;
    struct timespec recorded;
    int is_recorded;
};

static uint64_t streams = 2;

/* The handles 0, 1 and 2 are those of the default streams. */
int is_stream(const void *stream) {
    return (uintptr_t)stream <= 2 || kind_of(stream) == STREAM;
}

static int is_event(const struct event *event) {
    return kind_of(event) == EVENT;
}

struct frontier *frontier_of(void *stream) {
    return (uintptr_t)stream > 2 && is_stream(stream) ? &((struct stream *)stream)->frontier : NULL;
}

static CUresult given_stream(const void *stream) {
    CHECK(ready_in_context());
    return is_stream(stream) ? SUCCESS : INVALID_HANDLE;
}

CUresult cuStreamCreateWithPriority(void **stream, unsigned flags, int priority) {
    CHECK(ready_in_context());
    REQUIRE(stream != NULL && flags <= 1, INVALID_VALUE);
    struct stream *made = make_handle(sizeof *made);
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    *made = (struct stream){STREAM, flags, priority, __atomic_add_fetch(&streams, 1, __ATOMIC_RELAXED),
                            current_context(), {0, 0, NULL}};
    *stream = made;
    return SUCCESS;
}

CUresult cuStreamCreate(void **stream, unsigned flags) {
    return cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(void *stream) {
    CHECK(ready());
    REQUIRE((uintptr_t)stream > 2 && is_stream(stream), INVALID_HANDLE);
    ((struct stream *)stream)->magic = DEAD;
    return SUCCESS;
}

CUresult cuStreamSynchronize(void *stream) {
    CHECK(given_stream(stream));
    return is_capturing(stream) ? CAPTURE_UNSUPPORTED : SUCCESS;
}

CUresult cuStreamQuery(void *stream) {
    return cuStreamSynchronize(stream);
}

CUresult cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
    (void)flags;
    CHECK(given_stream(stream));
    REQUIRE(is_event(event), INVALID_HANDLE);
    struct frontier *frontier = frontier_of(stream);
    return frontier != NULL ? join(frontier, &((struct event *)event)->frontier) : SUCCESS;
}

CUresult cuStreamGetFlags(void *stream, unsigned *flags) {
    CHECK(given_stream(stream));
    REQUIRE(flags != NULL, INVALID_VALUE);
    *flags = (uintptr_t)stream > 2 ? ((struct stream *)stream)->flags : 0;
    return SUCCESS;
}

CUresult cuStreamGetPriority(void *stream, int *priority) {
    CHECK(given_stream(stream));
    REQUIRE(priority != NULL, INVALID_VALUE);
    *priority = (uintptr_t)stream > 2 ? ((struct stream *)stream)->priority : 0;
    return SUCCESS;
}

CUresult cuStreamGetId(void *stream, uint64_t *number) {
    CHECK(given_stream(stream));
    REQUIRE(number != NULL, INVALID_VALUE);
    *number = (uintptr_t)stream > 2 ? ((struct stream *)stream)->number : (uintptr_t)stream;
    return SUCCESS;
}

CUresult cuStreamGetCtx(void *stream, void **context) {
    CHECK(given_stream(stream));
    REQUIRE(context != NULL, INVALID_VALUE);
    *context = (uintptr_t)stream > 2 ? ((struct stream *)stream)->context : current_context();
    return SUCCESS;
}

CUresult cuStreamGetDevice(void *stream, CUdevice *device) {
    CHECK(given_stream(stream));
    REQUIRE(device != NULL, INVALID_VALUE);
    *device = 0;
    return SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    CHECK(ready());
    REQUIRE(mode != NULL, INVALID_VALUE);
    static __thread int current;
    int before = current;
    current = *mode;
    *mode = before;
    return SUCCESS;
}

CUresult run_call(const void *data, size_t size) {
    const struct call *call = data;
    (void)size;
    call->function(call->data);
    return SUCCESS;
}

CUresult cuLaunchHostFunc(void *stream, void (*function)(void *), void *data) {
    CHECK(given_stream(stream));
    REQUIRE(function != NULL, INVALID_VALUE);
    struct call call = {function, data};
    return now_or_later(stream, HOST_NODE, run_call, &call, sizeof call);
}

CUresult cuStreamAddCallback(void *stream, void (*function)(void *, CUresult, void *), void *data, unsigned flags) {
    (void)flags;
    CHECK(given_stream(stream));
    REQUIRE(function != NULL, INVALID_VALUE);
    function(stream, SUCCESS, data);
    return SUCCESS;
}

CUresult cuStreamAttachMemAsync(void *stream, CUdeviceptr address, size_t size, unsigned flags) {
    (void)address, (void)size, (void)flags;
    return given_stream(stream);
}

/* ---- events ---- */

CUresult cuEventCreate(void **event, unsigned flags) {
    CHECK(ready_in_context());
    REQUIRE(event != NULL, INVALID_VALUE);
    struct event *made = make_handle(sizeof *made);
    REQUIRE(made != NULL, OUT_OF_MEMORY);
    made->magic = EVENT;
    made->flags = flags;
    *event = made;
    return SUCCESS;
}

CUresult cuEventDestroy_v2(void *event) {
    CHECK(ready());
    REQUIRE(is_event(event), INVALID_HANDLE);
    ((struct event *)event)->magic = DEAD;
    return SUCCESS;
}

static CUresult record(struct event *event) {
    clock_gettime(CLOCK_MONOTONIC, &event->recorded);
    event->is_recorded = 1;
    return SUCCESS;
}

/* A node of a graph can record an event. */
CUresult run_record(const void *data, size_t size) {
    void *event;
    REQUIRE(size == sizeof event, INVALID_VALUE);
    memcpy(&event, data, sizeof event);
    return is_event(event) ? record(event) : INVALID_HANDLE;
}

CUresult cuEventRecord(void *event, void *stream) {
    CHECK(given_stream(stream));
    REQUIRE(is_event(event), INVALID_HANDLE);
    struct event *given = event;
    if (is_capturing(stream)) {
        given->frontier.count = 0;
        return join(&given->frontier, frontier_of(stream));
    }
    given->frontier.capture = 0;
    return record(given);
}

CUresult cuEventRecordWithFlags(void *event, void *stream, unsigned flags) {
    (void)flags;
    return cuEventRecord(event, stream);
}

CUresult cuEventSynchronize(void *event) {
    CHECK(ready());
    return is_event(event) ? SUCCESS : INVALID_HANDLE;
}

CUresult cuEventQuery(void *event) {
    return cuEventSynchronize(event);
}

CUresult cuEventElapsedTime_v2(float *milliseconds, void *first, void *last) {
    CHECK(ready());
    REQUIRE(milliseconds != NULL, INVALID_VALUE);
    REQUIRE(is_event(first) && is_event(last), INVALID_HANDLE);
    const struct event *a = first, *b = last;
    REQUIRE(!((a->flags | b->flags) & 2) && a->is_recorded && b->is_recorded, INVALID_HANDLE);
    *milliseconds = 1e3f * (b->recorded.tv_sec - a->recorded.tv_sec) +
                    1e-6f * (b->recorded.tv_nsec - a->recorded.tv_nsec);
    return SUCCESS;
}

CUresult cuEventElapsedTime(float *milliseconds, void *first, void *last) {
    return cuEventElapsedTime_v2(milliseconds, first, last);
}
