"""The facts about a stream that a launch needs."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._cuda.driver cimport CUcontext, CUstream
from .property cimport Property, read_property
from .weak_cache cimport Known


@cython.final
cdef class KnownStream(Known):
    """The handle and context of a stream, which are constant while it is open, and its property `is_closed`."""

    cdef Property is_closed
    cdef CUstream handle
    cdef CUcontext context  # `context` is NULL if it is unknown. The default streams have the current context.
    # `sharing` is the last context that was found to share memory with the stream's context, or NULL.
    cdef CUcontext sharing
    cdef uint64_t context_id  # The id is unique to its context, and a handle is not. An unknown id is 0.


cdef KnownStream known_stream(object stream)


cdef inline bint is_open(PyObject* known, object stream) except -1:
    """Return whether this borrowed KnownStream (recent_of()) belongs to this stream, and the stream is open."""
    return (<KnownStream>known).owner == <PyObject*>stream and (
        read_property(<PyObject*>(<KnownStream>known).is_closed, stream) is False)
