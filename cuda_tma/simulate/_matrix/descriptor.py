"""The places of a matrix's elements in shared memory, by its 64-bit descriptor.

PTX, "Shared Memory Matrix Layout", "Strides", "Matrix Descriptor Format" of wgmma. Pieces of 16 bytes are the unit: a
core matrix is eight of them. With a swizzle, eight rows of its span take the place of core matrices side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

PIECE_BYTES = 16
_SPANS = {0: 16, 1: 128, 2: 64, 3: 32}  # of bits 62 and 63: no swizzle, 128B, 64B, 32B
_ADDRESS_BITS = (1 << 18) - 1


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The fields of a matrix descriptor, in bytes.

    Attributes
    ----------
    start, leading_bytes, stride_bytes : int
        Multiples of 16, of 18 bits.
    base_offset : int
        For matrices that do not start where the swizzle's pattern does.
    span_bytes : int
        Of the swizzle; 16 without one.
    """

    start: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int
    span_bytes: int

    @classmethod
    def decode(cls, bits: int) -> Descriptor:
        start, leading, stride = (bits >> place & 0x3FFF for place in (0, 16, 32))
        return cls(start << 4, leading << 4, stride << 4, bits >> 49 & 7, _SPANS[bits >> 62 & 3])


@lru_cache(maxsize=4096)
def piece_addresses(bits: int, length: int, mn_major: bool) -> np.ndarray:
    """Addresses of the 16-byte pieces that one instruction reads; `length` is the rows of A, or the columns of B.

    K-major: [length, 2], the 32 bytes of K in each row. MN-major, 16-bit elements: [16, length / 8], a row for each k.

    Raises
    ------
    NotImplementedError
        If the descriptor has a base offset: what the hardware makes of it has not been recorded.
    """
    descriptor = Descriptor.decode(bits)
    if descriptor.base_offset:
        raise NotImplementedError(f"a matrix descriptor with base offset {descriptor.base_offset}")
    offsets = (_mn_major if mn_major else _k_major)(descriptor, length)
    addresses = descriptor.start + offsets & _ADDRESS_BITS
    swizzled = addresses ^ addresses >> 3 & descriptor.span_bytes - PIECE_BYTES
    swizzled.flags.writeable = False
    return swizzled


def _k_major(descriptor: Descriptor, length: int) -> np.ndarray:
    """Rows in eights, `stride_bytes` apart; without a swizzle the second piece is `leading_bytes` on."""
    row, piece = np.ogrid[:length, :2]
    pitch = descriptor.leading_bytes if descriptor.span_bytes == PIECE_BYTES else PIECE_BYTES
    return row // 8 * descriptor.stride_bytes + row % 8 * descriptor.span_bytes + piece * pitch


def _mn_major(descriptor: Descriptor, length: int) -> np.ndarray:
    """Rows of K in eights, spans of M or N side by side: `stride_bytes` and `leading_bytes` apart, in this order with
    a swizzle, and the other way round without one.
    """
    k, piece = np.ogrid[:16, : length * 2 // PIECE_BYTES]
    spans, within = np.divmod(piece, descriptor.span_bytes // PIECE_BYTES)
    of_k, of_mn = descriptor.stride_bytes, descriptor.leading_bytes
    if descriptor.span_bytes == PIECE_BYTES:
        of_k, of_mn = of_mn, of_k
    return k // 8 * of_k + k % 8 * descriptor.span_bytes + spans * of_mn + within * PIECE_BYTES
