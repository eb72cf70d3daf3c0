"""Objects that a graph keeps alive by a CUDA user object.

All graphs that are made from the graph, and all their launches, share the user object.

The driver releases a user object on a thread of its own, which may call neither CUDA nor Python (CUDA programming
guide, "CUDA User Objects"). That thread only lists the object, and Python's main thread releases it. Up to CPython
3.12, the main thread handles the request of a native thread when it next takes the GIL (CPython issue 95820).
"""

from libc.stdint cimport uint64_t, uintptr_t

from .._cuda.driver cimport (
    CUDA_SUCCESS, CUgraph, CUgraphNode, CUresult, CUstream, CUuserObject, driver, ensure_driver, require_success)
from .._read.stream cimport known_stream
from .._tensor_map cimport TensorMapDescriptor
from .prepared cimport PreparedLaunch

cdef extern from *:
    """
    #include <stdatomic.h>

    typedef struct Kept { PyObject *object; struct Kept *next; } Kept;
    static _Atomic(Kept *) released;

    /* Python's main thread calls this function, or keep() calls it if the queue of pending calls was full. */
    static int drop_released(void *unused) {
        Kept *each = atomic_exchange(&released, NULL);
        (void)unused;
        while (each != NULL) {
            Kept *next = each->next;
            Py_DECREF(each->object);
            PyMem_RawFree(each);
            each = next;
        }
        return 0;
    }

    /* The driver calls this function (CUhostFn) on any thread, without the GIL. */
    static void release(void *kept) {
        Kept *own = kept;
        own->next = atomic_load(&released);
        while (!atomic_compare_exchange_weak(&released, &own->next, own)) {
        }
        if (Py_IsInitialized())
            Py_AddPendingCall(drop_released, NULL);
    }

    static Kept *new_kept(PyObject *object) {
        Kept *kept = PyMem_RawMalloc(sizeof(Kept));
        if (kept != NULL) {
            Py_INCREF(object);
            kept->object = object;
        }
        return kept;
    }
    """
    int drop_released(void*)
    void release(void*)
    void* new_kept(object)

cdef enum:
    NO_DESTRUCTOR_SYNC = 1  # NO_DESTRUCTOR_SYNC is CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.
    MOVE = 1  # MOVE is CU_GRAPH_USER_OBJECT_MOVE.
    CAPTURE_ACTIVE = 1  # CAPTURE_ACTIVE is CU_STREAM_CAPTURE_STATUS_ACTIVE.


def keep(uintptr_t graph, tuple objects):
    """Let a CUgraph keep objects alive, such as the tensor of a descriptor, or the arguments of a prepared launch."""
    cdef CUuserObject user_object = NULL
    cdef CUresult result
    cdef void* kept
    ensure_driver()
    drop_released(NULL)
    kept = new_kept(tuple([_kept_of(each) for each in objects]))
    if kept == NULL:
        raise MemoryError
    result = driver.cuUserObjectCreate(&user_object, kept, <void*>release, 1, NO_DESTRUCTOR_SYNC)
    if result != CUDA_SUCCESS:
        release(kept)
        require_success(result, "cuUserObjectCreate")
    result = driver.cuGraphRetainUserObject(<CUgraph>graph, user_object, 1, MOVE)
    if result != CUDA_SUCCESS:
        driver.cuUserObjectRelease(user_object, 1)
        require_success(result, "cuGraphRetainUserObject")


cdef object _kept_of(object value):
    """Return the objects to keep alive.

    A descriptor may later get another tensor, and a prepared launch other arguments.
    """
    if isinstance(value, TensorMapDescriptor):
        return (<TensorMapDescriptor>value).held()
    if isinstance(value, PreparedLaunch):
        return (<PreparedLaunch>value).kernel, tuple([
            _kept_of(each) for each in (<PreparedLaunch>value)._arguments().maps])
    return value


def captured_graph(stream):
    """Return the CUgraph that a stream captures now as an int, or None if the stream does not capture."""
    cdef CUstream handle
    cdef int status = 0
    cdef uint64_t identity = 0
    cdef CUgraph graph = NULL
    cdef const CUgraphNode* dependencies
    cdef size_t count
    ensure_driver()
    handle = known_stream(stream).handle
    require_success(driver.cuStreamGetCaptureInfo(handle, &status, &identity, &graph, &dependencies, &count),
                    "cuStreamGetCaptureInfo")
    return <uintptr_t>graph if status == CAPTURE_ACTIVE else None
