"""The current context and whose memory an address is, for the other extension modules."""

from libc.stdint cimport uint64_t

from ._dlpack cimport DLTensor, kDLCUDA
from ._driver cimport CUcontext


cdef enum:  # values of CUdevice_attribute
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76


cdef int enter_context(CUcontext* context, int* device_id) except -1
cdef int device_of(CUcontext context) noexcept
cdef bint share_memory(CUcontext one, CUcontext other) noexcept
cdef tuple compute_capability(int device_id)
cdef int judge_access(DLTensor* tensor, int device_id) except -1
cdef int memory_type(uint64_t address, int* device_id) except -1


cdef inline int require_access(DLTensor* tensor, int device_id) except -1:
    """Refuse memory that a device cannot read. Pinned and managed memory is every device's."""
    if tensor.device_type == kDLCUDA and tensor.device_id == device_id and tensor.data != NULL:
        return 0
    return judge_access(tensor, device_id)
