"""The bytes that an object exports through the buffer protocol."""

from cpython.buffer cimport PyBUF_FORMAT, PyBUF_ND, PyBUF_STRIDES, PyBUF_WRITABLE


cdef inline int fill_buffer(Py_buffer* buffer, object owner, void* data, Py_ssize_t size_bytes, int flags) except -1:
    """Fill a read-only view of bytes that `owner` keeps alive (PEP 3118)."""
    if flags & PyBUF_WRITABLE:
        raise BufferError(f"a {type(owner).__name__} is read-only; it has a method that replaces addresses")
    buffer.buf = data
    buffer.obj = owner
    buffer.len = size_bytes
    buffer.readonly = 1
    buffer.itemsize = 1
    buffer.format = <char*>b"B" if flags & PyBUF_FORMAT else NULL
    buffer.ndim = 1
    buffer.shape = &buffer.len if flags & PyBUF_ND else <Py_ssize_t*>NULL
    buffer.strides = &buffer.itemsize if flags & PyBUF_STRIDES == PyBUF_STRIDES else <Py_ssize_t*>NULL
    buffer.suboffsets = NULL
    buffer.internal = NULL
    return 0
