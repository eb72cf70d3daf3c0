"""The numbers of a stamp, and how units get one."""

from libc.stdint cimport int64_t

cdef enum:
    COLUMN_BITS = 20  # of a stamp; above them is the epoch
    SLOT_BITS = 16  # of what tells where and when; above them is the time
    NOBODY = 0
    WARP = 32
    ORDERED = 0  # rows of a clock
    FENCED = 1


cdef inline void fill(int64_t* values, Py_ssize_t start, Py_ssize_t stop, int64_t value) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(start, stop):
        values[i] = value
