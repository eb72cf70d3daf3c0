"""The swizzle modes as permutations of byte offsets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._given import entry, shown
from ..enums import TensorMapSwizzle as S
from ..errors import TensorMapError

__all__ = ["SwizzlePattern", "pattern", "swizzle_offset"]


@dataclass(frozen=True, slots=True)
class SwizzlePattern:
    """One swizzle mode as a permutation of byte offsets.

    Attributes
    ----------
    span_bytes : int
        Every row takes a multiple of this many bytes, and no byte leaves its span (1 without a swizzle).
    atom_bytes : int
        Bytes that stay together.
    repeat_bytes : int
        The permutation is the same for every block of this size.
    alignment_bytes : int
        Alignment of the destination with which offsets start at the pattern's beginning.
    xors : tuple of (int, int, int)
        (from_bit, to_bit, bits): that many address bits, read at ``from_bit``, are XOR-ed into ``to_bit``.
    """

    span_bytes: int
    atom_bytes: int
    repeat_bytes: int
    alignment_bytes: int
    xors: tuple[tuple[int, int, int], ...]


# PTX ISA 5.5.7: the tables of each mode, "starting address of the repeating pattern"; a TMA destination is always
# aligned to 128 bytes. FLIP_8B: every other line of 128 bytes swaps the 8-byte halves of its 16-byte chunks.
_PATTERNS = {
    S.NONE: SwizzlePattern(1, 1, 1, 128, ()),
    S.SWIZZLE_32B: SwizzlePattern(32, 16, 256, 256, ((7, 4, 1),)),
    S.SWIZZLE_64B: SwizzlePattern(64, 16, 512, 512, ((7, 4, 2),)),
    S.SWIZZLE_128B: SwizzlePattern(128, 16, 1024, 1024, ((7, 4, 3),)),
    S.SWIZZLE_128B_ATOM_32B: SwizzlePattern(128, 32, 512, 1024, ((7, 5, 2),)),
    S.SWIZZLE_128B_ATOM_32B_FLIP_8B: SwizzlePattern(128, 8, 512, 1024, ((7, 5, 2), (7, 3, 1))),
    S.SWIZZLE_128B_ATOM_64B: SwizzlePattern(128, 64, 256, 1024, ((7, 6, 1),)),
}


def pattern(swizzle: int) -> SwizzlePattern:
    """The pattern of a ``TensorMapSwizzle`` value; TensorMapError if it is none.

    >>> pattern(S.SWIZZLE_64B).repeat_bytes
    512
    """
    return entry("swizzle", swizzle, _PATTERNS)


def swizzle_offset(swizzle: int, offset: Any) -> Any:
    """Where a byte goes, and, since the permutation is its own inverse, where it came from.

    Parameters
    ----------
    swizzle : int
        A ``TensorMapSwizzle`` value.
    offset : int or numpy.ndarray of int
        Bytes from a destination that is aligned to :func:`smem_alignment`.

    Returns
    -------
    int or numpy.ndarray
        Bytes from the same destination.

    Raises
    ------
    TensorMapError
        If `swizzle` is none of the driver's, or `offset` is made of something else than integers.

    Examples
    --------
    >>> [swizzle_offset(S.SWIZZLE_128B, line * 128) for line in range(4)]
    [0, 144, 288, 432]
    """
    xors = pattern(swizzle).xors
    try:
        moved = offset ^ 0  # integers alone have bits, also where nothing is moved
        for from_bit, to_bit, bits in xors:
            moved = moved ^ (((offset >> from_bit) & ((1 << bits) - 1)) << to_bit)
    except (TypeError, NotImplementedError):  # the latter by torch
        raise TensorMapError(f"offset is {shown(offset)}; give an integer, or an array of integers") from None
    return moved
