"""The contexts of maps and memory: the current context, its device, and the device that owns an address."""

from libc.stdint cimport uint32_t, uint64_t

from .._cuda.free_threading cimport FREE_THREADED  # no-cython-lint: PER_THREAD comes with it
from .dlpack cimport DLTensor, address_of, kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
from .._cuda.driver cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUcontext, CUresult, driver, ensure_driver, require_success)

from ..rules import _refusals
from .._compute_capability import NEWEST_COMPUTE_CAPABILITY

cdef enum:  # The constants of the enum are values of CUpointer_attribute and CUmemorytype.
    POINTER_MEMORY_TYPE = 2
    POINTER_IS_MANAGED = 8
    POINTER_DEVICE_ORDINAL = 9
    MEMORYTYPE_HOST = 1

cdef extern from *:
    """
    static PER_THREAD void *last_context;  /* This context has the device below. */
    static PER_THREAD int last_device;
    """
    CUcontext last_context
    int last_device


cdef int enter_context(CUcontext* context, int* device_id) except -1:
    """Return the context and the device in which a map is made.

    The function keeps the device of the last context, because a query costs a fifth of the driver's encode. A destroyed
    context's handle may return as the handle of another device's context. Memory is then checked against the old device
    until another context becomes current. Primary contexts, which torch and cuda.core use, keep their handles.
    """
    global last_context
    ensure_driver()
    if driver.cuCtxGetCurrent(context) != CUDA_SUCCESS or context[0] == NULL:
        raise _refusals.no_context()
    if context[0] != last_context:
        require_success(driver.cuCtxGetDevice(&last_device), "cuCtxGetDevice")
        last_context = context[0]
    device_id[0] = last_device
    return 0


def current_device():
    """Return the ordinal of the device of the current context."""
    cdef CUcontext context
    cdef int device_id
    enter_context(&context, &device_id)
    return device_id


cdef int device_of(CUcontext context) noexcept:
    """Return the ordinal of the device of a context, or -1."""
    cdef int device_id = -1
    if driver.cuCtxPushCurrent(context) == CUDA_SUCCESS:
        driver.cuCtxGetDevice(&device_id)
        driver.cuCtxPopCurrent(&context)
    return device_id


cdef bint share_memory(CUcontext one, CUcontext other) noexcept:
    """Return whether maps and memory of one context are also valid in another context.

    A green context is a part of the multiprocessors of a device. The memory of a green context is the memory of the
    device's primary context (CUDA driver API, Green Contexts).
    """
    cdef int device_id = device_of(one)
    return (device_id >= 0 and device_id == device_of(other)
            and _is_primary_or_green(one, device_id) and _is_primary_or_green(other, device_id))


cdef bint _is_primary_or_green(CUcontext context, int device_id) noexcept:
    cdef CUcontext popped, primary = NULL
    cdef void* green = NULL
    cdef uint32_t flags
    cdef int is_active = 0
    if driver.cuStreamGetGreenCtx != NULL and driver.cuCtxPushCurrent(context) == CUDA_SUCCESS:
        driver.cuStreamGetGreenCtx(NULL, &green)  # The default stream (NULL) gives the current context.
        driver.cuCtxPopCurrent(&popped)
    if green != NULL:
        return True
    driver.cuDevicePrimaryCtxGetState(device_id, &flags, &is_active)
    if is_active and driver.cuDevicePrimaryCtxRetain(&primary, device_id) == CUDA_SUCCESS:
        driver.cuDevicePrimaryCtxRelease(device_id)
    return context == primary


cdef tuple compute_capability(int device_id):
    cdef int major = 0, minor = 0
    require_success(driver.cuDeviceGetAttribute(&major, COMPUTE_CAPABILITY_MAJOR, device_id), "cuDeviceGetAttribute")
    require_success(driver.cuDeviceGetAttribute(&minor, COMPUTE_CAPABILITY_MINOR, device_id), "cuDeviceGetAttribute")
    return min((major, minor), NEWEST_COMPUTE_CAPABILITY)


cdef int require_memory(DLTensor* tensor) except -1:
    if address_of(tensor) == 0:
        raise _refusals.no_memory()
    return 0


cdef int locate(DLTensor* tensor) except -1:
    """Set the owner of the memory in `tensor`, if the exporter did not report it or assigned pinned memory to the CPU.

    Memory does not move, so a view needs no further query when it is used again. The function refuses memory that no
    NVIDIA GPU can read.
    """
    if tensor.device_type == kDLCPU or tensor.device_type == 0:
        tensor.device_type = _memory_type(address_of(tensor), <int*>&tensor.device_id)
    if tensor.device_type != kDLCUDA and tensor.device_type != kDLCUDAHost and tensor.device_type != kDLCUDAManaged:
        raise _refusals.device_type(tensor.device_type)
    return 0


cdef int require_device(const DLTensor* tensor, int device_id) except -1:
    """Refuse located memory of another device, unless the memory is managed."""
    if tensor.device_type == kDLCUDA and tensor.device_id != device_id and not _is_managed(address_of(tensor)):
        raise _refusals.other_device(tensor.device_id, device_id)
    return 0


cdef int _memory_type(uint64_t address, int* device_id) except -1:
    """Return the driver's DLDeviceType of the memory, and for kDLCUDA also the device."""
    cdef unsigned int kind = 0
    cdef CUresult result = driver.cuPointerGetAttribute(&kind, POINTER_MEMORY_TYPE, address)
    if result == CUDA_ERROR_INVALID_VALUE:
        raise _refusals.host_memory(address)
    require_success(result, "cuPointerGetAttribute")
    if _is_managed(address):
        return kDLCUDAManaged
    if kind == MEMORYTYPE_HOST:
        return kDLCUDAHost
    require_success(driver.cuPointerGetAttribute(device_id, POINTER_DEVICE_ORDINAL, address), "cuPointerGetAttribute")
    return kDLCUDA


cdef bint _is_managed(uint64_t address) noexcept:
    """Return whether memory is managed.

    An exporter may assign managed memory to one device.
    """
    cdef unsigned int is_managed = 0
    return driver.cuPointerGetAttribute(&is_managed, POINTER_IS_MANAGED, address) == CUDA_SUCCESS and is_managed
