"""The 64-bit matrix descriptor of wgmma, and the addresses of the matrix that the descriptor describes.

All addresses are those of pieces of 16 bytes. A core matrix consists of eight pieces. With a swizzle, eight rows, each
as long as the span of the swizzle, replace adjacent core matrices. Source: PTX ISA, the sections "Shared Memory Matrix
Layout", "Strides" and "Matrix Descriptor Format" of wgmma.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

PIECE_BYTES = 16
# Bits 62 and 63 of a matrix descriptor select the swizzle: none, 128B, 64B or 32B.
_SPANS = {0: 16, 1: 128, 2: 64, 3: 32}
_ADDRESS_BITS = (1 << 18) - 1


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The fields of a matrix descriptor, converted to bytes.

    Attributes
    ----------
    start, leading_bytes, stride_bytes : int
        The start address and the two distances, which are multiples of 16 with 18 bits.
    base_offset : int
        The offset of a matrix that does not start at the start of the swizzle's pattern.
    span_bytes : int
        The size in bytes of a row of the swizzle; 16 without a swizzle.
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
    """Return the addresses of the 16-byte pieces that one instruction reads.

    `length` is the number of rows of A, or of columns of B. The result for a K-major matrix has the shape [length, 2],
    with 32 bytes along K in each row. The result for an MN-major matrix of 16-bit elements has the shape [16, length /
    8], with a row for each k.

    Raises
    ------
    NotImplementedError
        If the descriptor has a base offset, whose effect on hardware has not been recorded.
    """
    descriptor = Descriptor.decode(bits)
    if descriptor.base_offset:
        raise NotImplementedError(f"a matrix descriptor with base offset {descriptor.base_offset}")
    offsets = (_mn_major if mn_major else _k_major)(descriptor, length)
    addresses = descriptor.start + offsets & _ADDRESS_BITS
    swizzled = addresses ^ addresses >> 3 & descriptor.span_bytes - PIECE_BYTES
    swizzled.flags.writeable = False
    return swizzled


class PlacedPieces(NamedTuple):
    """The 16-byte pieces of a matrix in the shared memory of all CTAs, as arrays that must not change.

    Attributes
    ----------
    positions : numpy.ndarray
        The position of each piece, in one dimension.
    items : numpy.ndarray
        The number of each piece, in the shape of `piece_addresses`.
    first, last : int
        The lowest and the highest address of a piece in the CTA.
    """

    positions: np.ndarray
    items: np.ndarray
    first: int
    last: int


@lru_cache(maxsize=2048)
def placed_pieces(bits: int, length: int, mn_major: bool, start: int) -> PlacedPieces:
    """Return the pieces of `piece_addresses` for a CTA whose shared memory begins at byte `start`, a multiple of 16.

    Raises
    ------
    NotImplementedError
        If `piece_addresses` raises it.
    """
    addresses = piece_addresses(bits, length, mn_major)
    positions = (addresses + start).ravel()
    items = (addresses + start) // PIECE_BYTES
    positions.flags.writeable = items.flags.writeable = False
    return PlacedPieces(positions, items, int(addresses.min()), int(addresses.max()))


def _k_major(descriptor: Descriptor, length: int) -> np.ndarray:
    """Return the addresses for a K-major matrix, whose groups of eight rows have a distance of `stride_bytes`.

    Without a swizzle, the second piece of a row is `leading_bytes` after the first piece.
    """
    row, piece = np.ogrid[:length, :2]
    pitch = descriptor.leading_bytes if descriptor.span_bytes == PIECE_BYTES else PIECE_BYTES
    return row // 8 * descriptor.stride_bytes + row % 8 * descriptor.span_bytes + piece * pitch


def _mn_major(descriptor: Descriptor, length: int) -> np.ndarray:
    """Return the addresses for an MN-major matrix.

    With a swizzle, groups of eight k have a distance of `stride_bytes`, and spans along M or N have a distance of
    `leading_bytes`. Without a swizzle, groups of eight k have a distance of `leading_bytes`, and spans have a distance
    of `stride_bytes`.
    """
    k, piece = np.ogrid[:16, : length * 2 // PIECE_BYTES]
    spans, within = np.divmod(piece, descriptor.span_bytes // PIECE_BYTES)
    of_k, of_mn = descriptor.stride_bytes, descriptor.leading_bytes
    if descriptor.span_bytes == PIECE_BYTES:
        of_k, of_mn = of_mn, of_k
    return k // 8 * of_k + k % 8 * descriptor.span_bytes + spans * of_mn + within * PIECE_BYTES
