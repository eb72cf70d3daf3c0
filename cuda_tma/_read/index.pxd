"""The check of an index into one of the package's sequences."""

from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from cpython.number cimport PyNumber_AsSsize_t


cdef inline Py_ssize_t checked_index(object index, Py_ssize_t count, str what) except -1:
    """Return the position of an index. A negative index counts from the end."""
    cdef Py_ssize_t place
    cdef int overflow = 0
    if PyLong_CheckExact(index):  # An int is the common case, and takes a third of the time of another object.
        place = PyLong_AsLongLongAndOverflow(index, &overflow)
    else:
        place = PyNumber_AsSsize_t(index, IndexError)
    if place < 0:
        place += count
    if overflow or not 0 <= place < count:
        raise outside(index, count, what)
    return place


cdef inline object outside(object index, Py_ssize_t count, str what):
    return IndexError(f"index {index} is outside the {count} {what}")
