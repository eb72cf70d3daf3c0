"""The layout of a ``CUtensorMap``, which is the place of each parameter in the 128 bytes.

The functions of :mod:`cuda_tma.codec` use this table.

A descriptor has 32 little-endian words of 32 bits. A :class:`Field` contains the bits of a parameter and the form of
the stored value: minus a bias, in a unit, or as a code. Fields of dimensions beyond the rank are zero.

The words and bits were observed on driver 580 and sm_90, in 60,000 recorded calls of the three encoders. The codes of
packed data types and the bits of the swizzle atom are from instructions of ptxas 13.0 for ``tensormap.replace``
(``.elemtype``, ``.swizzle_atomicity``), sm_100a and sm_120a. A public bug report (NVIDIA/cutlass, issue 3236) is a
further source for 16U4_ALIGN16B. The bits of the allocation class are those that CuTe DSL 4.8.1 sets. These codes and
bits are not verified on hardware.

The bytes do not show whether an im2col map is wide, and do not show its mode, W or W128 (observed: driver 580, sm_90).
In either mode, every recorded wide map has the bytes of the plain im2col map with the same corners.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .._data_type import ELEMENTS
from .._errors import TensorMapError
from .._limits import CORNER_BITS, MAX_RANK
from .._option_table import COMMON, OPTIONS, SIZES
from .._swizzle_pattern import PATTERNS
from ..enums import TensorMapDataType, TensorMapSwizzle
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams

__all__ = ["Field", "Piece", "fields"]


class Piece(NamedTuple):
    """A run of bits in one 32-bit word, which begins at bit `low` (0 is the least significant) and has `width` bits."""

    word: int
    low: int
    width: int


@dataclass(frozen=True, eq=False)
class Field:
    """The bits of one number in a descriptor, and its stored form, ``codes[value]`` or ``(value - bias) / unit``.

    Each row of the table is one object, so compare fields with ``is``.

    Attributes
    ----------
    name : str
        The parameter, as in :class:`cuda_tma.params.TiledParams`, or ``im2col``, ``rank``, or a derived number.
    pieces : tuple of Piece
        The bits of the stored number, with the least significant piece first.
    index : int or None
        The index in an array parameter, in driver order.
    bias, unit : int
        The terms of the stored number, which is ``(value - bias) / unit``. The unit is a power of two.
    signed : bool
        Whether the stored number is in two's complement.
    codes : tuple of int or None
        The stored number of each value, or None if a formula exists. None within the tuple marks a value that cannot be
        encoded.
    read_by_load : bool
        False for a number that the driver writes and that no load reads.
    """

    name: str
    pieces: tuple[Piece, ...]
    index: int | None = None
    bias: int = 0
    unit: int = 1
    signed: bool = False
    codes: tuple[int | None, ...] = ()
    read_by_load: bool = True

    @property
    def label(self) -> str:
        """The name with its index, such as ``global_dim[0]``."""
        return self.name if self.index is None else f"{self.name}[{self.index}]"

    @property
    def byte_offsets(self) -> tuple[int, ...]:
        """The bytes of the descriptor that contain the field.

        >>> Field("oob_fill", (Piece(2, 15, 1),)).byte_offsets
        (9,)
        """
        touched = {4 * w + bit // 8 for w, low, width in self.pieces for bit in range(low, low + width)}
        return tuple(sorted(touched))

    @cached_property
    def mask(self) -> int:
        """The field's bits in the descriptor, as one little-endian number of 1024 bits."""
        return sum(((1 << width) - 1) << (32 * word + low) for word, low, width in self.pieces)


_DATA_TYPE_CODES = tuple(ELEMENTS[data_type].code for data_type in TensorMapDataType)
_SWIZZLE_CODES = tuple(PATTERNS[swizzle].code for swizzle in TensorMapSwizzle)

IM2COL = Field("im2col", (Piece(2, 0, 1),))
RANK = Field("rank", (Piece(2, 4, 3),), bias=1)

_CODES = {"data_type": _DATA_TYPE_CODES, "swizzle": _SWIZZLE_CODES}


def _of_option(name: str) -> tuple[Field, ...]:
    """Return the fields of one option from the option's row in the table of options."""
    option = OPTIONS[name]
    pieces = [tuple(Piece(*piece) for piece in bits) for bits in option.bits]
    codes = _CODES.get(name, option.codes)
    return tuple(
        Field(name, each, dim if option.type is SIZES else None, option.bias, codes=codes)
        for dim, each in enumerate(pieces)
    )


_TENSOR = (
    *_of_option("data_type"),
    Field("global_address", (Piece(0, 0, 32), Piece(1, 0, 32))),
    *(Field("global_dim", (Piece(8 + i, 0, 32),), i, bias=1) for i in range(5)),
    *(Field("global_strides", (Piece(3 + i, 0, 32), Piece(7, 4 * i, 4)), i, unit=16) for i in range(4)),
)
_TRAVERSAL = tuple(field for option in COMMON if option.name != "data_type" for field in _of_option(option.name))
_BOX = _of_option("box_dim")
_PIXELS = _of_option("channels_per_pixel") + _of_option("pixels_per_column")
# The lower half of word 14 contains the lower im2col corner, and the upper half contains the upper corner.


