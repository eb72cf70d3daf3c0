"""The functions that allocate device memory for maps, for the other extension modules."""

from .._cuda.driver cimport CUcontext


cdef object allocate(object stream, CUcontext context, int device_id, size_t size_bytes)
