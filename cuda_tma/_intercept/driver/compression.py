"""Decompression of entries in fat binaries, which are LZ4 blocks or zstd frames.

A program may pass arbitrary bytes. Each function returns the number of bytes that its caller expects. A function raises
ValueError if the data contains another number.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

__all__ = ["lz4_block", "zstd_frame"]

_ZSTD_LIBRARIES = ("libzstd.so.1", "libzstd.1.dylib", "libzstd.so")


def lz4_block(data: bytes, size: int) -> bytes:
    """Return the `size` bytes of an LZ4 block, which contains literals and copies of earlier bytes."""
    result = bytearray()
    at = 0
    try:
        while at < len(data):
            token = data[at]
            count, at = _length(data, at + 1, token >> 4)
            literals = data[at : at + count]
            at += count
            if len(literals) < count or len(result) + count > size:
                raise ValueError("the number of literals of an LZ4 block does not match its size")
            result += literals
            if at == len(data):
                break
            offset = data[at] | data[at + 1] << 8
            count, at = _length(data, at + 2, token & 15)
            _copy(result, offset, count + 4, size)
    except IndexError:
        raise ValueError("an LZ4 block is truncated within a sequence") from None
    if len(result) != size:
        raise ValueError(f"an LZ4 block has {len(result)} bytes, but its header states {size}")
    return bytes(result)


def _length(data: bytes, at: int, first: int) -> tuple[int, int]:
    """Return a length and the position after it. A length of 15 continues in the next bytes, up to a byte that is not
    255.
    """
    total, is_open = first, first == 15
    while is_open:
        total += data[at]
        is_open = data[at] == 255
        at += 1
    return total, at


def _copy(result: bytearray, offset: int, count: int, size: int) -> None:
    """Append a copy of earlier bytes at a distance from the end. The copy may include bytes that the copy has itself
    written.
    """
    if not 0 < offset <= len(result) or len(result) + count > size:
        raise ValueError("an LZ4 block copies bytes from outside the block")
    piece = bytes(result[-offset:])
    result += (piece * (count // offset + 1))[:count]


def zstd_frame(data: bytes, size: int) -> bytes:
    """Return the `size` bytes of a zstd frame.

    Raises
    ------
    ValueError
        If this machine has no decoder, or the frame is damaged.
    """
    for find in (_of_python, _of_package, _of_system):
        decode = find()
        if decode is not None:
            return decode(data, size)
    raise ValueError(
        "the entry is compressed with zstd, and this machine has neither libzstd.so.1 nor the package zstandard. "
        "Remedy: pip install zstandard, or compile with nvcc --compress-mode=speed"
    )


def _of_python() -> Callable[[bytes, int], bytes] | None:
    """Return the decoder of the standard library of Python 3.14 and later."""
    try:
        from compression import zstd  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return _of_module(zstd, lambda data, size: zstd.ZstdDecompressor().decompress(data, size))


def _of_package() -> Callable[[bytes, int], bytes] | None:
    try:
        import zstandard  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    return _of_module(zstandard, lambda data, size: zstandard.ZstdDecompressor().stream_reader(data).read(size))


def _of_module(module: Any, decompress: Callable[[bytes, int], bytes]) -> Callable[[bytes, int], bytes]:
    """Return the decoder of the package zstandard, whose `decompress` returns at most a given number of bytes."""

    def decode(data: bytes, size: int) -> bytes:
        try:
            return _checked(decompress(data, size + 1), size)
        except module.ZstdError as error:
            raise ValueError(f"a zstd frame is damaged: {error}") from None

    return decode


def _of_system() -> Callable[[bytes, int], bytes] | None:
    """Return the decoder of the system's library, which most Linux distributions install for their package manager."""
    for name in _ZSTD_LIBRARIES:
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        function = library.ZSTD_decompress
        function.restype = ctypes.c_size_t
        function.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)

        def decode(data: bytes, size: int, function: Any = function) -> bytes:
            target = ctypes.create_string_buffer(max(size, 1))
            written = function(target, size, data, len(data))
            if written > size:  # A return value above the size is an error code of zstd.
                raise ValueError("a zstd frame is damaged, or longer than its header states")
            return _checked(target.raw[:written], size)

        return decode
    return None


def _checked(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError(f"a zstd frame has {len(data)} bytes, but its header states {size}")
    return data
