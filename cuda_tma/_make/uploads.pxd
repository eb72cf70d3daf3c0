"""The maps in device memory to which an array was uploaded."""

from libc.stdint cimport uint64_t

from .._compilable cimport Compilable
from .._read.weak_cache cimport Known
from .._tensor_map cimport MAP_BYTES

cdef enum:
    KIND_COUNT = 2


cdef class UploadedMaps(Known):
    """Two maps that represent all uploaded maps in the comparisons of a launch.

    The two maps are the first map, and the first map with another data type (or else the first map again).
    """

    cdef unsigned char kinds[KIND_COUNT][MAP_BYTES]
    cdef Compilable options


cdef int remember_upload(object buffer, const unsigned char* maps, Py_ssize_t count, Compilable options) except -1
cdef UploadedMaps uploaded_to(object buffer)