def _corners(rank: int) -> tuple[Field, ...]:
    width = CORNER_BITS[rank]
    halves = (("pixel_box_lower_corner", 0), ("pixel_box_upper_corner", 16))
    return tuple(
        Field(name, (Piece(14, low + width * i, width),), i, signed=True)
        for name, low in halves
        for i in range(rank - 2)
    )


def _corner_widths(rank: int) -> tuple[Field, ...]:
    """Return the fields of the corners along W, which are the only corners of an im2col wide map.

    All other corners are zero.
    """
    return tuple(Field(f"{f.name}_width", f.pieces, signed=True) for f in _corners(rank) if f.index == 0)


# The driver also stores two transfer sizes that it computes from the parameters. No load reads the transfer sizes: they
# are zero in maps of CuTe DSL 4.8.1, and these maps work.
TRANSFER_BYTES = Field("transfer_bytes", (Piece(16, 0, 32),), read_by_load=False)
SWIZZLE_REPEAT_BYTES = Field("swizzle_repeat_bytes", (Piece(18, 0, 32),), read_by_load=False)

# Some bits of maps that the driver makes do not belong to a parameter. The function decode() returns bits without a
# parameter in `unexplained`, and diff() reports their names.
BEYOND_PARAMS = (Field("bit 1 of word 2", (Piece(2, 1, 1),), read_by_load=False),)

_MIN_RANK = {TiledParams: 1, Im2colParams: 3, Im2colWideParams: 3}


def _table(mode: type, rank: int) -> tuple[Field, ...]:
    corners = {Im2colParams: _corners, Im2colWideParams: _corner_widths}
    shape = _BOX if mode is TiledParams else corners[mode](rank) + _PIXELS
    count = {"global_strides": rank - 1}
    return tuple(f for f in _TENSOR + shape + _TRAVERSAL if f.index is None or f.index < count.get(f.name, rank))


_TABLES = {(mode, rank): _table(mode, rank) for mode, least in _MIN_RANK.items() for rank in range(least, MAX_RANK + 1)}


def fields(mode: type[Params], rank: int) -> tuple[Field, ...]:
    """Return the fields that contain the parameters of a mode and rank, in the order of the driver's arguments.

    Parameters
    ----------
    mode : type
        ``TiledParams``, ``Im2colParams`` or ``Im2colWideParams``.
    rank : int
        The rank, which is 1 to 5, or 3 to 5 for the im2col modes.

    Raises
    ------
    TensorMapError
        If the mode does not have this rank.

    Examples
    --------
    >>> [f.label for f in fields(TiledParams, 1)][:3]
    ['data_type', 'global_address', 'global_dim[0]']
    """
    known = next((known for known in _MIN_RANK if issubclass(mode, known)), None)
    if known is None:
        raise TensorMapError(f"params must be TiledParams, Im2colParams or Im2colWideParams, not {mode.__name__}")
    if (known, rank) not in _TABLES:
        raise TensorMapError(
            f"rank {rank} cannot be encoded in a tensor map; {mode.__name__} has rank {_MIN_RANK[known]} to {MAX_RANK}"
        )
    return _TABLES[known, rank]


# MEANINGS maps the name of a field to the effect of a wrong value on a load.
MEANINGS = {option.name: option.meaning for option in COMMON} | {
    "im2col": "a load takes pixels in convolution order instead of a box, or the reverse; the wrong instruction faults",
    "rank": "an instruction of the other rank faults, and the coordinates of the lost dimensions are ignored",
    "data_type": "elements have another size or conversion: coordinates, the box and the fill stand for other bytes",
    "global_address": "the load reads another tensor, or another part of it",
    "global_dim": "the edge beyond which a load fills is elsewhere: wrong bytes are read or valid ones are lost",
    "global_strides": "every index but 0 of this dimension is read from another address",
    "box_dim": "a load delivers another number of elements: expect_tx and the layout in shared memory change",
    "pixel_box_lower_corner": "the pixels begin elsewhere, relative to the tensor's first",
    "pixel_box_upper_corner": "the pixels end elsewhere, relative to the tensor's last",
    "channels_per_pixel": "a load delivers another number of channels: expect_tx and shared memory change",
    "pixels_per_column": "a load delivers another number of pixels: expect_tx and shared memory change",
    "element_strides": "a load visits other elements along this dimension, and another number of them",
    "interleave": "memory is read in other slices, and coordinates mean other bytes",
    "swizzle": "the bytes arrive at other places in shared memory",
    "l2_promotion": "L2 fetches another size: the bytes are the same, the speed may not be",
    "oob_fill": "elements out of bounds are zero instead of NaN, or the reverse",
    "transfer_bytes": "the driver's own copy of the transfer size",
    "swizzle_repeat_bytes": "the driver's own copy of the period of the swizzle pattern",
    "bit 1 of word 2": "unknown; CuTe DSL sets it, and its maps work",
    "allocation_class": "out-of-bounds address generation may reach 128 KiB (LARGE) instead of 4 KiB (SMALL) "
    "from compute capability 10.0 on; in a smaller allocation it may fault (documented, not verified on hardware)",
}
