"""An index into one of our sequences."""

from cpython.number cimport PyNumber_AsSsize_t


cdef inline Py_ssize_t checked_index(object index, Py_ssize_t count, str what) except -1:
    """The place that an index means, where a negative one counts from the end."""
    cdef Py_ssize_t place = PyNumber_AsSsize_t(index, IndexError)
    place += count if place < 0 else 0
    if not 0 <= place < count:
        raise IndexError(f"index {index} is outside the {count} {what}")
    return place
