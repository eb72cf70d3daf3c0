"""Elements of 4 and 6 bits, which are in pieces of 16 bytes, in single bytes, or in pairs in a byte.

A piece of 16 bytes contains 16 packed elements followed by padding. In a byte of tensor memory, an element of 6 bits
occupies bits 0 to 5, and an element of 4 bits occupies bits 2 to 5. The sign of both is in bit 5. The source of the
pieces is PTX ISA, "Packing formats of elements in Tensor and Shared memory". The bits within a byte are those of
``mma`` with ``.kind::f8f6f4``, and are not verified on hardware for tensor memory.
"""

from __future__ import annotations

import numpy as np

__all__ = ["PACKED", "PADDED", "bytes_of_padded", "decoded_bytes", "decoded_packed", "decoded_padded"]

_BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
# The table maps a type to its number of fraction bits and its exponent bias.
_FRACTION = {"e2m1": (1, 1), "e2m3": (3, 1), "e3m2": (2, 3)}
PADDED = frozenset(_BITS)
PACKED = "e2m1x2"  # The type e2m1x2 is a byte with two elements of type e2m1.
_PIECE = 16


def _values(type_: str) -> np.ndarray:
    """Return the value of each code of an element type."""
    bits, (fraction_bits, bias) = _BITS[type_], _FRACTION[type_]
    codes = np.arange(1 << bits - 1)
    exponent, fraction = codes >> fraction_bits, codes & (1 << fraction_bits) - 1
    significand = fraction + np.where(exponent > 0, 1 << fraction_bits, 0)
    magnitudes = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - fraction_bits)
    return np.concatenate([magnitudes, -magnitudes])


_TABLES = {type_: _values(type_) for type_ in _BITS}


def _codes(pieces: np.ndarray, bits: int) -> np.ndarray:
    """Return the codes, uint8 [..., elements], of bytes, [..., pieces * 16]."""
    apart = np.ascontiguousarray(pieces).reshape(*pieces.shape[:-1], -1, _PIECE)[..., : 2 * bits]
    digits = np.unpackbits(apart, axis=-1, bitorder="little").reshape(*apart.shape[:-1], _PIECE, bits)
    codes = digits @ (1 << np.arange(bits)).astype(np.uint8)
    return codes.reshape(*pieces.shape[:-1], -1)


def decoded_padded(pieces: np.ndarray, type_: str) -> np.ndarray:
    """Return the values, float64 [..., elements], of bytes, [..., pieces * 16]."""
    return _TABLES[type_][_codes(pieces, _BITS[type_])]


def bytes_of_padded(pieces: np.ndarray, bits: int) -> np.ndarray:
    """Return a byte for each element of 4 or 6 bits, as uint8 [..., elements], from bytes, [..., pieces * 16]."""
    return _codes(pieces, bits) << _shift(bits)


def decoded_bytes(data: np.ndarray, type_: str) -> np.ndarray:
    """Return the values, as float64, of bytes that contain one element each."""
    bits = _BITS[type_]
    return _TABLES[type_][data >> _shift(bits) & (1 << bits) - 1]


def decoded_packed(data: np.ndarray) -> np.ndarray:
    """Return the values, float64 [..., 2 * bytes], of two elements of e2m1 in each byte, the first in its lower half.

    >>> decoded_packed(np.array([0x31], np.uint8)).tolist()
    [0.5, 1.5]
    """
    return _TABLES["e2m1"][np.stack([data & 15, data >> 4], axis=-1).reshape(*data.shape[:-1], -1)]


def _shift(bits: int) -> int:
    """Return the lowest bit of an element in its byte."""
    return 6 - bits
