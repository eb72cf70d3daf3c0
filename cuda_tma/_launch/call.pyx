"""The function for the driver to launch, and its errors."""

cimport cython

from .._cuda.driver cimport CUDA_SUCCESS, CUcontext, CUfunction, CUresult, driver, error_name
from .._cuda.free_threading cimport store_release
from .._read.stream cimport KnownStream
from .signature cimport Signature

from .._cuda.core import CUDAError
from .._cuda_errors import explain_error


cdef int enter(KnownStream stream, Signature signature) noexcept:
    """Find the kernel in a stream's context, without the GIL, as in call_driver.

    This may load the kernel, and loading waits for the device. For a kernel with local memory it hung while a host
    function in Python was running (driver 580).
    """
    cdef CUcontext popped, context = stream.context
    cdef CUfunction kernel = signature.function, function = kernel
    with nogil:
        if driver.cuCtxPushCurrent(context) == CUDA_SUCCESS:
            driver.cuKernelGetFunction(&function, kernel)
            driver.cuCtxPopCurrent(&popped)
    with cython.critical_section(signature):  # once, the function first: a thread that sees the context finds it
        if signature.context_id == 0:
            signature.function_in_context = function
            store_release(&signature.context_id, stream.context_id)
    return 0


cdef object refused(CUresult result, Signature signature, object config):
    return CUDAError(f"{error_name(result)}: the driver refused to launch {signature.name} "
                     f"with {config!r}{explain_error(result)}")
