"""Where maps are made and memory can be reached: the current context, its device, and whose memory an address is."""

from libc.stdint cimport uint64_t

from ._dlpack cimport DLTensor, address_of, kDLCPU, kDLCUDA, kDLCUDAHost, kDLCUDAManaged
from ._driver cimport (
    CUDA_ERROR_INVALID_VALUE, CUDA_SUCCESS, CUcontext, CUresult, driver, ensure_driver, require_success)

from . import refusals

cdef enum:  # values of CUpointer_attribute and CUmemorytype
    POINTER_MEMORY_TYPE = 2
    POINTER_IS_MANAGED = 8
    POINTER_DEVICE_ORDINAL = 9
    MEMORYTYPE_HOST = 1

cdef CUcontext _last_context = NULL
cdef int _last_device = 0


cdef int enter_context(CUcontext* context, int* device_id) except -1:
    """The context and device in which a map is made.

    The device of the last context is remembered: asking costs as much as a fifth of the driver's encode. Should a
    context be destroyed and its handle be given to one of another device, then no worse follows than that memory is
    judged by the old device.
    """
    global _last_context, _last_device
    ensure_driver()
    if driver.cuCtxGetCurrent(context) != CUDA_SUCCESS or context[0] == NULL:
        raise refusals.no_context()
    if context[0] != _last_context:
        require_success(driver.cuCtxGetDevice(&_last_device), "cuCtxGetDevice")
        _last_context = context[0]
    device_id[0] = _last_device
    return 0


def current_device():
    """The ordinal of the current context's device."""
    cdef CUcontext context
    cdef int device_id
    enter_context(&context, &device_id)
    return device_id


cdef tuple compute_capability(int device_id):
    cdef int major = 0, minor = 0
    require_success(driver.cuDeviceGetAttribute(&major, COMPUTE_CAPABILITY_MAJOR, device_id), "cuDeviceGetAttribute")
    require_success(driver.cuDeviceGetAttribute(&minor, COMPUTE_CAPABILITY_MINOR, device_id), "cuDeviceGetAttribute")
    return major, minor


cdef int judge_access(DLTensor* tensor, int device_id) except -1:
    """:func:`require_access`, where it is not plain."""
    cdef uint64_t address = address_of(tensor)
    if address == 0:
        raise refusals.no_memory()
    if tensor.device_type == kDLCPU or tensor.device_type == 0:
        # Memory stays where it is: what is found is kept, so that a view that is used again need not ask again.
        tensor.device_type = memory_type(address, <int*>&tensor.device_id)
    if tensor.device_type == kDLCUDA:
        if tensor.device_id != device_id and not _is_managed(address):
            raise refusals.other_device(tensor.device_id, device_id)
    elif tensor.device_type != kDLCUDAHost and tensor.device_type != kDLCUDAManaged:
        raise refusals.device_type(tensor.device_type)
    return 0


cdef int memory_type(uint64_t address, int* device_id) except -1:
    """Ask the driver whose memory it is, where the exporter did not say or called pinned memory the CPU's.

    Returns a DLDeviceType, and for kDLCUDA the device.
    """
    cdef unsigned int kind = 0
    cdef CUresult result = driver.cuPointerGetAttribute(&kind, POINTER_MEMORY_TYPE, address)
    if result == CUDA_ERROR_INVALID_VALUE:
        raise refusals.host_memory(address)
    require_success(result, "cuPointerGetAttribute")
    if _is_managed(address):
        return kDLCUDAManaged
    if kind == MEMORYTYPE_HOST:
        return kDLCUDAHost
    require_success(driver.cuPointerGetAttribute(device_id, POINTER_DEVICE_ORDINAL, address), "cuPointerGetAttribute")
    return kDLCUDA


cdef bint _is_managed(uint64_t address) noexcept:
    """Whether it is managed memory, which an exporter may call one device's."""
    cdef unsigned int is_managed = 0
    return driver.cuPointerGetAttribute(&is_managed, POINTER_IS_MANAGED, address) == CUDA_SUCCESS and is_managed
