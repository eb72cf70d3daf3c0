"""The descriptor, for the other extension modules."""

from libc.stdint cimport uint32_t, uint64_t

from ._dlpack cimport ExportedTensor
from ._driver cimport CUcontext

cdef enum:
    MAX_RANK = 5
    MAP_BYTES = 128       # sizeof(CUtensorMap)
    MAP_ALIGNMENT = 128   # cuda.h since CUDA 13: alignas(128); earlier 64


cdef struct TiledArguments:  # what cuTensorMapEncodeTiled takes, in driver order; zero beyond the rank, to compare
    uint64_t global_address
    uint64_t global_dim[MAX_RANK]
    uint64_t global_strides[MAX_RANK]
    uint32_t box_dim[MAX_RANK]
    uint32_t element_strides[MAX_RANK]
    uint32_t data_type
    uint32_t rank
    uint32_t interleave
    uint32_t swizzle
    uint32_t l2_promotion
    uint32_t oob_fill


cdef class TensorMapDescriptor:
    cdef unsigned char _storage[MAP_BYTES + MAP_ALIGNMENT - 8]   # holds the map at its first aligned address
    cdef TiledArguments _arguments
    cdef uint32_t _dtype             # the tensor's DLPack dtype, for replace_address
    cdef int _device_id
    cdef CUcontext _context
    cdef ExportedTensor _exported    # owns the memory's references; None after replace_address(int)
    cdef object _options
    cdef object __weakref__

    cdef void* map(self) noexcept
    cdef int _require_same_tensor(self, ExportedTensor tensor) except -1
    cdef int _put_address(self, address) except -1
