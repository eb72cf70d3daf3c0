"""What a launch needs to know of a stream."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._cuda.driver cimport CUcontext, CUstream
from .property cimport Property, read_property
from .weak_cache cimport Known


@cython.final
cdef class KnownStream(Known):
    """A stream's handle and context, neither of which changes while it is open; and how to ask whether it is."""

    cdef Property is_closed
    cdef CUstream handle
    cdef CUcontext context     # NULL: not known, and for the default streams whichever is current
    cdef CUcontext sharing     # another that shares its memory, and was asked about last; NULL before that
    cdef uint64_t context_id   # unlike its handle, no other context gets it; 0 if it is not known


cdef KnownStream known_stream(object stream)


cdef inline bint is_open(PyObject* known, object stream) except -1:
    """Whether this KnownStream, borrowed (recent_of()), is what is known of that very stream, and it is open."""
    return (<KnownStream>known).owner == <PyObject*>stream and (
        read_property(<PyObject*>(<KnownStream>known).is_closed, stream) is False)
