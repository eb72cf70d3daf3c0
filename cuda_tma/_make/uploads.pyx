"""The maps in the Buffer of an uploaded array, so that a launch can compare them with a kernel's type.

The maps share their options. If the options leave the data type open, the maps may differ in it.
"""

from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from .._compilable cimport Compilable
from .._read.weak_cache cimport Known, WeakCache, look_up
from .._tensor_map cimport MAP_BYTES

cdef enum:
    DATA_TYPE_WORD = 2  # DATA_TYPE_WORD is the index of a 32-bit word (codec/_fields.py).
    DATA_TYPE_BITS = 0xF << 7 | 1 << 16


cdef class UploadedMaps(Known):
    pass


cdef WeakCache _uploads = WeakCache()  # The cache maps a Buffer to its UploadedMaps.


cdef int remember_upload(object buffer, const unsigned char* maps, Py_ssize_t count, Compilable options) except -1:
    """Record the maps in a Buffer for the lifetime of the Buffer."""
    cdef UploadedMaps uploaded = UploadedMaps.__new__(UploadedMaps)
    cdef Py_ssize_t other = 0
    cdef Py_ssize_t index
    for index in range(1, count):
        if (_word(maps + index * MAP_BYTES) ^ _word(maps)) & DATA_TYPE_BITS:
            other = index
            break
    memcpy(uploaded.kinds[0], maps, MAP_BYTES)
    memcpy(uploaded.kinds[1], maps + other * MAP_BYTES, MAP_BYTES)
    uploaded.options = options
    return _uploads.put(buffer, uploaded)


cdef inline uint32_t _word(const unsigned char* map) noexcept:
    return (<const uint32_t*>map)[DATA_TYPE_WORD]


cdef UploadedMaps uploaded_to(object buffer):
    """Return the maps in a Buffer, or None if no array was uploaded to the Buffer."""
    return look_up(_uploads, buffer)
