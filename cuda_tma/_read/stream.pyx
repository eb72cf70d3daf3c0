"""The handles and the contexts of streams, which the module looks up once.

Every launch checks whether the stream is closed.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uintptr_t

from .._cuda.driver cimport CUDA_SUCCESS, CUstream, driver, ensure_driver
from .property cimport Property, named_property, own_property, read_property
from .weak_cache cimport Known, WeakCache, look_up, recent_of

from cuda.core import Stream

from .._cuda.core import ClosedWithoutHandle
from ..rules import _refusals


@cython.final
cdef class KnownStream(Known):
    pass


cdef type STREAM = Stream  # A C variable needs no look-up in the module's dictionary.
cdef WeakCache _streams = WeakCache()  # The cache maps a Stream to its KnownStream.


cdef KnownStream known_stream(object stream):
    """Return the facts about an open Stream, a GraphBuilder, or an object with ``__cuda_stream__``."""
    cdef PyObject* recent = recent_of(<PyObject*>_streams, stream)
    if recent != NULL and type(stream) is STREAM and is_open(recent, stream):
        return <KnownStream>recent
    known = _find(stream)
    if known is None:
        known = _find(getattr(stream, "stream", None))  # A GraphBuilder captures on its own stream.
    if known is None:
        raise _refusals.no_stream(stream)
    return <KnownStream>known


def is_capturing(stream):
    """Return whether a graph captures the launches on a stream."""
    cdef int answer = 0
    ensure_driver()
    return driver.cuStreamIsCapturing(known_stream(stream).handle, &answer) != CUDA_SUCCESS or answer != 0


cdef object _find(object stream):
    """Return the KnownStream of an object that is a stream itself, or None for other objects."""
    cdef KnownStream known
    if type(stream) is STREAM or isinstance(stream, STREAM):
        known = look_up(_streams, stream)
        return known if known is not None and is_open(<PyObject*>known, stream) else _ask_for(stream)
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, handle = protocol() if callable(protocol) else protocol
        if version != 0:
            raise _refusals.stream_protocol(version)
        return _with_handle(int(handle))
    return None


cdef KnownStream _ask_for(object stream):
    """Query the driver for the facts about an open Stream."""
    cdef Property is_closed = _is_closed_of(type(stream))
    cdef KnownStream known
    if read_property(<PyObject*>is_closed, stream):
        raise _refusals.closed_stream()
    known = _with_handle(int(stream.handle))
    known.is_closed = is_closed
    if <uintptr_t>known.handle > 2:  # The handles 0, 1 and 2 are those of the default streams.
        if driver.cuStreamGetCtx(known.handle, &known.context) != CUDA_SUCCESS:
            known.context = NULL
        elif driver.cuCtxGetId != NULL and driver.cuKernelGetFunction != NULL:
            driver.cuCtxGetId(known.context, &known.context_id)
    _streams.put(stream, known)
    return known


cdef KnownStream _with_handle(uintptr_t handle):
    cdef KnownStream known = KnownStream.__new__(KnownStream)
    known.handle = <CUstream>handle
    return known


cdef Property _is_closed_of(object stream_type):
    if not hasattr(STREAM, "is_closed"):
        return own_property(ClosedWithoutHandle, "is_closed")
    return own_property(STREAM, "is_closed") if stream_type is STREAM else named_property("is_closed")
