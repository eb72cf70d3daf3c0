"""Facts about an object, which the cache keeps during the object's lifetime."""

from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from .._cuda.free_threading cimport FREE_THREADED

cdef enum:
    RECENT_COUNT = 64  # The count is a power of two.


cdef class Known:
    """The facts about one object, which is the owner of the entry."""

    cdef PyObject* owner  # The pointer to the object is borrowed, and is NULL after the object's end.


cdef class WeakCache:
    cdef dict entries  # `entries` maps id(owner) to (weak reference to the owner, Known).
    # The array contains the entries that were found last, which a look-up finds without the dictionary. The entries are
    # borrowed from the dictionary, or NULL. Without a GIL, the cache uses only the dictionary, because it returns a
    # reference that another thread cannot remove.
    cdef PyObject* recent[RECENT_COUNT]

    cdef object find(self, object owner)
    cdef int put(self, object owner, Known known) except -1


cdef inline size_t place_of(PyObject* owner) noexcept:
    """Return the slot of an object's entry in the array of recent entries.

    Objects of Python are at least 16 bytes apart.
    """
    return (<uintptr_t>owner >> 4 ^ <uintptr_t>owner >> 10) & (RECENT_COUNT - 1)


cdef inline PyObject* recent_of(PyObject* cache, object owner) noexcept:
    """Return the facts about this object, borrowed until Python code runs.

    The result is NULL if the recent entries do not contain the object.

    Code of every launch uses this function, with a WeakCache that the caller also borrows. A reference that is taken
    and released at once is slow (layout_of()).
    """
    cdef PyObject* known = NULL if FREE_THREADED else (<WeakCache>cache).recent[place_of(<PyObject*>owner)]
    return known if known != NULL and (<Known>known).owner == <PyObject*>owner else NULL


cdef inline object look_up(WeakCache cache, object owner):
    """Return the facts about this object, or None."""
    cdef PyObject* known = recent_of(<PyObject*>cache, owner)
    return <object>known if known != NULL else cache.find(owner)
