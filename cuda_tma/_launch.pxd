"""Stream handles, for the other extension modules."""

from ._driver cimport CUcontext, CUstream

cdef CUstream stream_handle(object stream, CUcontext* context) except? NULL
