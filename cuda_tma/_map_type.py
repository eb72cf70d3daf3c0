"""The content of a typed map in a kernel's signature: ``TiledMap`` and ``Im2colMap`` in C++ (cuda_tma/tile.cuh).

``launch`` compares descriptors with this type, and creates maps from it. The module _compile/parameter_types.py reads
the types of a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from ._data_type import ELEMENTS
from ._enum_members import PARAMETER_ENUMS
from ._errors import TensorMapError
from ._given import integer, integers, shown
from ._limits import CORNER_BITS, MAX_RANK
from ._option_values import Choice, Integers
from ._options import TensorMapOptions
from ._swizzle_pattern import SPAN_BYTES
from .enums import TensorMapDataType, TensorMapL2Promotion, TensorMapOOBFill, TensorMapSwizzle

__all__ = ["MapPointer", "MapType", "box_bytes", "box_extent"]

_CPP_NAMES = {"tiled": "TiledMap", "im2col": "Im2colMap"}
# _CPP_PREFIXES maps an option to the prefix of its enumerators in the C++ header.
_CPP_PREFIXES = {"data_type": "", "swizzle": "SWIZZLE_", "oob_fill": "OOB_FILL_", "l2_promotion": "L2_PROMOTION_"}


def box_extent(tile_extent: int, data_type: int, swizzle: int) -> int:
    """Return the innermost extent of the box for a tile.

    A tile that is wider than the span of its swizzle needs several boxes.

    The class ``Tile`` of the header has the same rule.

    Parameters
    ----------
    tile_extent : int
        The tile's innermost extent, in elements.
    data_type, swizzle : int
        The driver's values.

    Examples
    --------
    >>> box_extent(128, TensorMapDataType.FLOAT16, TensorMapSwizzle.SWIZZLE_128B)
    64
    >>> box_extent(128, TensorMapDataType.FLOAT16, TensorMapSwizzle.NONE)
    128
    """
    if swizzle not in SPAN_BYTES:
        return tile_extent
    return min(tile_extent, SPAN_BYTES[swizzle] * 8 // ELEMENTS[data_type].smem_bits)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MapType:
    """The type of a kernel's parameter that is a typed map, which contains the tile that one load delivers.

    Parameters
    ----------
    mode : {"tiled", "im2col"}
        The class of the parameter in C++: ``TiledMap`` or ``Im2colMap``.
    tile_dim : tuple of int
        Extents of the tile in elements, in tensor order, as in C++'s ``Box``. For im2col, they are the pixels and the
        channels.
    data_type : TensorMapDataType
    swizzle : TensorMapSwizzle
    oob_fill : TensorMapOOBFill
    l2_promotion : TensorMapL2Promotion
    rank : int, optional
        Number of dimensions of the tensor. The number is the rank of the tile, or 3 to 5 for im2col.

    Raises
    ------
    TensorMapError
        If the C++ header would refuse the values.

    Examples
    --------
    >>> tile = MapType(mode="tiled", tile_dim=(64, 128), data_type=TensorMapDataType.FLOAT16, swizzle=3)
    >>> tile.box_dim, tile.box_count, tile.tx_bytes
    ((64, 64), 2, 16384)
    >>> print(tile)
    TiledMap<Tile<FLOAT16, Box<64, 128>, SWIZZLE_128B>>
    """

    mode: Literal["tiled", "im2col"]
    tile_dim: tuple[int, ...]
    data_type: TensorMapDataType
    swizzle: TensorMapSwizzle = TensorMapSwizzle.NONE
    oob_fill: TensorMapOOBFill = TensorMapOOBFill.NONE
    l2_promotion: TensorMapL2Promotion = TensorMapL2Promotion.NONE
    rank: int = 0

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            mode: Literal["tiled", "im2col"],
            tile_dim: Integers,
            data_type: Choice,
            swizzle: Choice = TensorMapSwizzle.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            rank: int = 0,
        ) -> None: ...

    def __post_init__(self) -> None:
        """Convert values to ints and members of enums; refuse values that no kernel type can have."""
        if self.mode not in _CPP_NAMES:
            raise TensorMapError(f'mode is {shown(self.mode)}; pass "tiled" or "im2col"')
        tile_dim = integers("tile_dim", self.tile_dim, len(self.tile_dim), "in tensor order")
        rank = integer("rank", self.rank) or (len(tile_dim) if self.mode == "tiled" else 0)
        if self.mode == "tiled":
            is_right, wants = 1 <= rank == len(tile_dim) <= MAX_RANK, "an extent for each of 1 to 5 dimensions"
        else:
            is_right, wants = len(tile_dim) == 2 and rank in CORNER_BITS, "pixels and channels, and a rank of 3 to 5"
        if not is_right or min(tile_dim) < 1:
            raise TensorMapError(f"tile_dim is {tile_dim} and rank is {rank}; {self.mode} needs {wants}")
        object.__setattr__(self, "tile_dim", tile_dim)
        object.__setattr__(self, "rank", rank)
        for name in _CPP_PREFIXES:
            object.__setattr__(self, name, PARAMETER_ENUMS[name].parse(getattr(self, name), name))

    @property
    def box_dim(self) -> tuple[int, ...]:
        """The box of the map in tensor order; `box_count` boxes fill the tile. For im2col, the box is the column."""
        return (*self.tile_dim[:-1], box_extent(self.tile_dim[-1], self.data_type, self.swizzle))

    @property
    def box_count(self) -> int:
        """The number of boxes that loads of one tile deliver."""
        return -(-self.tile_dim[-1] // self.box_dim[-1])

    @property
    def tx_bytes(self) -> int:
        """The bytes that the loads of one tile deliver, for ``expect_tx``.

        If the boxes extend beyond the tile, the number includes the bytes outside the tile.
        """
        return self.box_count * math.prod(self.box_dim) * ELEMENTS[self.data_type].bits // 8

    @property
    def keywords(self) -> dict[str, Any]:
        """The options in the type, by name.

        A tiled map's type contains all options. An im2col map's type contains all options except the corners.
        """
        if self.mode == "tiled":
            shape: dict[str, Any] = {"box_dim": self.box_dim}
        else:
            shape = dict(zip(("pixels_per_column", "channels_per_pixel"), self.box_dim, strict=True))
        return shape | {name: getattr(self, name) for name in _CPP_PREFIXES}

    @property
    def options(self) -> TensorMapOptions:
        """The options for making a map of a tensor.

        Raises
        ------
        TensorMapError
            If the map is im2col, because the type does not contain the corners.
        """
        if self.mode == "im2col":
            raise TensorMapError(
                f"{self} does not contain the corners of the box of pixels; create the map with "
                "TensorMapIm2colOptions(lower_corner, upper_corner, **map_type.keywords)"
            )
        return TensorMapOptions(**self.keywords)

    def __repr__(self) -> str:
        """Return the text of a call that returns an equal value."""
        return f"MapType({', '.join(f'{f.name}={self._written(f.name)}' for f in fields(self))})"

    def _written(self, name: str) -> str:
        value = getattr(self, name)
        return f"{type(value).__name__}.{value.name}" if name in _CPP_PREFIXES else repr(value)

    def __str__(self) -> str:
        """Return the C++ spelling of the type, without the default arguments."""
        tile = [self._enumerator("data_type"), f"Box<{', '.join(map(str, self.tile_dim))}>"]
        if self.swizzle:
            tile.append(self._enumerator("swizzle"))
        arguments = [f"Tile<{', '.join(tile)}>"]
        if self.mode == "im2col":
            arguments.append(str(self.rank))
        if self.oob_fill or self.l2_promotion:
            arguments.append(self._enumerator("oob_fill"))
        if self.l2_promotion:
            arguments.append(self._enumerator("l2_promotion"))
        return f"{_CPP_NAMES[self.mode]}<{', '.join(arguments)}>"

    def _enumerator(self, name: str) -> str:
        """Return the name of an option's value in the header."""
        return _CPP_PREFIXES[name] + getattr(self, name).short_name.removeprefix("16").removesuffix("_REQUEST_ZERO_FMA")


@dataclass(frozen=True, slots=True)
class MapPointer:
    """The type of a kernel's parameter that points to typed maps in memory, such as those of a ``TensorMapArray``.

    Parameters
    ----------
    target : MapType
    """

    target: MapType


def box_bytes(parameters: Iterable[tuple[str, object]]) -> dict[str, int]:
    """Return the bytes of a load through each typed map, by the name of the parameter.

    The argument contains the pair (name, type) of every parameter.

    Examples
    --------
    >>> window = MapType(mode="tiled", tile_dim=(64, 128), data_type="UINT8")
    >>> box_bytes([("a", window), ("count", "integer")])
    {'a': 8192}
    """
    types = ((name, kind.target if isinstance(kind, MapPointer) else kind) for name, kind in parameters)
    return {name: kind.tx_bytes for name, kind in types if name and isinstance(kind, MapType)}
