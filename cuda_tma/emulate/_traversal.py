"""The bytes of global memory that an instruction visits, and the order of the visits.

Every instruction visits *runs*, which are contiguous bytes of global memory that are also contiguous in shared memory.
Without interleave, a run is a row of the box (dimension 0). With interleave, a run is one slice of 16 or 32 bytes, and
the instruction traverses dimension 0 as any other dimension.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from .._errors import TensorMapError
from .._given import integers, shown, tensor_coordinates
from .._params_checks import check_params
from ..enums import TensorMapIm2ColWideMode
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams
from ..smem import box_extents
from ..smem._kept import kept_without_address
from ..smem._layout import box_index, bytes_along, pixels, slice_bytes
from ._faults import check_alignment, check_start_in_box

__all__ = ["Traversal", "check_is_row", "runs_of", "tensor_index", "visit", "visit_rows"]


@dataclass(frozen=True, slots=True)
class Traversal:
    """The runs that one instruction visits, in the order of shared memory.

    Attributes
    ----------
    origin : int
        The start of the box in bytes from ``global_address``, which is exact at any distance from the tensor.
    addresses : numpy.ndarray of int64
        The start of each run, in bytes from `origin`. The start is undefined for runs outside the tensor. The elements
        are Python ints if the tensor spans more than 64 bits.
    inside : numpy.ndarray of bool
        Whether the run is inside the tensor in all dimensions except the dimension of the run.
    run_bytes : int
        The length of every run.
    first_byte, last_byte : int
        The part of each run that is inside the tensor, which is bytes [first_byte, last_byte). The part is empty if
        last <= first.
    """

    origin: int
    addresses: np.ndarray
    inside: np.ndarray
    run_bytes: int
    first_byte: int
    last_byte: int


def visit(params: Params, coordinates: Sequence[int], offsets: Sequence[int] = ()) -> Traversal:
    """Return the traversal of one instruction. The arguments are those of :func:`cuda_tma.emulate.load`."""
    check_params(params)
    coordinates = tensor_coordinates(params.rank, coordinates)
    check_alignment(params, coordinates[0])
    if isinstance(params, TiledParams):
        _offsets(offsets, 0, "a tiled access has none")
        return _tiled(params, coordinates)
    return _pixels(params, _pixel_positions(params, coordinates, offsets))


_OFFSET_BITS = 16  # The type of the im2col offsets is .u16 (PTX ISA 9.0, cp.async.bulk.tensor, im2colInfo).


def _offsets(given: Sequence[int] | None, count: int, meaning: str) -> tuple[int, ...]:
    offsets = integers("offsets", given, count, meaning, default=(0,) * count)
    if offsets and not (min(offsets) >= 0 and max(offsets) < 1 << _OFFSET_BITS):
        raise TensorMapError(
            f"offsets={shown(offsets)} has a value outside 0 to {(1 << _OFFSET_BITS) - 1}, the range of an unsigned "
            "16-bit operand; start at smaller coordinates instead"
        )
    return offsets


def tensor_index(
    params: Params, index: Sequence[int], coordinates: Sequence[int], offsets: Sequence[int] = ()
) -> tuple[int, ...]:
    """Return the index in the tensor of an element of shared memory, in driver order.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
    index : sequence of int
        The index of an element of the box, innermost first, as :func:`cuda_tma.smem.smem_index` returns it.
    coordinates, offsets : sequence of int
        The operands of the instruction.

    Returns
    -------
    tuple of int
        The index in the tensor, which may be outside ``global_dim``, where a load fills elements and a store skips
        them.

    Raises
    ------
    TensorMapError
        If the arguments do not fit the tensor map.

    Examples
    --------
    >>> params = TiledParams(data_type=0, global_address=0, global_dim=(64, 64), global_strides=(64,),
    ...                      box_dim=(16, 8), element_strides=(1, 4))
    >>> tensor_index(params, (3, 1), coordinates=(16, 8))
    (19, 12)
    """
    check_params(params)
    coordinates = tensor_coordinates(params.rank, coordinates)
    index = box_index(box_extents(params), index)
    if isinstance(params, TiledParams):
        steps = params.element_strides if params.interleave else (1, *params.element_strides[1:])
        return tuple(c + i * step for c, i, step in zip(coordinates, index, steps, strict=True))
    at = [
        int(position if np.ndim(position) == 0 else position[index[-1]])
        for position in _pixel_positions(params, coordinates, offsets)
    ]
    channel = 0 if params.interleave else index[0]
    return (at[0] + channel, *at[1:])


def visit_rows(params: Params, coordinates: Sequence[int]) -> Traversal:
    """Return the traversal of four rows of a matrix, for ``tile::gather4`` and ``scatter4`` (documented only).

    The instruction has four bounding boxes of one row, with a common column (PTX ISA 9.0, 5.5.3.4).
    """
    column, *rows = integers("coordinates", coordinates, 5, "(column, row, row, row, row)")
    check_alignment(params, column)
    return _pixels(params, [column, np.asarray(rows, np.int64)])


def check_is_row(params: Params) -> None:
    """Refuse a map that does not fit gather4 and scatter4."""
    check_params(params)
    if not isinstance(params, TiledParams) or params.box_dim[1:] != (1,) or params.interleave:
        raise TensorMapError(
            "gather4 and scatter4 need a tiled tensor map of rank 2 without interleave, whose box is one row, "
            f"box_dim=(columns, 1); params is {shown(params)} of rank {params.rank} with "
            f"box_dim={shown(getattr(params, 'box_dim', None))} and interleave={shown(params.interleave)}"
        )


def _run(params: Params, innermost: int, length: int) -> tuple[int, int, int]:
    """Return (run_bytes, first_byte, last_byte) for a run of elements from a coordinate of dimension 0."""
    if params.interleave:
        return slice_bytes(params), 0, slice_bytes(params)
    first, last = max(0, -innermost), min(length, params.global_dim[0] - innermost)
    return bytes_along(params, length), bytes_along(params, first), bytes_along(params, last)


def _inside(params: Params, dimension: int, position: np.ndarray) -> np.ndarray:
    return (position >= 0) & (position < params.global_dim[dimension])


# If the other dimensions span less than 2^62 bytes, no address offset exceeds 64 bits.
_EXACT = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class _Box:
    """The runs of a tiled box, relative to the start of the box."""

    extents: tuple[int, ...]
    # Each pair contains a traversed dimension, and the distances in elements from the start of the box.
    steps: tuple[tuple[int, np.ndarray], ...]
    addresses: np.ndarray  # The addresses of runs are in bytes from the start of the box.


@kept_without_address(64)
def _box(params: TiledParams) -> _Box:
    extents = box_extents(params)
    stepped = range(0 if params.interleave else 1, params.rank)
    steps = tuple((d, params.element_strides[d] * np.arange(extents[d], dtype=np.int64)) for d in stepped)
    strides = (bytes_along(params, 1), *params.global_strides)
    reach = sum(int(along[-1]) * abs(strides[d]) for d, along in steps)
    vectors = [along.astype(_exact(reach)) * strides[d] for d, along in steps]
    addresses = reduce(lambda inner, outer: np.add.outer(outer, inner).ravel(), vectors, np.zeros(1, np.int64))
    return _Box(extents, steps, addresses)


def runs_of(params: TiledParams) -> np.ndarray:
    """Return the start of each run of a tiled box, in bytes from the box's first run, as in `Traversal.addresses`."""
    return _box(params).addresses


