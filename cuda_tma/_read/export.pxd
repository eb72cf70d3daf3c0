"""The functions that read any tensor, for the other extension modules."""

from libc.stdint cimport int64_t, uint64_t

from .dlpack cimport INLINE_NDIM, DLTensor, ExportedTensor


# A struct Reading is space for a layout that is read in place. The function layout_of() returns the address of the
# layout.
cdef struct Reading:
    DLTensor room
    int64_t values[2 * INLINE_NDIM]


cdef object read(object tensor, Reading* reading)
cdef bint look_at_torch(object tensor, DLTensor* layout) except -1


cdef inline DLTensor* layout_of(object owner, Reading* reading) noexcept:
    """Return the layout that read() read.

    The layout is valid until Python code runs that may change the tensor, or until its owner ends.

    The caller calls layout_of() when it has the owner, so read() returns the owner unchanged. If read() held the owner
    first, it would take and release a reference at once. Taking and releasing a reference at once is slow since Python
    3.12, which writes half of the count and then reads the whole count. The processor must wait for its own store.
    """
    return &(<ExportedTensor>owner).layout if isinstance(owner, ExportedTensor) else &reading.room


cdef ExportedTensor export(object tensor)
cdef inline object source_of(object tensor, object owner):
    """Return the tensor whose layout was read, of which `tensor` may be a view."""
    return (<ExportedTensor>owner).source if isinstance(owner, ExportedTensor) else tensor


cdef bint has_moved(object tensor, object owner, uint64_t address) except -1
