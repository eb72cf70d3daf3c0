"""The place of an element of a box, and the size of the box in shared memory."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, cast

from .._data_type import ELEMENTS, GROUP_ELEMENTS, Element
from .._errors import TensorMapError
from .._given import entry, integer, integers, shown
from .._limits import MAX_SMEM_BYTES
from .._params_checks import check_params
from ..enums import TensorMapDataType as T
from ..enums import TensorMapIm2ColWideMode, TensorMapInterleave
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams
from ._kept import kept_without_address
from ._pattern import pattern, swizzle_offset

CHUNK_BYTES = 16  # The engine moves data between global and shared memory in chunks of 16 bytes.

# The slice of a layout without interleave has 0 bytes.
_SLICE_BYTES = dict(zip(TensorMapInterleave, (0, 16, 32), strict=True))
_W128_PIXELS = 128  # The mode im2col::w::128 ignores pixels_per_column (PTX ISA 5.5.5.1).


def chunk_elements(data_type: int) -> int:
    """Return the number of elements of which the length of each row of the box must be a multiple.

    Without interleave, the innermost coordinate must also be a multiple of the unit.

    >>> chunk_elements(T.BFLOAT16), chunk_elements(T.PACKED_16U4_ALIGN8B), chunk_elements(T.PACKED_16U4_ALIGN16B)
    (8, 32, 128)
    """
    return entry("data_type", data_type, ELEMENTS).chunk_elements


def slice_bytes(params: Params) -> int:
    """Return the bytes of one slice of channels in an interleaved layout, or 0 without interleave."""
    check_params(params)
    return entry("interleave", params.interleave, _SLICE_BYTES)


def _element(params: Params) -> Element:
    check_params(params)
    return entry("data_type", params.data_type, ELEMENTS)


def _bits(params: Params) -> int:
    """Return the bits of one element."""
    return _element(params).bits


def bytes_along(params: Params, elements: Any) -> Any:
    """Return the bytes of a number (or array of numbers) of elements of dimension 0, or with interleave of slices."""
    return elements * (slice_bytes(params) * 8 or _bits(params)) // 8


def tensor_bytes(params: Params) -> int:
    """Return the number of bytes from the tensor's first byte to its last byte, including the padding between its rows.

    >>> tensor_bytes(TiledParams(data_type=T.BFLOAT16, global_address=4096, global_dim=(60, 3), global_strides=(128,),
    ...                          box_dim=(8, 1), element_strides=(1, 1)))
    376
    """
    outer = zip(params.global_dim[1:], params.global_strides, strict=False)
    return bytes_along(params, params.global_dim[0]) + sum((extent - 1) * stride for extent, stride in outer)


def group_bytes(params: Params) -> tuple[int, int] | None:
    """Return the bytes of data and of shared memory for 16 packed elements, or None for types of whole bytes."""
    return _element(params).group_bytes


def pixels(params: Im2colParams | Im2colWideParams) -> int:
    """Return the number of pixels that one im2col load delivers, without a halo."""
    if not isinstance(params, Im2colParams | Im2colWideParams):
        raise TensorMapError(
            f"params is {shown(params)}; pass Im2colParams or Im2colWideParams, whose box contains pixels"
        )
    if isinstance(params, Im2colWideParams) and params.mode == TensorMapIm2ColWideMode.W128:
        return _W128_PIXELS
    return params.pixels_per_column


def box_extents(params: Params) -> tuple[int, ...]:
    """Return the number of elements that a load delivers in each dimension of shared memory, innermost first.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams

    Returns
    -------
    tuple of int
        For tiled maps, one extent for each dimension, in driver order: ``ceil(box_dim / element_stride)``. Dimension 0
        has no stride unless the layout is interleaved. In an interleaved layout, the extent of dimension 0 counts
        slices of 16 or 32 bytes. The dimension of channel slices (``rank - 2``) delivers one slice for any box
        (observed: driver 580, sm_90). For im2col, the extents are (channels, pixels), or (pixels,) of slices if the
        layout is interleaved.

    Examples
    --------
    >>> box_extents(TiledParams(data_type=T.FLOAT32, global_address=0, global_dim=(64, 64), global_strides=(256,),
    ...                         box_dim=(8, 7), element_strides=(2, 2)))
    (8, 4)
    """
    check_params(params)
    try:
        extents = _tiled_extents(params) if isinstance(params, TiledParams) else _column_extents(params)
        if extents and min(extents) > 0:
            return extents
    except ValueError:  # The function zip() raises ValueError if the lengths of the tuples differ.
        pass
    raise _no_box(params)


def _tiled_extents(params: TiledParams) -> tuple[int, ...]:
    if min(params.element_strides, default=1) < 1 or (params.interleave and params.rank < 2):
        return ()
    extents = [-(-box // step) for box, step in zip(params.box_dim, params.element_strides, strict=True)]
    if len(extents) != params.rank:
        return ()
    if params.interleave:
        extents[-2] = 1
    else:
        extents[:1] = params.box_dim[:1]
    return tuple(extents)


def _column_extents(params: Params) -> tuple[int, ...]:
    columns = cast("Im2colParams | Im2colWideParams", params)
    return (pixels(columns),) if params.interleave else (columns.channels_per_pixel, pixels(columns))


def _no_box(params: Params) -> TensorMapError:
    """Return the error for a box without extents.

    The fields have another rank, or a number is too small.
    """
    if isinstance(params, TiledParams):
        least = "2 or more dimensions with an interleaved layout" if params.interleave else "1 or more dimensions"
        return TensorMapError(
            f"box_dim={shown(params.box_dim)} and element_strides={shown(params.element_strides)} are not a box of "
            f"rank {params.rank}; give one of each, from 1 on, for each of {least}"
        )
    columns = cast("Im2colParams | Im2colWideParams", params)
    return TensorMapError(
        f"channels_per_pixel={shown(columns.channels_per_pixel)} and pixels_per_column="
        f"{shown(columns.pixels_per_column)} are not a column; give 1 or more of each"
    )


@dataclass(frozen=True, slots=True)
class Rows:
    """Shared memory as rows, in bytes: the data of a row, the distance between rows, and the order of its chunks."""

    count: int
    data_bytes: int  # A load writes data_bytes bytes for each row.
    taken_bytes: int  # The row takes taken_bytes bytes, including the gaps inside packed groups.
    pitch_bytes: int
    group: tuple[int, int] | None  # The pair `group` is a result of the function group_bytes.
    swizzle: int


@kept_without_address(1024)
def rows(params: Params) -> Rows:
    """Return the rows of one box in shared memory. An interleaved box is one packed row."""
    extents = box_extents(params)
    span = pattern(params.swizzle).span_bytes
    if params.interleave:
        count, data = 1, math.prod(extents) * slice_bytes(params)
    else:
        count, data = math.prod(extents[1:]), extents[0] * _bits(params) // 8
    group = group_bytes(params)
    if group and data % group[0]:
        raise TensorMapError(
            f"a row of the box has {extents[0]} elements of {T(params.data_type).short_name}; pass a multiple of "
            f"{GROUP_ELEMENTS}"
        )
    taken = data // group[0] * group[1] if group else data
    return Rows(count, data, taken, -(-taken // span) * span, group, int(params.swizzle))


def check_fits(size_bytes: int) -> None:
    """Refuse a box larger than the shared memory of a thread block.

    The check precedes any allocation of the box's size.
    """
    if size_bytes > MAX_SMEM_BYTES:
        raise TensorMapError(
            f"the box takes {size_bytes} bytes of shared memory, but a thread block has at most {MAX_SMEM_BYTES}; "
            "divide the box among several loads"
        )


def tx_bytes(params: Params) -> int:
    """Return the bytes that one load delivers, which is the number for ``mbarrier.expect_tx``.

    The number includes out-of-bounds elements, because the load fills these elements, and excludes the gaps between
    rows. For packed types, it includes the data without the gaps of ``ALIGN16B`` (not verified on hardware). The number
    does not include a halo of im2col wide.

    >>> tx_bytes(TiledParams(data_type=T.BFLOAT16, global_address=0, global_dim=(512, 512), global_strides=(1024,),
    ...                      box_dim=(64, 64), element_strides=(1, 1), swizzle=3))
    8192
    """
    layout = rows(params)
    return layout.count * layout.data_bytes


def smem_bytes(params: Params) -> int:
    """Return the bytes of shared memory that one box takes, including the gaps between rows.

    >>> smem_bytes(TiledParams(data_type=T.FLOAT32, global_address=0, global_dim=(64, 64), global_strides=(256,),
    ...                        box_dim=(4, 8), element_strides=(1, 1), swizzle=3))
    1024
    """
    layout = rows(params)
    return layout.count * layout.pitch_bytes


def smem_alignment(params: Params) -> int:
    """Return the alignment in bytes that the offsets of this module assume for the destination in shared memory.

    The hardware accepts any multiple of 128. However, a swizzle depends on address bits. At a lower alignment than the
    result (256, 512 or 1024 bytes), the box does not begin at the start of the pattern.
    """
    check_params(params)
    return pattern(params.swizzle).alignment_bytes


def box_index(extents: Sequence[int], index: Sequence[int]) -> tuple[int, ...]:
    """Return the index of an element of the box as ints, with one int for each extent.

    The ints may be out of range.
    """
    return integers("index", index, len(extents), "one for each of box_extents, innermost first")


def linear_offset(params: Params, index: Sequence[int]) -> int:
    """Return the byte offset of an element before swizzling.

    The argument `index` has the same meaning as in :func:`smem_offset`.
    """
    extents = box_extents(params)
    index = box_index(extents, index)
    if not all(0 <= i < n for i, n in zip(index, extents, strict=True)):
        raise TensorMapError(
            f"index={shown(index)} is outside the box: shared memory holds {extents} elements, innermost first; pass "
            "one index for each dimension, counted from 0"
        )
    row = 0
    for i, n in zip(reversed(index[1:]), reversed(extents[1:]), strict=True):
        row = row * n + i
    if params.interleave:
        return (row * extents[0] + index[0]) * slice_bytes(params)
    return row * rows(params).pitch_bytes + _offset_in_row(params, index[0])


def _offset_in_row(params: Params, element: int) -> int:
    group = group_bytes(params)
    if group is None:
        return element * _bits(params) // 8
    number, rest = divmod(element, GROUP_ELEMENTS)
    return number * group[1] + rest * _bits(params) // 8


def smem_offset(params: Params, index: Sequence[int]) -> int:
    """Return the byte offset of an element of the box in shared memory, after swizzling.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
    index : sequence of int
        One index for each extent of :func:`box_extents`, innermost first. The index counts delivered elements, and is
        not a coordinate of the tensor.

    Returns
    -------
    int
        The offset in bytes from a destination that is aligned to :func:`smem_alignment`. For a packed element, it is
        the offset of the byte with the element's first bit.

    Raises
    ------
    TensorMapError
        If `index` is outside the box, or does not have one integer for each extent.

    Examples
    --------
    >>> p = TiledParams(data_type=T.BFLOAT16, global_address=0, global_dim=(512, 512), global_strides=(1024,),
    ...                 box_dim=(64, 64), element_strides=(1, 1), swizzle=3)
    >>> smem_offset(p, (0, 3)), smem_index(p, 432)
    (432, (0, 3))
    """
    offset = linear_offset(params, index)
    return swizzle_offset(params.swizzle, offset)


def smem_index(params: Params, offset: int) -> tuple[int, ...] | None:
    """Return the element that covers a byte of shared memory, or None for a gap.

    The function is the inverse of :func:`smem_offset`.

    Raises
    ------
    TensorMapError
        If `offset` is outside the box's footprint, or is not an integer.
    """
    if not 0 <= (offset := integer("offset", offset)) < smem_bytes(params):
        raise TensorMapError(
            f"offset={shown(offset)} is outside the box in shared memory; pass 0 to {smem_bytes(params) - 1}"
        )
    row, byte = divmod(swizzle_offset(params.swizzle, offset), rows(params).pitch_bytes)
    element = _element_at(params, byte)
    if element is None:
        return None
    extents = box_extents(params)
    if params.interleave:
        row, element = divmod(element, extents[0])
    index = [element]
    for n in extents[1:]:
        row, i = divmod(row, n)
        index.append(i)
    return tuple(index)


def _element_at(params: Params, byte: int) -> int | None:
    """Return the element of a row (or with interleave, of a slice) that covers a byte of the row."""
    if byte >= rows(params).taken_bytes:
        return None
    if params.interleave:
        return byte // slice_bytes(params)
    bits = _bits(params)
    group = group_bytes(params)
    if group is None:
        return byte * 8 // bits
    number, rest = divmod(byte, group[1])
    return None if rest >= group[0] else number * GROUP_ELEMENTS + rest * 8 // bits


def unit_bytes(params: Params) -> int:
    """Return the bytes of one element of shared memory, or 1 for packed elements."""
    return max(1, _bits(params) // 8)


def smem_layout(params: Params) -> Any:
    """Return a CuTe layout that maps an index (innermost first, see :func:`box_extents`) to an offset in elements.

    The function needs the library ``tensor-layouts`` (the extra ``cuda-tma[layout]``).

    Returns
    -------
    tensor_layouts.Layout or tensor_layouts.ComposedLayout
        The layout, for which ``layout(i0, i1, ...) * element_bytes == smem_offset(params, (i0, i1, ...))``. An
        interleaved layout has an additional first mode, which counts the elements of a slice.

    Raises
    ------
    TensorMapError
        If the elements are smaller than a byte, which a layout cannot express.
    ImportError
        If the library is not installed.
    """
    check_params(params)
    try:
        from tensor_layouts import Layout, Swizzle, compose
    except ImportError as error:
        raise ImportError(
            f"smem_layout needs tensor-layouts ({error}): pip install tensor-layouts, or install cuda-tma[layout]"
        ) from None
    if group_bytes(params) is not None:
        raise TensorMapError(
            f"data_type={T(params.data_type).short_name} has elements of less than a byte, which a CuTe layout cannot "
            "address; describe the box with data_type UINT8"
        )
    unit = unit_bytes(params)
    extents = (slice_bytes(params) // unit,) * bool(params.interleave) + box_extents(params)
    row_pitch = extents[0] if params.interleave else rows(params).pitch_bytes // unit
    strides = (1, *accumulate(extents[1:-1], operator.mul, initial=row_pitch))
    layout = Layout(extents, strides[: len(extents)])
    for from_bit, to_bit, bits in pattern(params.swizzle).xors:
        # `base` is not negative, because an element has at most 8 bytes, and swizzles move pieces of at least 8 bytes.
        base = to_bit - int(math.log2(unit))
        layout = compose(Swizzle(bits, base, from_bit - to_bit), layout)
    return layout
