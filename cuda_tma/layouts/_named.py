"""Layouts by their names, such as ``wgmma.a:e4m3:64x32``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import lcm, prod
from types import MappingProxyType

import numpy as np

from .._given import shown
from .._swizzle_pattern import SPAN_BYTES
from ..enums import TensorMapDataType as T
from ..enums import TensorMapSwizzle
from ..params import TiledParams
from . import _fragments, _places, _tensor_memory
from ._cute import atom_layout, thread_value_layout
from ._element_layout import ElementLayout, check_size
from ._fragments import Places

__all__ = ["NAMES", "layout", "two_layouts"]

_BITS = {
    **dict.fromkeys(("f32", "tf32", "s32", "b32"), 32),
    **dict.fromkeys(("f16", "bf16", "b16"), 16),
    # In registers and tensor memory, an element of 6 bits has a byte.
    **dict.fromkeys(("e4m3", "e5m2", "e2m3", "e3m2", "s8", "u8", "b8", "ue8m0", "ue4m3"), 8),
    "e2m1": 4,
}
# The types of tiles whose elements TMA packs.
_PACKED_TILES = {
    "e2m1": T.PACKED_16U4_ALIGN8B,
    "u4_align8b": T.PACKED_16U4_ALIGN8B,
    "u4_align16b": T.PACKED_16U4_ALIGN16B,
    "e2m3": T.PACKED_16U6_ALIGN16B,
    "e3m2": T.PACKED_16U6_ALIGN16B,
    "u6_align16b": T.PACKED_16U6_ALIGN16B,
}
_FRAGMENTS = 'PTX ISA 9.0, "Register Fragments for wgmma", "Matrix Fragments for mma", "ldmatrix", "stmatrix"'
_SCALES = 'PTX ISA 9.0, "Block Scaling" of mma; documented, not verified on hardware'
_TENSOR_MEMORY = 'PTX ISA 9.0, "Tensor Memory"; documented, not verified on hardware'


@dataclass(frozen=True, slots=True)
class _Kind:
    """The meaning of a name: its places, the multiples of its rows and columns (in bits), and its element widths."""

    places: Callable[[np.ndarray, np.ndarray, int], Places]
    words: str
    rows: int
    column_bits: int = 0
    columns: int = 0
    widths: tuple[int, ...] = (32, 16, 8)
    most_rows: int = 1 << 10
    space: str = "registers"

    def step(self, bits: int) -> tuple[int, int]:
        """Return the shape of the smallest matrix of the kind."""
        return self.rows, self.columns or self.column_bits // bits


_KINDS: dict[str, _Kind] = {
    "wgmma.d": _Kind(_fragments.sums, "accumulators of wgmma (C and D)", 64, columns=8, widths=(32, 16)),
    "wgmma.a": _Kind(_fragments.factor, "A of wgmma in registers", 64, 256),
    "mma.d": _Kind(_fragments.sums, "accumulators of mma (C, D); a warp has 16 rows", 16, columns=8, widths=(32, 16)),
    "mma.a": _Kind(_fragments.factor, "A of mma; a warp has 16 rows", 16, 128, widths=(32, 16, 8, 4)),
    "mma.b": _Kind(
        _fragments.factor_b, "B of mma: a row is one of its 8 columns", 8, 128, widths=(32, 16, 8, 4), most_rows=8
    ),
    "mma.scales": _Kind(
        _fragments.scales,
        "scale factors of mma; a thread-id selects 16 rows of A, or 8 columns of B",
        8,
        columns=4,
        widths=(8,),
        most_rows=32,
    ),
    "ldmatrix.x1": _Kind(_fragments.matrices(1), "one matrix", 8, 128, widths=(16, 8)),
    "ldmatrix.x2": _Kind(_fragments.matrices(2), "two stacked matrices", 16, 128, widths=(16, 8)),
    "ldmatrix.x4": _Kind(_fragments.matrices(2), "four: two stacked, twice", 16, 256, widths=(16, 8)),
    "ldmatrix.x4.trans": _Kind(_fragments.matrices_turned(2), "four, each transposed", 16, 256, widths=(16,)),
    "stmatrix.x4": _Kind(_fragments.matrices(2), "four: two stacked, twice", 16, 256, widths=(16, 8)),
    "stmatrix.x4.trans": _Kind(_fragments.matrices_turned(2), "four, each transposed", 16, 256, widths=(16,)),
    "tmem.d": _Kind(
        lambda row, column, bits: _places.accumulator(row, column, bits, len(row)),
        "accumulators of tcgen05.mma in tensor memory, of 64 or 128 rows",
        64,
        columns=8,
        widths=(32,),
        most_rows=128,
        space="tensor memory",
    ),
    "tmem.scales": _Kind(
        _tensor_memory.scale_factors,
        "scale factors of tcgen05.mma, 4 for each row; again in each further 32 lanes",
        32,
        columns=4,
        widths=(8,),
        most_rows=256,
        space="tensor memory",
    ),
    "scales": _Kind(
        _tensor_memory.scales_in_tiles,
        "scale factors in tiles of 512 bytes, from which tcgen05.cp.32x128b.warpx4 copies",
        128,
        columns=4,
        widths=(8,),
        space="shared memory",
    ),
    "tcgen05.ld.32x32b": _Kind(_places.loaded_32x32b, "a lane of tensor memory a thread", 32, columns=1, widths=(32,)),
    "tcgen05.ld.16x32bx2": _Kind(
        _places.loaded_16x32bx2, "16 lanes x two halves of the columns, again", 32, columns=2, widths=(32,)
    ),
    "tcgen05.ld.16x64b": _Kind(_places.loaded_16x64b, "16 lanes x 2 columns, again", 32, columns=2, widths=(32,)),
    "tcgen05.ld.16x128b": _Kind(_places.loaded_16x128b, "16 lanes x 4 columns, again", 32, columns=4, widths=(32,)),
    "tcgen05.ld.16x256b": _Kind(_places.loaded_16x256b, "16 lanes x 8 columns, again", 32, columns=8, widths=(32,)),
}
#: The kinds of layouts that :func:`layout` takes by name, with a description of each.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        **{name: kind.words for name, kind in _KINDS.items()},
        **_tensor_memory.FRAGMENTS,
        "tile": "a box in shared memory: tile:bf16:8x64:128B, with its swizzle",
        "cute": "a thread-value layout: cute:((4,8),(2,2)):((32,1),(16,8))@16x8",
        "atom": "an operand of an atom of tensor-layouts: atom:SM80_16x8x16_F32BF16BF16F32_TN.a",
    }
)
_NAME = re.compile(
    r"(?P<kind>[\w.]+)(:(?P<type>[a-z]\w*))?(:(?P<rows>\d{1,9})x(?P<columns>\d{1,9}))?(:(?P<swizzle>\w{1,32}))?"
)
_CUTE = re.compile(r"cute:(?P<layout>.+)@(?P<rows>\d{1,9})x(?P<columns>\d{1,9})")
_TILE_TYPES = {32: T.UINT32, 16: T.UINT16, 8: T.UINT8}


def layout(name: str, shape: tuple[int, int] | None = None) -> ElementLayout:
    """Return a layout by its name ``KIND:TYPE:ROWSxCOLUMNS``. The command ``cuda-tma layouts`` lists the kinds.

    Parameters
    ----------
    name : str
        The name, whose type is a type of PTX (``f32``, ``bf16``, ``e4m3``, ``b16``). The default is f32 for
        accumulators, and otherwise a type of 16 bits.
    shape : (int, int), optional
        The rows and columns if the name has none (default: those of the smallest matrix of the kind).

    Returns
    -------
    ElementLayout

    Raises
    ------
    ValueError
        If no layout has this name, type or shape.

    Examples
    --------
    >>> layout("ldmatrix.x4:b16").said(9, 3), layout("tile:bf16:8x64:128B").said(1, 0)
    ('thread 5, value 3', 'byte 144')
    """
    if name.startswith("atom:"):
        atom, _, operand = name.removeprefix("atom:").rpartition(".")
        return atom_layout(atom, operand)
    if (found := _tensor_memory.fragment(name)) is not None:
        return found.elements()
    if name.startswith("cute:"):
        if not (cute := _CUTE.fullmatch(name)):
            raise ValueError(
                f"{name} has no shape; append the shape to the layout, as in cute:((4,8),(2,2)):((32,1),(16,8))@16x8"
            )
        return thread_value_layout(cute["layout"], (int(cute["rows"]), int(cute["columns"])), name)
    kind, type_, stated, swizzle = _parts(name)
    shape = stated or shape
    check_size(name, prod(shape or ()))
    return _tile(type_, shape, swizzle) if kind == "tile" else _fragment(name, kind, type_, shape)


def two_layouts(first: str, second: str) -> tuple[ElementLayout, ElementLayout]:
    """Return two layouts by their names.

    A name without a shape has the shape of the other name, or the smallest common shape.

    >>> [each.shape for each in two_layouts("wgmma.d:f32", "wgmma.a:e4m3")]
    [(64, 32), (64, 32)]
    """
    shapes = [_shape_of(name) for name in (first, second)]
    known = next((shape for shape in shapes if shape is not None), None)
    if known is None:
        steps = [_step_of(name) for name in (first, second)]
        are_tiles = all(name.startswith("tile") for name in (first, second))
        # A row of a tile must not be longer than the span of the swizzle.
        columns = (min if are_tiles else lcm)(*(columns for _, columns in steps))
        known = lcm(*(rows for rows, _ in steps)), columns
    return layout(first, known), layout(second, known)


def _parts(name: str) -> tuple[str, str, tuple[int, int] | None, str]:
    """Return the kind, the type, the shape and the swizzle in a name."""
    found = _NAME.fullmatch(name)
    kind = re.sub(r"^(wgmma|mma|tmem)\.c$", r"\1.d", found["kind"]) if found else ""
    # The instructions tcgen05.st and tcgen05.ld use the same registers.
    kind = re.sub(r"^tcgen05\.st\b", "tcgen05.ld", kind)
    if not found or kind not in (*_KINDS, "tile"):
        raise ValueError(
            f"{shown(name)} is not the name of a layout; use one of {', '.join(NAMES)}, such as wgmma.a:e4m3:64x32"
        )
    default = (
        "f32"
        if kind.endswith(".d")
        else "ue8m0"
        if kind.endswith("scales")
        else "b32"
        if kind.startswith("tcgen05")
        else "b16"
    )
    type_ = found["type"] or default
    known = (*_BITS, *_PACKED_TILES) if kind == "tile" else _BITS
    if type_ not in known:
        raise ValueError(f"{name}: {type_} is not one of {', '.join(dict.fromkeys(known))}")
    if found["swizzle"] and kind != "tile":
        raise ValueError(f"{name} has a swizzle, which is only for tiles in shared memory; leave it out")
    shape = (int(found["rows"]), int(found["columns"])) if found["rows"] else None
    return kind, type_, shape, found["swizzle"] or "NONE"


def _shape_of(name: str) -> tuple[int, int] | None:
    """Return the shape that a name contains or determines."""
    if name.startswith(("atom:", "cute:")) or _tensor_memory.fragment(name) is not None:
        return layout(name).shape
    return _parts(name)[2]


def _step_of(name: str) -> tuple[int, int]:
    kind, type_, _, swizzle = _parts(name)
    return (8, _columns_of_span(type_, swizzle)) if kind == "tile" else _KINDS[kind].step(_BITS[type_])


def _span_bytes(swizzle: str) -> int:
    """Return the span that contains a row of a swizzled tile, or 128 for a tile without a swizzle."""
    return SPAN_BYTES.get(TensorMapSwizzle.parse(swizzle, "swizzle"), 128)


def _columns_of_span(type_: str, swizzle: str) -> int:
    """Return the number of elements in the span of a swizzle."""
    packed = _PACKED_TILES.get(type_)
    # A group of 16 packed elements has 8 bytes, or 16 bytes with a gap.
    bits = _BITS[type_] if packed is None else 4 if packed == T.PACKED_16U4_ALIGN8B else 8
    return 8 * _span_bytes(swizzle) // bits


def _fragment(name: str, kind: str, type_: str, shape: tuple[int, int] | None) -> ElementLayout:
    found, bits = _KINDS[kind], _BITS[type_]
    if bits not in found.widths:
        raise ValueError(f"{name}: {kind} has elements of {' or '.join(map(str, found.widths))} bits, not {bits}")
    step = found.step(bits)
    rows, columns = shape or step
    if rows % step[0] or columns % step[1] or not 0 < rows <= found.most_rows or not columns:
        raise ValueError(
            f"{name}: {rows} x {columns}, but {kind} of {type_} has pieces of {step[0]} x {step[1]} elements"
        )
    row, column = np.indices((rows, columns))
    at = np.stack(found.places(row, column, bits), axis=-1).astype(np.int64)
    source = _TENSOR_MEMORY if kind.startswith(("tmem", "tcgen05")) else _SCALES if "scales" in kind else _FRAGMENTS
    return ElementLayout(f"{kind}:{type_}:{rows}x{columns}", found.space, bits, at, source)


def _tile(type_: str, shape: tuple[int, int] | None, swizzle: str) -> ElementLayout:
    mode, most = TensorMapSwizzle.parse(swizzle, "swizzle"), _columns_of_span(type_, swizzle)
    rows, columns = shape or (8, most)
    data_type = _PACKED_TILES.get(type_) or _TILE_TYPES[_BITS[type_]]
    if mode and columns > most:
        size = _span_bytes(swizzle)
        raise ValueError(
            f"tile:{type_}:{rows}x{columns}:{swizzle} has rows of {-(-columns * size // most)} bytes, but with this "
            f"swizzle a row has at most {size}; use {most} columns or less"
        )
    params = TiledParams(
        data_type=data_type,
        global_address=0,
        global_dim=(columns, rows),
        global_strides=(-(-columns * _span_bytes(swizzle) // most // 16) * 16,),
        box_dim=(columns, rows),
        element_strides=(1, 1),
        swizzle=mode,
    )
    return _places.tile(params, f"tile:{type_}:{rows}x{columns}:{mode.short_name}")
