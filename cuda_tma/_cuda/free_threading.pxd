"""Protection of shared state in builds of CPython without a GIL. With a GIL, the protection costs almost nothing.

Without a GIL, the package keeps state that several threads share in one of four ways. It sets the state once, before
any thread can find it. It keeps the state in a dict, whose operations are atomic. The package keeps one value for each
thread (PER_THREAD). Or it reads and writes the state in a critical section of the owner (``cython.critical_section``).
With a GIL, a critical section still takes and releases a reference to the owner. Code that runs in every launch
therefore avoids the section, as copy_map() does.
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
