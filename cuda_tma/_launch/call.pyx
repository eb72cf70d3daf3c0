"""The search for the function that the driver launches, and the errors of a launch."""

cimport cython

from .._cuda.driver cimport CUDA_SUCCESS, CUcontext, CUfunction, CUresult, driver, error_name
from .._cuda.free_threading cimport store_release
from .._read.stream cimport KnownStream
from .signature cimport Signature

from .._cuda.core import CUDAError
from .._cuda_errors import explain_error


cdef int enter(KnownStream stream, Signature signature) noexcept:
    """Find the kernel in the context of a stream without the GIL, as call_driver does.

    The call may load the kernel, and loading waits for the device. For a kernel with local memory, the call hung while
    a host function in Python was running (driver 580).
    """
    cdef CUcontext popped, context = stream.context
    cdef CUfunction kernel = signature.function, function = kernel
    with nogil:
        if driver.cuCtxPushCurrent(context) == CUDA_SUCCESS:
            driver.cuKernelGetFunction(&function, kernel)
            driver.cuCtxPopCurrent(&popped)
    # The function is set once, and before the context, so that a thread that finds the context also finds the function.
    with cython.critical_section(signature):
        if signature.context_id == 0:
            signature.function_in_context = function
            store_release(&signature.context_id, stream.context_id)
    return 0


cdef object refused(CUresult result, Signature signature, object config):
    return CUDAError(f"{error_name(result)}: the driver refused to launch {signature.name} "
                     f"with {config!r}{explain_error(result)}")
