"""The arguments of the driver's encoders, in driver order, as a structure in C."""

from libc.stdint cimport uint32_t, uint64_t

from .._read.dlpack cimport DLTensor

cdef enum:
    MAX_RANK = 5


# TensorArguments contains the values of a tensor. Values beyond the rank are zero, so that two structures can be
# compared as a whole.
cdef struct TensorArguments:
    uint64_t global_address  # The address is first, so that the other values can be compared without it.
    uint64_t global_dim[MAX_RANK]
    uint64_t global_strides[MAX_RANK]
    uint32_t data_type
    uint32_t rank
    uint32_t alignment_bytes  # The address is a multiple of alignment_bytes.
    uint32_t dtype  # `dtype` is the tensor's dtype_key(), or 0 for a map of which only the bytes are known.


cdef int describe(DLTensor* tensor, int data_type, uint32_t interleave, TensorArguments* out) except -1
cdef int arguments_of(object params, TensorArguments* out) except -1
cdef uint64_t row_bytes(TensorArguments* tensor) noexcept


cdef inline int driver_index(int rank, int dim) noexcept:
    """Return the driver's index of a dimension.

    The driver counts dimensions from the innermost one, and tensors from the outermost one.
    """
    return rank - 1 - dim
