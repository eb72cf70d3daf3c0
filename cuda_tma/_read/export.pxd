"""Reading any tensor, for the other extension modules."""

from libc.stdint cimport int64_t, uint64_t

from .dlpack cimport INLINE_NDIM, DLTensor, ExportedTensor


cdef struct Reading:
    DLTensor* tensor  # what was read: until Python runs that may change the tensor, or its owner goes
    DLTensor room     # where no other object holds that
    int64_t values[2 * INLINE_NDIM]


cdef object read(object tensor, Reading* reading)
cdef ExportedTensor export(object tensor)
cdef object source_of(object tensor, object owner)
cdef bint has_moved(object tensor, object owner, uint64_t address) except -1
