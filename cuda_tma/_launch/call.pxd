"""The driver's launch, for launch() and for prepared launches."""

from .._cuda.driver cimport CUfunction, CUresult, LaunchConfigC, driver
from .._cuda.free_threading cimport load_acquire
from .._read.stream cimport KnownStream
from .signature cimport Signature

cdef enum:  # CU_LAUNCH_PARAM_...: these mark a block of arguments for the driver
    END = 0
    BUFFER_POINTER = 1
    BUFFER_SIZE = 2


cdef inline CUresult call_driver(
        const LaunchConfigC* native, CUfunction function, void* block, size_t block_bytes) noexcept:
    # One block instead of a pointer to each argument: the driver takes some 20 ns less for four maps (H200 host).
    cdef void** extra = [<void*>BUFFER_POINTER, block, <void*>BUFFER_SIZE, &block_bytes, <void*>END]
    cdef CUresult result
    # Releasing the GIL costs 66 to 70 ns (H200 host, Python 3.12), but keeping it can hang: a launch blocks while the
    # queue is full, and the queue may wait for a host function in Python (observed: driver 580, launches after a
    # cuLaunchHostFunc).
    with nogil:
        result = driver.cuLaunchKernelEx(native, function, NULL, extra)
    return result


cdef inline CUfunction function_on(KnownStream stream, Signature signature) noexcept:
    """Return the function to launch: the kernel's function in its first context, and in others the kernel itself.

    The driver launches the former some 40 ns faster, because it looks up the latter every time. But a look-up by
    cuKernelGetFunction costs about a microsecond (H200, driver 580), so there is only one.
    """
    if stream.context_id == 0:
        return signature.function
    if load_acquire(&signature.context_id) == 0:
        enter(stream, signature)
    return signature.function_in_context if signature.context_id == stream.context_id else signature.function


cdef int enter(KnownStream stream, Signature signature) noexcept
cdef object refused(CUresult result, Signature signature, object config)
