"""The driver's launch call, which launch() and prepared launches share."""

from .._cuda.driver cimport CUfunction, CUresult, LaunchConfigC, driver
from .._cuda.free_threading cimport load_acquire
from .._read.stream cimport KnownStream
from .signature cimport Signature

cdef enum:  # END, BUFFER_POINTER and BUFFER_SIZE (CU_LAUNCH_PARAM_...) mark a block of arguments for the driver.
    END = 0
    BUFFER_POINTER = 1
    BUFFER_SIZE = 2


cdef inline CUresult call_driver(
        const LaunchConfigC* native, CUfunction function, void* block, size_t block_bytes) noexcept:
    # A launch with one block takes about 20 ns less than a launch with pointers to four maps (host of an H200).
    cdef void** extra = [<void*>BUFFER_POINTER, block, <void*>BUFFER_SIZE, &block_bytes, <void*>END]
    cdef CUresult result
    # Releasing the GIL costs 66 to 70 ns (host of an H200, Python 3.12). A launch that keeps the GIL can hang: it
    # blocks while the queue is full, and the queue may wait for a host function in Python (observed: driver 580,
    # launches after cuLaunchHostFunc).
    with nogil:
        result = driver.cuLaunchKernelEx(native, function, NULL, extra)
    return result


cdef inline CUfunction function_on(KnownStream stream, Signature signature) noexcept:
    """Return the function to launch: the kernel's function in its first context, or else the kernel itself.

    The driver launches the function some 40 ns faster, because it looks up the kernel every time. A look-up by
    cuKernelGetFunction costs about a microsecond (H200, driver 580), so the signature keeps only one function.
    """
    if stream.context_id == 0:
        return signature.function
    if load_acquire(&signature.context_id) == 0:
        enter(stream, signature)
    return signature.function_in_context if signature.context_id == stream.context_id else signature.function


cdef int enter(KnownStream stream, Signature signature) noexcept
cdef object refused(CUresult result, Signature signature, object config)
