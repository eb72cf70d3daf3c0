"""From a tensor and options to what the driver's encoders take, in driver order."""

from libc.stdint cimport uint32_t, uint64_t

from .._read.dlpack cimport DLTensor
from .._cuda.driver cimport CUresult

cdef enum:
    MAX_RANK = 5
    SMALL = 1  # CUtensorMapAllocClass
    ANY_RANK = -1  # of options that do not say how many dimensions their tensor has


cdef struct TensorArguments:  # the tensor's part; zero beyond the rank, so that two can be compared whole
    uint64_t global_address       # first, so that they can be compared without it
    uint64_t global_dim[MAX_RANK]
    uint64_t global_strides[MAX_RANK]
    uint32_t data_type
    uint32_t rank
    uint32_t alignment_bytes  # of the address
    uint32_t dtype            # the tensor's: dtype_key(); 0 where only a map's bytes are known


cdef class CompiledOptions:
    """The options' part, compiled once from the (frozen) options that hold it. This is a tiled map's; _im2col has
    a subclass for each of the other modes."""

    cdef int rank
    cdef int data_type  # -1: follows from the tensor's dtype
    cdef int allocation_class  # -1: SMALL, where the driver can set it
    cdef uint32_t interleave, swizzle, l2_promotion, oob_fill
    cdef uint32_t box_dim[MAX_RANK]
    cdef uint32_t element_strides[MAX_RANK]

    cdef CUresult encode(self, void* target, TensorArguments* tensor, int device_id) noexcept
    cdef object params(self, TensorArguments* tensor)
    cdef dict common_params(self, TensorArguments* tensor)


cdef class Compilable:
    """What the options classes inherit: room for their compiled values."""

    cdef CompiledOptions values


cdef CompiledOptions compile_options(object options)


cdef inline CompiledOptions compiled(Compilable options):
    """The options' C values, made at first use. Options never change, so neither do these."""
    if options.values is None:
        options.values = compile_options(options)
    return options.values


cdef int describe(
    DLTensor* tensor, Compilable options, CompiledOptions values, TensorArguments* out) except -1
cdef int arguments_of(object params, TensorArguments* out) except -1
cdef uint64_t row_bytes(TensorArguments* tensor) noexcept
cdef int compile_common(CompiledOptions values, object options, int rank) except -1
