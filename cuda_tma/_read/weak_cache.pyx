"""A dictionary by identity that does not keep its keys alive.

The class ``weakref.WeakKeyDictionary`` computes the hash of a key, which takes hundreds of nanoseconds for an object of
cuda.core.
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
        """Look up an object in the dictionary. The next look-up finds the value at once."""
        entry = self.entries.get(id(owner))
        if entry is None:
            return None
        _, known = <tuple>entry
        if not FREE_THREADED:
            self.recent[place_of(<PyObject*>owner)] = <PyObject*>known
        return known

    cdef int put(self, object owner, Known known) except -1:
        """Store a value.

        If two threads store a value at the same time, one value stays. The other thread uses its own value, and then
        looks up again.
        """
        self._forget(id(owner), None)
        known.owner = <PyObject*>owner  # The owner is set before any thread can find the entry.
        self.entries[id(owner)] = weakref.ref(owner, partial(self._forget, id(owner))), known
        return 0

    def _forget(self, identity, _):
        """Remove the entry of an object that has ended, because another object may get its address."""
        # The slot may contain another entry, which a later look-up finds again.
        self.recent[place_of(<PyObject*><uintptr_t>identity)] = NULL
        _, known = self.entries.pop(identity, (None, None))
        if known is not None:
            (<Known>known).owner = NULL
