"""The properties of each swizzle mode: its pattern in shared memory, its code in a tensor map, and its restrictions."""

from __future__ import annotations

from dataclasses import dataclass

from ._limits import TMA_EXTENDED_SINCE, TMA_SINCE
from .enums import TensorMapSwizzle as S

__all__ = ["PATTERNS", "SPAN_BYTES", "SwizzlePattern"]


@dataclass(frozen=True, slots=True)
class SwizzlePattern:
    """One swizzle mode, described as a permutation of byte offsets.

    Attributes
    ----------
    span_bytes : int
        Every row takes a multiple of this number of bytes, and each byte remains in its span. The span is 1 without a
        swizzle.
    atom_bytes : int
        The number of bytes that stay contiguous.
    repeat_bytes : int
        The permutation is the same for every block of this number of bytes.
    alignment_bytes : int
        The alignment of the destination at which the pattern starts at offset 0.
    xors : tuple of (int, int, int)
        Each entry is (from_bit, to_bit, bits). The pattern XORs `bits` address bits from ``from_bit`` on into
        ``to_bit``.
    code : int
        The code in a tensor map. Bits 0-1 contain the span (none, 32, 64, 128 bytes), and bits 2-3 the atom (16, 32, 32
        flipped, 64 bytes). Bit 4 is a span of 96 bytes, for which ``TensorMapSwizzle`` has no name.
    since : (int, int)
        The first compute capability that supports the mode.
    is_wide : bool
        Whether im2col wide accepts the mode.
    can_store : bool
        Whether stores accept the mode. All loads accept the mode.
    """

    span_bytes: int
    atom_bytes: int
    repeat_bytes: int
    alignment_bytes: int
    xors: tuple[tuple[int, int, int], ...]
    code: int
    since: tuple[int, int] = TMA_SINCE
    is_wide: bool = False
    can_store: bool = True


_LATER = TMA_EXTENDED_SINCE

# The patterns are from the tables in section 5.5.7 of the PTX ISA, "starting address of the repeating pattern". A TMA
# destination is always aligned to 128 bytes. With FLIP_8B, every second line of 128 bytes swaps the 8-byte halves of
# its 16-byte chunks. The module codec/_fields contains the codes. The modes in which a swizzle is legal are from the
# CUDA 13.5 driver API (cuTensorMapEncodeTiled, cuTensorMapEncodeIm2colWide), and the restrictions of stores are from
# PTX ISA 9.0, "Restriction on Tensor Copy instructions".
PATTERNS: dict[int, SwizzlePattern] = {
    S.NONE: SwizzlePattern(1, 1, 1, 128, (), code=0),
    S.SWIZZLE_32B: SwizzlePattern(32, 16, 256, 256, ((7, 4, 1),), code=1),
    S.SWIZZLE_64B: SwizzlePattern(64, 16, 512, 512, ((7, 4, 2),), code=2, is_wide=True),
    S.SWIZZLE_128B: SwizzlePattern(128, 16, 1024, 1024, ((7, 4, 3),), code=3, is_wide=True),
    S.SWIZZLE_128B_ATOM_32B: SwizzlePattern(
        128, 32, 512, 1024, ((7, 5, 2),), code=3 | 1 << 2, since=_LATER, is_wide=True
    ),
    S.SWIZZLE_128B_ATOM_32B_FLIP_8B: SwizzlePattern(
        128, 8, 512, 1024, ((7, 5, 2), (7, 3, 1)), code=3 | 2 << 2, since=_LATER, can_store=False
    ),
    S.SWIZZLE_128B_ATOM_64B: SwizzlePattern(128, 64, 256, 1024, ((7, 6, 1),), code=3 | 3 << 2, since=_LATER),
}
SPAN_BYTES = {swizzle: pattern.span_bytes for swizzle, pattern in PATTERNS.items() if pattern.xors}
