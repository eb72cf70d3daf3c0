"""The 64-bit shared memory descriptor of ``tcgen05``, and the addresses of the described matrix.

In contrast to the descriptor of ``wgmma``, three bits select the swizzle, and bits 46 to 48 contain 1. All addresses
are those of pieces of 16 bytes. Source: PTX ISA, "Shared memory descriptor" and "Canonical layouts".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._matrix.descriptor import PIECE_BYTES

__all__ = ["SharedDescriptor", "pieces"]

_ADDRESS_BITS = (1 << 18) - 1
_VERSION = 1
# Bits 61 to 63 of a descriptor select the swizzle, and _SPANS maps them to the bytes of a row.
_SPANS = {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}
_WIDE_ATOMS = 1  # Swizzle 1 permutes pieces of 32 bytes within rows of 128 bytes.


@dataclass(frozen=True, slots=True)
class SharedDescriptor:
    """The fields of a shared memory descriptor, converted to bytes.

    Attributes
    ----------
    start, leading_bytes, stride_bytes : int
        The start address and the two distances, which are multiples of 16 with 18 bits.
    base_offset : int
        The offset for matrices that do not start at the start of the swizzle's pattern, ignored without a swizzle.
    swizzle : int
        The value of bits 61 to 63.
    """

    start: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int
    swizzle: int

    @classmethod
    def decode(cls, bits: int) -> SharedDescriptor:
        """Return the fields of a shared memory descriptor.

        Raises
        ------
        ValueError
            If the descriptor is not valid.
        NotImplementedError
            If the descriptor has a swizzle and a base offset, or its leading dimension is an absolute address.
        """
        version, swizzle = bits >> 46 & 7, bits >> 61 & 7
        if version != _VERSION:
            raise ValueError(f"bits 46 to 48 of the matrix descriptor 0x{bits:016x} are {version}, but must be 1")
        if swizzle not in _SPANS:
            raise ValueError(
                f"bits 61 to 63 of the matrix descriptor 0x{bits:016x} are {swizzle}, which is not the code of a "
                "swizzle"
            )
        if bits >> 52 & 1:
            raise NotImplementedError("a matrix descriptor with an absolute leading dimension")
        if swizzle and (base := bits >> 49 & 7):
            raise NotImplementedError(f"a matrix descriptor with base offset {base}")
        start, leading, stride = (bits >> place & 0x3FFF for place in (0, 16, 32))
        return cls(start << 4, leading << 4, stride << 4, bits >> 49 & 7, swizzle)

    @property
    def span_bytes(self) -> int:
        """Return the size in bytes of a row of the swizzle; 16 without a swizzle."""
        return _SPANS[self.swizzle]

    def swizzled(self, addresses: np.ndarray) -> np.ndarray:
        """Return the swizzled addresses for unswizzled addresses."""
        if self.swizzle == _WIDE_ATOMS:
            return addresses ^ addresses >> 2 & 0x60
        return addresses ^ addresses >> 3 & self.span_bytes - PIECE_BYTES

    @property
    def pattern_rows(self) -> int:
        """Return the number of rows after which the pattern of the swizzle repeats."""
        return 4 if self.swizzle == _WIDE_ATOMS else 8


@lru_cache(maxsize=4096)
def pieces(bits: int, rows: int, element_bytes: int, mn_major: bool) -> np.ndarray:
    """Return the addresses of the 16-byte pieces of a matrix with 32 bytes of K.

    Parameters
    ----------
    bits : int
        The 64 bits of the descriptor.
    rows : int
        The number of rows of A, or of columns of B.
    element_bytes : int
    mn_major : bool
        Whether M or N is innermost in shared memory.

    Returns
    -------
    numpy.ndarray
        An array [rows, 2] for a K-major matrix, or [elements of K, pieces of a row] for an MN-major matrix.
    """
    descriptor = SharedDescriptor.decode(bits)
    offsets = _mn_major(descriptor, rows, element_bytes) if mn_major else _k_major(descriptor, rows)
    found = descriptor.swizzled(descriptor.start + offsets & _ADDRESS_BITS)
    found.flags.writeable = False
    return found


def _k_major(descriptor: SharedDescriptor, rows: int) -> np.ndarray:
    """Return the addresses for a K-major matrix, whose groups of eight rows have a distance of `stride_bytes`.

    Without a swizzle, the second piece of a row is `leading_bytes` after the first piece.
    """
    row, piece = np.ogrid[:rows, :2]
    pitch = descriptor.leading_bytes if descriptor.swizzle == 0 else PIECE_BYTES
    return row // 8 * descriptor.stride_bytes + row % 8 * descriptor.span_bytes + piece * pitch


def _mn_major(descriptor: SharedDescriptor, rows: int, element_bytes: int) -> np.ndarray:
    """Return the addresses for an MN-major matrix.

    With a swizzle, groups along K have a distance of `stride_bytes`, and spans along M or N have a distance of
    `leading_bytes`. Without a swizzle, groups along K have a distance of `leading_bytes`, and spans have a distance of
    `stride_bytes`.
    """
    k, piece = np.ogrid[: 32 // element_bytes, : rows * element_bytes // PIECE_BYTES]
    spans, within = np.divmod(piece, descriptor.span_bytes // PIECE_BYTES)
    of_k, of_mn, together = descriptor.stride_bytes, descriptor.leading_bytes, descriptor.pattern_rows
    if descriptor.swizzle == 0:
        of_k, of_mn = of_mn, of_k
    return k // together * of_k + k % together * descriptor.span_bytes + spans * of_mn + within * PIECE_BYTES
