"""Queries of an object's buffer protocol with each flag, as C code makes them (PEP 3118)."""

import ctypes

SIMPLE, WRITABLE, FORMAT, ND, STRIDES = 0, 1, 4, 8, 0x18


class PyBuffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t), ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int), ("ndim", ctypes.c_int), ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)), ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p),
    )  # fmt: skip


def asked(value, flags):
    """Return the fields of an object's buffer (PEP 3118), such as the address, the format, the shape and the strides.
    Raise a BufferError for a refusal."""
    buffer = PyBuffer(suboffsets=1, internal=1)
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(value), ctypes.byref(buffer), flags)
    try:
        shape = buffer.shape[0] if buffer.shape else None
        strides = buffer.strides[0] if buffer.strides else None
        assert buffer.obj is value
        rest = buffer.suboffsets, buffer.internal
        return (
            buffer.buf,
            buffer.len,
            buffer.readonly,
            buffer.itemsize,
            buffer.ndim,
            buffer.format,
            shape,
            strides,
            rest,
        )
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))


def check_read_only_bytes(value, address, size_bytes):
    """Check that an object's buffer has `size_bytes` bytes at `address`, fills only the requested fields, and permits
    no write."""
    for flags in range(0, STRIDES + FORMAT + 1, 4):
        shape = size_bytes if flags & ND else None
        strides = 1 if flags & STRIDES == STRIDES else None
        name = b"B" if flags & FORMAT else None
        wanted = (address, size_bytes, 1, 1, 1, name, shape, strides, (None, None))
        assert (flags, asked(value, flags)) == (flags, wanted)
