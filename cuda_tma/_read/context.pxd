"""The current context, and the owner of an address, for the other extension modules."""

from .dlpack cimport DLTensor, kDLCUDA
from .._cuda.driver cimport CUcontext


cdef enum:  # COMPUTE_CAPABILITY_MAJOR and the constants after it are values of CUdevice_attribute.
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76


cdef int enter_context(CUcontext* context, int* device_id) except -1
cdef int device_of(CUcontext context) noexcept
cdef bint share_memory(CUcontext one, CUcontext other) noexcept
cdef tuple compute_capability(int device_id)
cdef int require_memory(DLTensor* tensor) except -1
cdef int locate(DLTensor* tensor) except -1
cdef int require_device(const DLTensor* tensor, int device_id) except -1


cdef inline int require_access(DLTensor* tensor, int device_id) except -1:
    """Refuse memory that a device cannot read. Every device can read pinned and managed memory.

    If the exporter did not report the owner of the memory, the function locate() queries the driver.
    """
    if tensor.device_type == kDLCUDA and tensor.device_id == device_id and tensor.data != NULL:
        return 0
    require_memory(tensor)
    locate(tensor)
    return require_device(tensor, device_id)
