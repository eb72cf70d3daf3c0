"""Where the elements of a matrix lie in shared memory, as the 64-bit descriptor of ``tcgen05`` has it.

PTX ISA, "Shared memory descriptor", "Canonical layouts". It differs from that of ``wgmma``: three bits select the
swizzle, and bits 46 to 48 are 1. Pieces of 16 bytes are the unit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .._matrix.descriptor import PIECE_BYTES

__all__ = ["SharedDescriptor", "pieces"]

_ADDRESS_BITS = (1 << 18) - 1
_VERSION = 1
_SPANS = {0: 16, 1: 128, 2: 128, 4: 64, 6: 32}  # bytes of a row of the swizzle, by bits 61 to 63
_WIDE_ATOMS = 1  # 128 bytes, of which 32 stay together


@dataclass(frozen=True, slots=True)
class SharedDescriptor:
    """The fields of a descriptor, in bytes.

    Attributes
    ----------
    start, leading_bytes, stride_bytes : int
        Multiples of 16, of 18 bits.
    base_offset : int
        For matrices that do not start where the pattern of the swizzle does.
    swizzle : int
        Bits 61 to 63.
    """

    start: int
    leading_bytes: int
    stride_bytes: int
    base_offset: int
    swizzle: int

    @classmethod
    def decode(cls, bits: int) -> SharedDescriptor:
        """Return the fields.

        Raises
        ------
        ValueError
            If the descriptor is not valid.
        NotImplementedError
            For a base offset, or a leading dimension as an absolute address.
        """
        version, swizzle = bits >> 46 & 7, bits >> 61 & 7
        if version != _VERSION:
            raise ValueError(f"bits 46 to 48 of the matrix descriptor 0x{bits:016x} are {version}, and must be 1")
        if swizzle not in _SPANS:
            raise ValueError(f"bits 61 to 63 of the matrix descriptor 0x{bits:016x} are {swizzle}: no swizzle has it")
        if bits >> 52 & 1:
            raise NotImplementedError("a matrix descriptor with an absolute leading dimension")
        if base := bits >> 49 & 7:
            raise NotImplementedError(f"a matrix descriptor with base offset {base}")
        start, leading, stride = (bits >> place & 0x3FFF for place in (0, 16, 32))
        return cls(start << 4, leading << 4, stride << 4, base, swizzle)

    @property
    def span_bytes(self) -> int:
        """Return the bytes of a row of the swizzle; 16 without one."""
        return _SPANS[self.swizzle]

    def swizzled(self, addresses: np.ndarray) -> np.ndarray:
        """Return where the bytes of unswizzled addresses lie."""
        if self.swizzle == _WIDE_ATOMS:
            return addresses ^ addresses >> 2 & 0x60
        return addresses ^ addresses >> 3 & self.span_bytes - PIECE_BYTES

    @property
    def pattern_rows(self) -> int:
        """Return the rows after which the pattern begins again."""
        return 4 if self.swizzle == _WIDE_ATOMS else 8


@lru_cache(maxsize=4096)
def pieces(bits: int, rows: int, element_bytes: int, mn_major: bool) -> np.ndarray:
    """Return the addresses of the 16-byte pieces of a matrix with 32 bytes of K.

    Parameters
    ----------
    bits : int
        The descriptor.
    rows : int
        Rows of A, or columns of B.
    element_bytes : int
    mn_major : bool
        Whether M or N is innermost in shared memory.

    Returns
    -------
    numpy.ndarray
        K-major: [rows, 2]. MN-major: [elements of K, pieces of a row of them].
    """
    descriptor = SharedDescriptor.decode(bits)
    offsets = _mn_major(descriptor, rows, element_bytes) if mn_major else _k_major(descriptor, rows)
    found = descriptor.swizzled(descriptor.start + offsets & _ADDRESS_BITS)
    found.flags.writeable = False
    return found


def _k_major(descriptor: SharedDescriptor, rows: int) -> np.ndarray:
    """Rows in eights, `stride_bytes` apart; without a swizzle the second piece is `leading_bytes` on."""
    row, piece = np.ogrid[:rows, :2]
    pitch = descriptor.leading_bytes if descriptor.swizzle == 0 else PIECE_BYTES
    return row // 8 * descriptor.stride_bytes + row % 8 * descriptor.span_bytes + piece * pitch


def _mn_major(descriptor: SharedDescriptor, rows: int, element_bytes: int) -> np.ndarray:
    """Rows of K in groups of a pattern, spans of M or N side by side: `stride_bytes` and `leading_bytes` apart, in this
    order with a swizzle, and the other way round without one.
    """
    k, piece = np.ogrid[: 32 // element_bytes, : rows * element_bytes // PIECE_BYTES]
    spans, within = np.divmod(piece, descriptor.span_bytes // PIECE_BYTES)
    of_k, of_mn, together = descriptor.stride_bytes, descriptor.leading_bytes, descriptor.pattern_rows
    if descriptor.swizzle == 0:
        of_k, of_mn = of_mn, of_k
    return k // together * of_k + k % together * descriptor.span_bytes + spans * of_mn + within * PIECE_BYTES
