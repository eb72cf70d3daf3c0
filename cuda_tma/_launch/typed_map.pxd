"""A parameter that is a typed map: its type, the descriptors of the type, and the map that it makes of a tensor."""

cimport cython
from libc.stdint cimport uint64_t

from .._compilable cimport Compilable
from .._cuda.driver cimport CUcontext
from .._tensor_map cimport TensorMapDescriptor

cdef enum:
    FIRST_FIXED = 1  # A type fixes bits in three 64-bit words of a map: 1, 6 and 7 (docs/fields.md).
    SECOND_FIXED = 6
    THIRD_FIXED = 7


@cython.final
cdef class TypedMap:
    cdef readonly object map_type
    cdef uint64_t dtype_codes  # `dtype_codes` has a bit for each type code of DLPack that a tensor argument may have.
    # The options are None for im2col, because a tensor by itself does not determine such a map.
    cdef Compilable options
    cdef uint64_t mask[3]  # The mask selects bits of these three words.
    cdef uint64_t value[3]


cdef inline bint is_of_type(TypedMap typed, const void* map) noexcept:
    """Return whether a map is of this type. The comparison is as fast as a look-up of an earlier result."""
    cdef const uint64_t* words = <const uint64_t*>map
    return (((words[FIRST_FIXED] ^ typed.value[0]) & typed.mask[0])
            | ((words[SECOND_FIXED] ^ typed.value[1]) & typed.mask[1])
            | ((words[THIRD_FIXED] ^ typed.value[2]) & typed.mask[2])) == 0


cdef TypedMap typed_map(object map_type)
cdef int make(TypedMap typed, object tensor, void* target, CUcontext* context, int* device_id) except -1
cdef TensorMapDescriptor describe_tensor(TypedMap typed, object tensor, TensorMapDescriptor before)
