"""A kernel's parameter that is a typed map: which descriptors are of its type, and its map of a tensor."""

cimport cython
from libc.stdint cimport uint64_t

from .._compilable cimport Compilable
from .._cuda.driver cimport CUcontext
from .._tensor_map cimport TensorMapDescriptor

cdef enum:
    FIRST_FIXED = 1  # of a map's words of 64 bits, those of which a type fixes bits: 1, 6 and 7 (docs/fields.md)
    SECOND_FIXED = 6
    THIRD_FIXED = 7


@cython.final
cdef class TypedMap:
    cdef readonly object map_type
    cdef uint64_t dtype_codes  # of tensors that are given themselves: a bit for each of DLPack's type codes
    cdef Compilable options  # None of im2col: a tensor alone does not make such a map
    cdef uint64_t mask[3]    # of the words that are named above
    cdef uint64_t value[3]


cdef inline bint is_of_type(TypedMap typed, const void* map) noexcept:
    """Whether a map is one of this type. It takes no longer than to look up whether that was asked before."""
    cdef const uint64_t* words = <const uint64_t*>map
    return (((words[FIRST_FIXED] ^ typed.value[0]) & typed.mask[0])
            | ((words[SECOND_FIXED] ^ typed.value[1]) & typed.mask[1])
            | ((words[THIRD_FIXED] ^ typed.value[2]) & typed.mask[2])) == 0


cdef TypedMap typed_map(object map_type)
cdef int make(TypedMap typed, object tensor, void* target, CUcontext* context, int* device_id) except -1
cdef TensorMapDescriptor describe_tensor(TypedMap typed, object tensor, TensorMapDescriptor before)
