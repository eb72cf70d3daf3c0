"""Facts about an object, kept for as long as it lives."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from .._cuda.free_threading cimport FREE_THREADED

cdef enum:
    RECENT_COUNT = 64  # a power of two


cdef class Known:
    """Facts about one object."""

    cdef PyObject* owner  # that object, borrowed; NULL after its end


cdef class WeakCache:
    cdef dict entries  # id(owner): (weak reference to the owner, Known)
    # The last ones, found without the dictionary; borrowed from it, or NULL. They are not used without a GIL, where
    # only the dictionary returns a reference that another thread cannot remove.
    cdef PyObject* recent[RECENT_COUNT]

    cdef object find(self, object owner)
    cdef int put(self, object owner, Known known) except -1


cdef inline size_t place_of(PyObject* owner) noexcept:
    """Return the slot of an object's Known among the recent ones. Python's objects are 16 bytes apart or more."""
    return (<uintptr_t>owner >> 4 ^ <uintptr_t>owner >> 10) & (RECENT_COUNT - 1)


cdef inline PyObject* recent_of(PyObject* cache, object owner) noexcept:
    """Return the value of this object, borrowed until Python runs; NULL if it is not among the recent ones.

    It is for code of every launch, with a WeakCache that the caller also borrows: a reference that is taken and
    released at once is slow (layout_of()).
    """
    cdef PyObject* known = NULL if FREE_THREADED else (<WeakCache>cache).recent[place_of(<PyObject*>owner)]
    return known if known != NULL and (<Known>known).owner == <PyObject*>owner else NULL


cdef inline object look_up(WeakCache cache, object owner):
    """Return the value of this object, or None."""
    cdef PyObject* known = recent_of(<PyObject*>cache, owner)
    return <object>known if known != NULL else cache.find(owner)
