"""What is known of an object, for as long as it lives."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from .._cuda.free_threading cimport FREE_THREADED

cdef enum:
    RECENT_COUNT = 64  # a power of two


cdef class Known:
    """What is known of one object."""

    cdef PyObject* owner  # that object, borrowed; NULL once it is gone


cdef class WeakCache:
    cdef dict entries  # id(owner): (weak reference to the owner, Known)
    # Those that were asked for last, found without the dictionary; borrowed from it, and NULL where there is none. Not
    # without a GIL: there the dictionary alone gives a reference that another thread cannot take away.
    cdef PyObject* recent[RECENT_COUNT]

    cdef object find(self, object owner)
    cdef int put(self, object owner, Known known) except -1


cdef inline size_t place_of(PyObject* owner) noexcept:
    """Where an object's Known would be among the recent ones. Python's objects are 16 bytes apart or more."""
    return (<uintptr_t>owner >> 4 ^ <uintptr_t>owner >> 10) & (RECENT_COUNT - 1)


cdef inline PyObject* recent_of(PyObject* cache, object owner) noexcept:
    """What was put for this very object, borrowed until Python runs; NULL if that is not among the recent ones.

    For what every launch looks at, of a WeakCache that the caller borrows, too: a reference that is taken and given
    back at once is slow (layout_of()).
    """
    cdef PyObject* known = NULL if FREE_THREADED else (<WeakCache>cache).recent[place_of(<PyObject*>owner)]
    return known if known != NULL and (<Known>known).owner == <PyObject*>owner else NULL


cdef inline object look_up(WeakCache cache, object owner):
    """What was put for this very object, or None."""
    cdef PyObject* known = recent_of(<PyObject*>cache, owner)
    return <object>known if known != NULL else cache.find(owner)
