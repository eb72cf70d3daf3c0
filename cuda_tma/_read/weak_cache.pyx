"""A dictionary by identity that does not keep its keys alive.

``weakref.WeakKeyDictionary`` computes a key's hash, which takes a cuda.core object hundreds of nanoseconds.
"""

import weakref
from functools import partial

from cpython.object cimport PyObject

from .._cuda.free_threading cimport FREE_THREADED


cdef class Known:
    pass


cdef class WeakCache:
    def __cinit__(self):
        self.entries = {}

    cdef object find(self, object owner):
        """Look up in the dictionary; the next look_up finds the value at once."""
        entry = self.entries.get(id(owner))
        if entry is None:
            return None
        _, known = <tuple>entry
        if not FREE_THREADED:
            self.recent[place_of(<PyObject*>owner)] = <PyObject*>known
        return known

    cdef int put(self, object owner, Known known) except -1:
        """Store a value. Of two stored at once, one stays; a thread with the other uses it, and looks up again."""
        self._forget(id(owner), None)
        known.owner = <PyObject*>owner  # before any thread can find it
        self.entries[id(owner)] = weakref.ref(owner, partial(self._forget, id(owner))), known
        return 0

    def _forget(self, identity, _):
        """Remove an object that has ended: another may get its address."""
        self.recent[place_of(<PyObject*><uintptr_t>identity)] = NULL  # this, or another, which is then found again
        _, known = self.entries.pop(identity, (None, None))
        if known is not None:
            (<Known>known).owner = NULL