def _exact(bytes_apart: int) -> type:
    """Return the dtype for sums of addresses that are at most `bytes_apart` bytes apart.

    Python's ints are used if 64 bits are too few.
    """
    return np.int64 if bytes_apart < _EXACT else object


def _tiled(params: TiledParams, coordinates: Sequence[int]) -> Traversal:
    box = _box(params)
    bounds = [_inside(params, d, coordinates[d] + along) for d, along in box.steps]
    inside = reduce(lambda inner, outer: np.logical_and.outer(outer, inner).ravel(), bounds, np.ones(1, bool))
    outer = zip(coordinates[1:], params.global_strides, strict=True)
    origin = bytes_along(params, coordinates[0]) + sum(c * stride for c, stride in outer)
    return Traversal(origin, box.addresses, inside, *_run(params, coordinates[0], box.extents[0]))


def _wheel(ticks: np.ndarray, start: int, lower: int, upper: int, step: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of one digit of a counter after `ticks`, and the carries to the next digit.

    The digit starts at `start`, counts to `upper` (inclusive), and then continues at `lower`.
    """
    first_turn, turn = (upper - start) // step + 1, (upper - lower) // step + 1
    after = ticks - first_turn
    wrapped = after >= 0
    positions = np.where(wrapped, lower + after % turn * step, start + ticks * step)
    return positions, np.where(wrapped, 1 + after // turn, 0)


def _pixel_positions(params: Params, coordinates: Sequence[int], offsets: Sequence[int]) -> list:
    """Return the position of every pixel in each dimension, or a constant."""
    if isinstance(params, Im2colParams):
        offsets = _offsets(offsets, params.rank - 2, "one for each spatial dimension, W first")
        return _im2col(params, coordinates, offsets)
    assert isinstance(params, Im2colWideParams)
    return _im2col_wide(params, coordinates, *_offsets(offsets, 2, "(wHalo, wOffset)"))


def _im2col(params: Im2colParams, coordinates: Sequence[int], offsets: Sequence[int]) -> list:
    """Return the pixels in the order W, H, D, N, with a wrap at the end of the pixel box.

    The offsets shift the pixels, not the box.

    The dimensions are (C, W, H, D, N), or with interleave (W, H, D, slice of C, N). N has element strides like D, H and
    W, although PTX ISA 9.0, 5.5.4.2 lists only D, H and W. C has no element stride. (All facts were observed with
    driver 580 and sm_90, for loads, stores and reductions.)
    """
    first = 0 if params.interleave else 1
    ticks = np.arange(params.pixels_per_column, dtype=np.int64)
    position: list = list(coordinates)
    corners = zip(params.pixel_box_lower_corner, params.pixel_box_upper_corner, strict=True)
    for k, (lower, upper_corner) in enumerate(corners):
        d = first + k
        upper = params.global_dim[d] - 1 + upper_corner
        check_start_in_box(f"coordinates[{d}]", coordinates[d], lower, upper)
        wheel, ticks = _wheel(ticks, coordinates[d], lower, upper, params.element_strides[d])
        position[d] = wheel + offsets[k]
    position[-1] = coordinates[-1] + ticks * params.element_strides[-1]
    return position


def _pixels(params: Params, position: list) -> Traversal:
    """Return a run for each pixel or row.

    `position` is from :func:`_pixel_positions`, and its last entry is an array.
    """
    bounds = [_inside(params, d, np.asarray(position[d])) for d in range(0 if params.interleave else 1, params.rank)]
    inside = reduce(np.logical_and, bounds)
    strides = (1, *params.global_strides)
    span = sum(abs(dim * stride) for dim, stride in zip(params.global_dim[1:], params.global_strides, strict=True))
    origin: int = 0
    addresses: np.ndarray = np.zeros(1, _exact(span))
    for at, stride in zip((bytes_along(params, position[0]), *position[1:]), strides, strict=True):
        if np.ndim(at):
            addresses = addresses + np.asarray(at, addresses.dtype) * stride
        else:
            origin += at * stride
    return Traversal(origin, addresses, inside, *_run(params, position[0], box_extents(params)[0]))


_W128_BLOCK = 32  # The mode im2col::w::128 loads a halo after every 32 pixels (PTX ISA 9.0, 5.5.5.3).


def _im2col_wide(params: Im2colWideParams, coordinates: Sequence[int], halo: int, offset: int) -> list:
    """Return the pixels along W, and then those of the next image, with D and H constant.

    The order is only documented (PTX ISA 9.0, 5.5.5).

    A halo continues along W after the preceding pixels, without a wrap. In the mode W128, a halo follows every 32
    pixels. The start may be left of the pixel box.
    """
    if params.interleave:
        raise TensorMapError(
            f"interleave={params.interleave} was passed for an im2col-wide map, which has no interleaved layouts; pass "
            "NONE"
        )
    start, step = coordinates[1], params.element_strides[1]
    lower = params.pixel_box_lower_corner_width
    upper = params.global_dim[1] - 1 + params.pixel_box_upper_corner_width
    check_start_in_box("coordinates[1]", start, min(lower, start), upper)
    ticks = np.arange(pixels(params), dtype=np.int64)
    wheel, images = _wheel(ticks, start, lower, upper, step)
    block = _W128_BLOCK if params.mode == TensorMapIm2ColWideMode.W128 else max(1, len(ticks))
    position: list = list(coordinates)
    position[1] = _with_halo(wheel, block, halo, step) + offset
    position[-1] = coordinates[-1] + _with_halo(images, block, halo, 0)
    return position


def _with_halo(values: np.ndarray, block: int, halo: int, step: int) -> np.ndarray:
    """Append `halo` values to every block, which continue the last value of the block in steps of `step`."""
    blocks = values.reshape(math.ceil(len(values) / block), -1)
    tail = blocks[:, -1:] + step * np.arange(1, halo + 1)
    return np.concatenate([blocks, tail], axis=1).ravel()
