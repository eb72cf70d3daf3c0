"""The current context and whose memory an address is, for the other extension modules."""

from libc.stdint cimport uint64_t

from ._dlpack cimport DLTensor
from ._driver cimport CUcontext


cdef int enter_context(CUcontext* context, int* device_id) except -1
cdef tuple compute_capability(int device_id)
cdef int require_access(DLTensor* tensor, int device_id) except -1
cdef int memory_type(uint64_t address, int* device_id) except -1
