"""The limit on a kernel's dynamic shared memory.

By default, static and dynamic shared memory have 48 KB together.

The sources are the CUDA C++ Programming Guide, compute capability 9.0, "Shared Memory", and the CUDA driver API,
cuKernelSetAttribute.
"""

from contextlib import suppress

from libc.stdint cimport uint32_t

from .._cuda.driver cimport CUcontext, CUfunction, CUresult, driver, ensure_driver, require_success
from .._read.context cimport device_of, enter_context
from .signature cimport Signature, signature_of

from .._read.context import current_device
from ..rules import _launches

cdef enum:  # SHARED_SIZE_BYTES and the constants after it are values of CUfunction_attribute and CUdevice_attribute.
    SHARED_SIZE_BYTES = 1
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97


cdef int allow_shared_memory(Configuration configuration, Signature signature, KnownStream stream) except -1:
    """Allow a kernel the dynamic shared memory of its configuration, on the device of a stream.

    The limit is raised at most once for each device, to all shared memory that the kernel's static memory leaves.
    """
    allow_shared_memory_in(stream.context, configuration.native.shared_mem_bytes, signature)
    configuration.allowed_in = stream.context_id
    return 0


cdef int allow_shared_memory_in(CUcontext context, uint32_t dynamic_bytes, Signature signature) except -1:
    """Allow a kernel the dynamic shared memory on the device of a context.

    NULL stands for the current context, in which a default stream runs.
    """
    cdef int device_id = device_of(context) if context != NULL else 0
    if context == NULL:
        enter_context(&context, &device_id)
    limit = signature.shared_limits.get(device_id)
    if limit is None or dynamic_bytes > limit:
        signature.shared_limits[device_id] = _raised_limit(signature, dynamic_bytes, device_id)
    return 0


cdef int _raised_limit(Signature signature, uint32_t dynamic_bytes, int device_id) except -1:
    """Return the kernel's limit on a device. Raise the limit first if it is too low."""
    cdef int limit = _attribute(signature, MAX_DYNAMIC_SHARED_SIZE_BYTES, device_id)
    cdef int static_bytes, per_block = 0
    cdef CUfunction kernel = signature.function
    cdef CUresult result
    if dynamic_bytes <= <uint32_t>limit:
        return limit
    static_bytes = _attribute(signature, SHARED_SIZE_BYTES, device_id)
    require_success(driver.cuDeviceGetAttribute(&per_block, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device_id),
                    "cuDeviceGetAttribute")
    limit = per_block - static_bytes
    if dynamic_bytes > <uint32_t>limit:
        raise _launches.shared_memory_limit(signature.name, dynamic_bytes, static_bytes, per_block, device_id)
    with nogil:  # The driver's call may have to load the kernel; see call.enter.
        result = driver.cuKernelSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES, limit, kernel, device_id)
    require_success(result, "cuKernelSetAttribute")
    return limit


def allow_on_current_device(kernel, dynamic_bytes):
    """Raise the kernel's limit on a device as far as possible. A launch reports a limit that is still too low."""
    cdef Signature signature
    ensure_driver()
    signature = signature_of(kernel)
    device_id = current_device()
    with suppress(ValueError):
        signature.shared_limits[device_id] = _raised_limit(signature, dynamic_bytes, device_id)


def static_shared_bytes_of(kernel):
    """Return the shared memory that the compiler allocated for a kernel on the current device."""
    ensure_driver()
    return _attribute(signature_of(kernel), SHARED_SIZE_BYTES, current_device())


cdef int _attribute(Signature signature, int attribute, int device_id) except -1:
    cdef CUfunction kernel = signature.function
    cdef CUresult result
    cdef int value = 0
    with nogil:
        result = driver.cuKernelGetAttribute(&value, attribute, kernel, device_id)
    require_success(result, "cuKernelGetAttribute")
    return value
