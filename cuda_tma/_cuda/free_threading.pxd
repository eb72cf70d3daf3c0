"""State without a GIL (CPython's free-threaded builds); with a GIL, almost nothing here costs anything.

Without a GIL, state that several threads reach is kept in one of four ways. It is set once, before any thread can find
it. It is a dict, whose operations are atomic. It is one value for each thread (PER_THREAD). Or it is read and written
in a critical section of its owner (``cython.critical_section``). With a GIL, that still takes and releases a reference
to the owner, so code of every launch avoids it, as copy_map() does.
"""

from libc.stdint cimport uint64_t

cdef extern from *:
    """
    #ifndef CUDA_TMA_FREE_THREADED
    #ifdef Py_GIL_DISABLED
    #define CUDA_TMA_FREE_THREADED 1
    #define PER_THREAD _Thread_local
    #else
    #define CUDA_TMA_FREE_THREADED 0
    #define PER_THREAD
    #endif
    #define load_acquire(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)
    #define store_release(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)
    #endif
    """
    const bint FREE_THREADED "CUDA_TMA_FREE_THREADED"
    bint flag_acquire "load_acquire"(bint*) nogil
    void flag_release "store_release"(bint*, bint) nogil
    uint64_t load_acquire(uint64_t*) nogil
    void store_release(uint64_t*, uint64_t) nogil
