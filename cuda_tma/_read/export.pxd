"""Reading any tensor, for the other extension modules."""

from libc.stdint cimport int64_t, uint64_t

from .dlpack cimport INLINE_NDIM, DLTensor, ExportedTensor


cdef struct Reading:  # of what is read in place; layout_of() says where that is
    DLTensor room
    int64_t values[2 * INLINE_NDIM]


cdef object read(object tensor, Reading* reading)
cdef bint look_at_torch(object tensor, DLTensor* layout) except -1


cdef inline DLTensor* layout_of(object owner, Reading* reading) noexcept:
    """What read() read: until Python runs that may change the tensor, or its owner goes.

    It is asked for when the caller has the owner, which read() thereby returns as it got it. To hold it there first
    would take a reference and give it back at once, and such a pair is slow since Python 3.12, which writes half of the
    count and reads the whole: the processor must wait for its own store.
    """
    return &(<ExportedTensor>owner).layout if isinstance(owner, ExportedTensor) else &reading.room


cdef ExportedTensor export(object tensor)
cdef inline object source_of(object tensor, object owner):
    """The tensor that was read, where `tensor` may be a view of it."""
    return (<ExportedTensor>owner).source if isinstance(owner, ExportedTensor) else tensor


cdef bint has_moved(object tensor, object owner, uint64_t address) except -1
