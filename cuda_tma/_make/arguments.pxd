"""From a tensor to the arguments of the driver's encoders, in driver order."""

from libc.stdint cimport uint32_t, uint64_t

from .._read.dlpack cimport DLTensor

cdef enum:
    MAX_RANK = 5


cdef struct TensorArguments:  # the tensor's part; zero beyond the rank, so that two can be compared whole
    uint64_t global_address  # first, so that the rest can be compared without it
    uint64_t global_dim[MAX_RANK]
    uint64_t global_strides[MAX_RANK]
    uint32_t data_type
    uint32_t rank
    uint32_t alignment_bytes  # of the address
    uint32_t dtype  # the tensor's dtype_key(); 0 if only a map's bytes are known


cdef int describe(DLTensor* tensor, int data_type, uint32_t interleave, TensorArguments* out) except -1
cdef int arguments_of(object params, TensorArguments* out) except -1
cdef uint64_t row_bytes(TensorArguments* tensor) noexcept


cdef inline int driver_index(int rank, int dim) noexcept:
    """Return the driver's index of a dimension: it counts from the innermost, tensors from the outermost."""
    return rank - 1 - dim
