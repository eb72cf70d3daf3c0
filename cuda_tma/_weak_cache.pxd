"""What is known of an object, for as long as it lives."""

from cpython.object cimport PyObject


cdef class WeakCache:
    cdef dict entries        # id(key): (weak reference to the key, value)
    cdef PyObject* last_key  # borrowed: the one that was asked for last is found at once
    cdef object last_value

    cdef object get(self, object key)
    cdef int put(self, object key, object value) except -1
