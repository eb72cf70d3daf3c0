"""Elements of 4 and 6 bits in pieces of 16 bytes, each with 16 packed elements followed by padding.

Source: PTX ISA, "Packing formats of elements in Tensor and Shared memory".
"""

from __future__ import annotations

import numpy as np

__all__ = ["PADDED", "decoded_padded"]

_BITS = {"e2m1": 4, "e2m3": 6, "e3m2": 6}
# The table contains the number of fraction bits and the exponent bias of each type.
_FRACTION = {"e2m1": (1, 1), "e2m3": (3, 1), "e3m2": (2, 3)}
PADDED = frozenset(_BITS)
_PIECE = 16


def _values(type_: str) -> np.ndarray:
    """Return the value of each code of a type of elements."""
    bits, (fraction_bits, bias) = _BITS[type_], _FRACTION[type_]
    codes = np.arange(1 << bits - 1)
    exponent, fraction = codes >> fraction_bits, codes & (1 << fraction_bits) - 1
    significand = fraction + np.where(exponent > 0, 1 << fraction_bits, 0)
    magnitudes = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - fraction_bits)
    return np.concatenate([magnitudes, -magnitudes])


_TABLES = {type_: _values(type_) for type_ in _BITS}


def decoded_padded(pieces: np.ndarray, type_: str) -> np.ndarray:
    """Return the values in pieces of 16 bytes, uint8 [..., pieces * 16], as float64 [..., elements]."""
    bits = _BITS[type_]
    apart = np.ascontiguousarray(pieces).reshape(*pieces.shape[:-1], -1, _PIECE)[..., : 2 * bits]
    digits = np.unpackbits(apart, axis=-1, bitorder="little").reshape(*apart.shape[:-1], _PIECE, bits)
    codes = digits @ (1 << np.arange(bits))
    return _TABLES[type_][codes].reshape(*pieces.shape[:-1], -1)
