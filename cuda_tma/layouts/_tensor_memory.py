"""Layouts of CuTe in tensor memory, which are accumulators, targets of stores, A operands and scale factors.

The sources are PTX ISA 9.0, "Tensor Memory Addressing", "Data Path Layout Organization" and "Scale Factor Layout". The
sources of CuTe's addresses are `tmem_ptr` and `TMEM::DP` of CUTLASS 4.7 (`cute/pointer.hpp`,
`cute/arch/tmem_allocator_sm100.hpp`). The layouts are not verified on hardware.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from .._given import shown
from ._element_layout import ElementLayout, check_size
from ._fragments import Grid
from ._notation import CuteLayout, flat, parse, size

__all__ = ["A_RULE", "FRAGMENTS", "Fragment", "fragment", "packed", "scale_factors", "scales_in_tiles"]

LANES, COLUMNS = 128, 512
_SOURCE = 'PTX ISA 9.0, "Tensor Memory", and CUTLASS 4.7; documented, not verified on hardware'
_ROLES = {
    "tmem": "an address in tensor memory: 16 bits of lane above 16 bits of column, as CuTe counts it",
    "tmem.d": "sums of tcgen05.mma",
    "tmem.a": "A operand of tcgen05.mma in tensor memory: row m is in lane m",
}
#: The names of CuTe's layouts in tensor memory begin with one of the texts in the tuple.
FRAGMENTS = {
    "tmem": "a layout of CuTe in tensor memory: tmem:bf16x2:(128,64):(65536,1)+32, two bf16 in each 32 bits",
    "tmem.a": "an A operand in tensor memory: tmem.a:bf16:((128,16),1,4):((64,1),0,16)+32",
}
A_RULE = (
    'an A operand in tensor memory has row m in lane m, for any printed stride of m (PTX ISA 9.0, "Data Path '
    'Layout Organization"; documented, not verified on hardware)'
)
# An element of 4 or 6 bits has a byte, except the packed e2m1 of the kinds mxf4 and mxf4nvf4.
_BITS = {
    **dict.fromkeys(("f32", "tf32", "s32", "b32"), 32),
    **dict.fromkeys(("f16", "bf16"), 16),
    **dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2", "s8", "u8", "b8"), 8),
    "e2m1": 4,
}
_PRINTED_TYPES = {
    **{"f8e4m3fn": "e4m3", "f8e5m2": "e5m2", "f6e2m3fn": "e2m3", "f6e3m2fn": "e3m2", "f4e2m1fn": "e2m1"},
    **{"i32": "s32", "i8": "s8", "si8": "s8", "ui8": "u8"},
}
_NAME = re.compile(r"(?P<role>tmem(\.[da])?):(?P<type>[A-Za-z]\w*?)([xX](?P<packed>[248]))?:(?P<layout>.*[(:].*)")
_PRINTED = re.compile(
    r"((?P<role>tmem(\.[da])?):)?(tensor|\D*?memref)<(ptr<)?(?P<type>\w+), *tmem.*?[>\"] *(o )?\"?"
    r"(?P<layout>[(\d][^>\"]*)[>\"]+(?P<rest>.*)"
)


class Fragment(NamedTuple):
    """A layout of CuTe in tensor memory, and the elements in it.

    Attributes
    ----------
    role : str
        ``"tmem"``, ``"tmem.d"`` or ``"tmem.a"``.
    type : str
    bits : int
        The bits of an element, also if several elements are packed into 32 bits.
    packed : int
        The number of elements in each value of the layout.
    layout : CuteLayout
    """

    role: str
    type: str
    bits: int
    packed: int
    layout: CuteLayout

    @property
    def name(self) -> str:
        """The name of the layout in a normal form."""
        shape, stride = (_printed(each) for each in (self.layout.shape, self.layout.stride))
        base = f"+{self.layout.base}" if self.layout.base else ""
        return f"{self.role}:{self.type}{f'x{self.packed}' if self.packed > 1 else ''}:{shape}:{stride}{base}"

    def elements(self) -> ElementLayout:
        """Return the lane, the column and the part of each element."""
        if not size(self.layout.shape):
            raise ValueError(f"{self.name} has no elements; pass extents of 1 or more")
        check_size(self.name, size(self.layout.shape) * self.packed)
        rows, columns = self._modes()
        row, column = np.meshgrid(rows, columns, indexing="ij")
        places = self._of_a_operand(column) if self.role == "tmem.a" else self._of_addresses(row + column)
        self._check(places)
        if self.bits == 32:
            places = places[..., :2]
        return ElementLayout(self.name, "tensor memory", self.bits, places, _SOURCE)

    def _modes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of rows and columns, from two modes or from ((M, N), rest of M, rest of N, ...)."""
        layout = self.layout
        first = layout.shape[0]
        if not isinstance(first, tuple) or len(first) != 2 or len(layout.shape) < 3:
            return layout.offsets(slice(0, 1)), layout.offsets(slice(1, None))
        inner = CuteLayout(first, layout.stride[0])  # type: ignore[arg-type]
        rows = np.add.outer(layout.offsets(slice(1, 2)), inner.offsets(slice(0, 1))).ravel()
        columns = np.add.outer(layout.offsets(slice(2, None)), inner.offsets(slice(1, 2))).ravel()
        return rows, columns

    def _of_addresses(self, offset: Grid) -> np.ndarray:
        """Return the lane, the column and the part of each element.

        In the offset of a narrow value, the low bits select its part of the column.
        """
        each = 32 // (self.bits * self.packed)
        address = offset // each + self.layout.base
        part = offset % each
        if self.packed > 1:
            address = np.repeat(address, self.packed, axis=1)
            part = np.tile(np.arange(self.packed), offset.shape[1])[None, :] + np.zeros_like(address)
        return np.stack([address >> 16, address & 0xFFFF, part], axis=-1)

    def _of_a_operand(self, offset: Grid) -> np.ndarray:
        """Return the lane, the column and the part of each element.

        Row m is in lane m, and offsets along K count elements.
        """
        if len(offset) != LANES:
            raise ValueError(f"{self.name} has {len(offset)} rows, but an A operand in tensor memory has {LANES}")
        lanes = np.arange(LANES)[:, None] + np.zeros_like(offset)
        each = 32 // self.bits
        return np.stack([lanes, self.layout.base + offset // each, offset % each], axis=-1)

    def _check(self, places: np.ndarray) -> None:
        lane, column = int(places[..., 0].max()), int(places[..., 1].max())
        if lane < LANES and column < COLUMNS:
            return
        stride = (1 << 16) * 32 // (self.bits * self.packed)
        is_shifted = self.role != "tmem.a" and self.printed_row_stride != stride
        remedy = f"use CuTe's stride of a lane, {stride}" if is_shifted else "shorten the rows, or lower the base"
        raise ValueError(
            f"{self.name} reaches lane {lane}, column {column}, but tensor memory has {LANES} lanes and {COLUMNS} "
            f"columns of 32 bits; {remedy}"
        )

    @property
    def printed_row_stride(self) -> int:
        """Return the stride that CuTe prints for the rows."""
        return flat(self.layout.stride)[0]

    def at_base(self, base: int) -> Fragment:
        """Return the same fragment with another base."""
        return self._replace(layout=replace(self.layout, base=base))

    def with_blocks(self, columns: int) -> Fragment | None:
        """Return the same fragment with another number of columns, which changes its last mode, if that is possible."""
        shape, last = self.layout.shape, self.layout.shape[-1]
        held = self.elements().shape[1]
        if not isinstance(last, int) or held % last or columns % (held // last):
            return None
        blocks = columns // (held // last)
        return self._replace(layout=CuteLayout((*shape[:-1], blocks), self.layout.stride, self.layout.base))


def fragment(name: str) -> Fragment | None:
    """Parse the name of a layout of CuTe in tensor memory. Return None for the name of another layout.

    Raises
    ------
    ValueError
        If the type is unknown, or if the text is not a layout.
    """
    found = _NAME.fullmatch(name) or _PRINTED.fullmatch(name)
    if not found:
        return None
    parts = found.groupdict()
    type_ = parts["type"].lower()
    type_ = _PRINTED_TYPES.get(type_, type_)
    packed = int(parts.get("packed") or 1)
    if type_ not in _BITS:
        raise ValueError(
            f"{shown(name)}: {type_} is not one of {', '.join(_BITS)}, or several elements in 32 bits, such as bf16x2"
        )
    if packed > 1 and packed * _BITS[type_] != 32:
        raise ValueError(f"{shown(name)}: {packed} of {type_} have {packed * _BITS[type_]} bits, but a column has 32")
    layout = parse(parts["layout"] + parts.get("rest", "") if "rest" in parts else parts["layout"])
    if len(layout.shape) < 2:
        raise ValueError(f"{shown(name)} has one mode; pass rows and columns, such as (128,64):(65536,1)")
    return Fragment(parts["role"] or "tmem", type_, _BITS[type_], packed, layout)


def packed(name: str, other: str) -> Fragment | None:
    """Return a layout of 32-bit values as a layout of packed elements, which have the type of the other layout.

    Return None if the values are not addresses (``tmem``) of 32 bits, or if the elements of the other have 32 bits.
    """
    found, narrow = fragment(name), fragment(other)
    if found is None or narrow is None or found.role != "tmem" or found.bits != 32 or narrow.bits == 32:
        return None
    return found._replace(type=narrow.type, bits=narrow.bits, packed=32 // narrow.bits)


def scale_factors(row: Grid, column: Grid, bits: int) -> tuple[Grid, Grid, Grid]:
    """Return the places of scales: in each column, each of 32 lanes contains the scales of one row as bytes.

    Each further group of 32 lanes has the same scales, which ``tcgen05.cp.32x128b.warpx4`` writes.
    """
    return row % 32, row // 32 + column // 4 * (len(row) // 32), column % 4


def scales_in_tiles(row: Grid, column: Grid, bits: int) -> tuple[Grid]:
    """Return the byte of each scale in memory, in tiles of 128 rows and 4 scales, stored as 32 rows of 16 bytes.

    The tiles of the same rows are adjacent. ``tcgen05.cp.32x128b.warpx4`` copies a tile to tensor memory.
    """
    tile = row // 128 * (column.shape[1] // 4) + column // 4
    return (tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + column % 4,)


def _printed(tree: object) -> str:
    return str(tree) if isinstance(tree, int) else f"({','.join(map(_printed, tree))})"  # type: ignore[call-overload]
