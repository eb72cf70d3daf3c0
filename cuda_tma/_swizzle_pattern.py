"""The properties of each swizzle mode: its pattern in shared memory, its code in a tensor map, and its restrictions."""

from __future__ import annotations

from dataclasses import dataclass

from ._limits import TMA_EXTENDED_SINCE, TMA_SINCE
from .enums import TensorMapSwizzle as S

__all__ = ["PATTERNS", "SPAN_BYTES", "SwizzlePattern"]


@dataclass(frozen=True, slots=True)
class SwizzlePattern:
    """One swizzle mode as a permutation of byte offsets.

    Attributes
    ----------
    span_bytes : int
        Every row takes a multiple of this number of bytes, and each byte remains in its span (1 without a swizzle).
    atom_bytes : int
        Bytes that stay contiguous.
    repeat_bytes : int
        The permutation is the same for every block of this size.
    alignment_bytes : int
        Alignment of the destination at which the pattern starts at offset 0.
    xors : tuple of (int, int, int)
        (from_bit, to_bit, bits): that many address bits, read at ``from_bit``, are XOR-ed into ``to_bit``.
    code : int
        The code in a tensor map: the span (none, 32, 64, 128 bytes) in bits 0-1, the atom (16, 32, 32 flipped, 64
        bytes) in bits 2-3. Bit 4 is a span of 96 bytes, which no ``TensorMapSwizzle`` names.
    since : (int, int)
        The first compute capability that has it.
    is_wide : bool
        Whether im2col wide accepts it.
    can_store : bool
        Whether stores accept it, in addition to loads.
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

# Patterns: PTX ISA 5.5.7, the tables of each mode, "starting address of the repeating pattern"; a TMA destination is
# always aligned to 128 bytes. FLIP_8B: every other line of 128 bytes swaps the 8-byte halves of its 16-byte chunks.
# Codes: codec/_fields. Where it is legal: CUDA 13.5 driver API, cuTensorMapEncodeTiled and ...Im2colWide; PTX ISA 9.0,
# "Restriction on Tensor Copy instructions" (stores).
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
