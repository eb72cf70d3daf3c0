"""The facts about a stream for a launch."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from .._cuda.driver cimport CUcontext, CUstream
from .property cimport Property, read_property
from .weak_cache cimport Known


@cython.final
cdef class KnownStream(Known):
    """A stream's handle and context, which are constant while it is open, and the property that it is closed."""

    cdef Property is_closed
    cdef CUstream handle
    cdef CUcontext context  # NULL: unknown; for the default streams, the current one
    cdef CUcontext sharing  # the last context found to share its memory; NULL before that
    cdef uint64_t context_id  # unlike a handle, unique to its context; 0 if unknown


cdef KnownStream known_stream(object stream)


cdef inline bint is_open(PyObject* known, object stream) except -1:
    """Return whether this KnownStream, borrowed (recent_of()), belongs to this stream, and the stream is open."""
    return (<KnownStream>known).owner == <PyObject*>stream and (
        read_property(<PyObject*>(<KnownStream>known).is_closed, stream) is False)
