"""Tests of kernels without a GPU: comparison of a tile with the emulated load, and random legal tensor maps.

The strategies need Hypothesis. The other functions do not need Hypothesis. A test of a kernel compares the kernel's
tile with the emulated load::

    def test_my_tile() -> None:
        expected = cuda_tma.emulate.load(descriptor.params, memory, coordinates=(column, row))
        assert_tile_equal(descriptor.params, shared_memory_of_my_kernel, expected, coordinates=(column, row))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ._data_type import element_bits, is_floating
from ._errors import TensorMapError
from ._given import shown, tensor_coordinates
from ._limits import TMA_SINCE
from ._params_checks import check_params
from ._swizzle_pattern import PATTERNS
from .emulate import Tile, tensor_index
from .enums import TensorMapDataType as T
from .enums import TensorMapSwizzle as S
from .params import Im2colParams, Params, TiledParams
from .smem import box_extents, pattern, smem_index
from .smem._layout import chunk_elements, tensor_bytes, unit_bytes

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = [
    "assert_tile_equal",
    "im2col_params",
    "load_cases",
    "store_cases",
    "tiled_params",
    "view_bytes",
]


def assert_tile_equal(
    params: Params,
    actual: Any,
    expected: Tile,
    coordinates: Sequence[int] = (),
    offsets: Sequence[int] = (),
) -> None:
    """Raise AssertionError for the first delivered element that differs. The error contains the element's tensor index.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The tensor map of the load.
    actual : array
        The bytes of shared memory from the destination on, of any dtype, with at least the bytes of the box.
    expected : Tile
        The result of :func:`cuda_tma.emulate.load`. The function does not compare bytes that a load does not deliver.
    coordinates, offsets : sequence of int, optional
        The arguments of the load. Without them, the message contains only the place in the box.

    Raises
    ------
    AssertionError
        If an element differs. The error contains the element's index in the box and in the tensor (driver order,
        innermost first), its byte offset, and both values.
    TensorMapError
        If an argument has another type, or if the expected tile comes from another map.
    """
    check_params(params)
    if not isinstance(expected, Tile):
        raise TensorMapError(f"expected is {shown(expected)}; pass the Tile that cuda_tma.emulate.load() returns")
    _check_map(params, expected)
    coordinates = tensor_coordinates(params.rank, coordinates, default=())
    found = _bytes_of(actual)
    size = expected.smem.size
    if found.size < size:
        raise AssertionError(
            f"actual has {found.size} bytes, but the box takes {size} bytes of shared memory; pass all of them"
        )
    different = np.flatnonzero((found[:size] != expected.smem) & expected.written)
    if different.size == 0:
        return
    places = {offset: smem_index(params, int(offset)) for offset in _one_byte_an_element(params, different)}
    offset, index = min(places.items(), key=lambda item: (item[1] or ())[::-1])
    where = f"box index {index}"
    if coordinates:
        where += f", tensor index {tensor_index(params, index or (), coordinates, offsets)}"
    raise AssertionError(
        f"{different.size} of {expected.tx_bytes} delivered bytes differ, first at {where} (innermost first), shared-"
        f"memory byte {offset}: {_value(params, found, offset)} instead of {_value(params, expected.smem, offset)}"
    )


# A load does not read the fields in _NOT_READ.
_NOT_READ = ("global_address", "l2_promotion", "allocation_class", "unexplained")


def _check_map(params: Params, expected: Tile) -> None:
    """Refuse a tile from a load with another map, because equal bytes may be another part of the tensor."""
    made = expected.params
    if made is None:
        return
    if type(made) is not type(params):
        raise TensorMapError(
            f"expected has params of type {type(made).__name__}, but params is {type(params).__name__}; pass the "
            "parameters of the load"
        )
    for field in fields(params):
        given, other = getattr(params, field.name), getattr(made, field.name)
        if field.name not in _NOT_READ and given != other:
            raise TensorMapError(
                f"expected belongs to another map than params: its {field.name} is {shown(other)}, but that of params "
                f"is {shown(given)} (driver order). Pass the parameters of the load that returned expected"
            )


def _bytes_of(actual: Any) -> np.ndarray:
    try:
        return np.ascontiguousarray(actual).reshape(-1).view(np.uint8)
    except (TypeError, ValueError):  # The argument may not be an array, or may contain lists of different lengths.
        raise TensorMapError(f"actual is {shown(actual)}; pass shared memory as an array in host memory") from None


_DTYPES = {
    T.UINT16: "<u2",
    T.UINT32: "<u4",
    T.INT32: "<i4",
    T.UINT64: "<u8",
    T.INT64: "<i8",
    T.FLOAT16: "<f2",
    T.FLOAT32: "<f4",
    T.FLOAT64: "<f8",
    T.FLOAT32_FTZ: "<f4",
    T.TFLOAT32: "<f4",
    T.TFLOAT32_FTZ: "<f4",
}


def _one_byte_an_element(params: Params, offsets: np.ndarray) -> np.ndarray:
    size = min(unit_bytes(params), pattern(params.swizzle).atom_bytes if params.swizzle else 8)
    return np.unique(offsets // size * size)


def _value(params: Params, smem: np.ndarray, offset: int) -> str:
    raw = smem[offset : offset + unit_bytes(params)].tobytes()
    text = f"0x{raw[::-1].hex()}"
    if T(params.data_type) in _DTYPES:
        text = f"{np.frombuffer(raw, _DTYPES[T(params.data_type)])[0]} ({text})"
    elif params.data_type == T.BFLOAT16:
        text = f"{np.frombuffer(bytes(2) + raw, '<f4')[0]} ({text})"
    return text


def view_bytes(array: np.ndarray) -> np.ndarray:
    """Return the memory of a contiguous array as a 1-D uint8 array for the emulator, without a copy.

    >>> view_bytes(np.zeros((2, 3), np.float32)).shape
    (24,)
    """
    if not isinstance(array, np.ndarray):
        raise TensorMapError(f"array is {shown(array)}; pass a numpy.ndarray")
    if not array.flags.c_contiguous:
        raise TensorMapError("array is not contiguous in memory; pass the contiguous array from which it is a view")
    return array.reshape(-1).view(np.uint8)


# _LARGEST_DIM limits the extents of tensors of each rank, so that a tensor with padding has less than 1 MB.
_LARGEST_DIM = (0, 300, 80, 24, 12, 7)


def _draw_common(draw: DrawFn, data_types: Sequence[T], rank: int) -> dict[str, Any]:
    from hypothesis import strategies as st

    data_type = draw(st.sampled_from(data_types))
    dims = tuple(draw(st.integers(1, _LARGEST_DIM[rank])) for _ in range(rank))
    nan = is_floating(data_type) and draw(st.booleans())
    steps = tuple(draw(st.sampled_from((1, 1, 1, 2, 3, 8))) for _ in range(rank))
    return {
        "data_type": data_type,
        "global_address": 256,
        "global_dim": dims,
        "element_strides": steps,
        "oob_fill": int(nan),
    }


def _draw_strides(draw: DrawFn, inner_bytes: int, dims: Sequence[int], multiple: int) -> tuple[int, ...]:
    from hypothesis import strategies as st

    strides: list[int] = []
    for extent in dims[:-1]:
        size = strides[-1] * extent if strides else inner_bytes * extent
        strides.append((-(-size // multiple) + draw(st.integers(0, 2))) * multiple)
    return tuple(strides)


_WHOLE_BYTE_TYPES = tuple(t for t in T if element_bits(t) >= 8)
_SM90_SWIZZLES = tuple(s for s in S if PATTERNS[s].since == TMA_SINCE)


def _require_hypothesis() -> None:
    try:
        import hypothesis  # noqa: F401
    except ImportError as error:
        raise ImportError(f"random tensor maps need Hypothesis ({error}): pip install hypothesis") from None


def tiled_params(
    *, data_types: Sequence[T] = _WHOLE_BYTE_TYPES, interleaves: Sequence[int] = (0, 0, 1, 2), min_rank: int = 1
) -> SearchStrategy[TiledParams]:
    """Return a Hypothesis strategy for small tiled tensor maps that compute capability 9.0 accepts.

    The tensors start at address 256 and stay below a megabyte. The boxes are small enough for shared memory.
    """
    _require_hypothesis()
    from hypothesis import strategies as st

    @st.composite
    def build(draw: DrawFn) -> TiledParams:
        interleave = draw(st.sampled_from(interleaves))
        rank = draw(st.integers(max(min_rank, 3 if interleave else 1), 5))
        common = _draw_common(draw, data_types, rank)
        unit = element_bits(common["data_type"]) // 8
        slice_size = 16 * interleave
        swizzle = (0, 0, 1)[interleave] if interleave else draw(st.sampled_from(_SM90_SWIZZLES))
        span = slice_size or (pattern(swizzle).span_bytes if swizzle else 64)
        inner = draw(st.integers(1, span // 16)) * 16 // unit
        box = (inner, *(draw(st.integers(1, 4)) for _ in range(rank - 1)))
        strides = _draw_strides(draw, slice_size or unit, common["global_dim"], 32 if interleave == 2 else 16)
        return TiledParams(**common, global_strides=strides, box_dim=box, interleave=interleave, swizzle=swizzle)

    return build()


def im2col_params(*, data_types: Sequence[T] = _WHOLE_BYTE_TYPES, inside: bool = False) -> SearchStrategy[Im2colParams]:
    """Return a Hypothesis strategy for small im2col tensor maps that compute capability 9.0 accepts.

    The maps have no interleave. With `inside`, the pixel box stays inside the tensor, as stores require.
    """
    _require_hypothesis()
    from hypothesis import strategies as st

    @st.composite
    def build(draw: DrawFn) -> Im2colParams:
        rank = draw(st.integers(3, 5))
        common = _draw_common(draw, data_types, rank)
        unit = element_bits(common["data_type"]) // 8
        swizzle = draw(st.sampled_from(_SM90_SWIZZLES))
        span = pattern(swizzle).span_bytes if swizzle else 64
        spatial = common["global_dim"][1:-1]
        lower = tuple(draw(st.integers(0, min(2, dim - 1)) if inside else st.integers(-3, 0)) for dim in spatial)
        least = [max(-3, low + 1 - dim) for low, dim in zip(lower, spatial, strict=True)]
        upper = tuple(draw(st.integers(n, 0 if inside else 2)) for n in least)
        return Im2colParams(
            **common,
            global_strides=_draw_strides(draw, unit, common["global_dim"], 16),
            pixel_box_lower_corner=lower,
            pixel_box_upper_corner=upper,
            channels_per_pixel=draw(st.integers(1, span // 16)) * 16 // unit,
            pixels_per_column=draw(st.integers(1, 24)),
            swizzle=swizzle,
        )

    return build()


def load_cases(
    params: SearchStrategy | None = None,
) -> SearchStrategy[tuple[Params, np.ndarray, tuple[int, ...], tuple[int, ...]]]:
    """Return a Hypothesis strategy for (params, memory, coordinates, offsets) of loads that do not fault.

    The memory consists of random bytes from address 0 to the end of the tensor. The coordinates extend outside the
    tensor on every side.
    """
    _require_hypothesis()
    from hypothesis import strategies as st

    @st.composite
    def build(draw: DrawFn) -> tuple:
        chosen = draw(params if params is not None else st.one_of(tiled_params(), im2col_params()))
        memory = _draw_memory(draw, chosen)
        if isinstance(chosen, Im2colParams):
            offsets = tuple(draw(st.integers(0, 4)) for _ in range(chosen.rank - 2))
            return chosen, memory, _draw_start(draw, chosen), offsets
        return chosen, memory, _draw_coordinates(draw, chosen), ()

    return build()


def store_cases(
    params: SearchStrategy | None = None,
) -> SearchStrategy[tuple[Params, np.ndarray, tuple[int, ...]]]:
    """Return a Hypothesis strategy for (params, memory, coordinates) of stores and reductions that do not fault.

    The cases are like those of :func:`load_cases`, but without negative coordinates or pixel boxes outside the tensor.
    """
    _require_hypothesis()
    from hypothesis import strategies as st

    @st.composite
    def build(draw: DrawFn) -> tuple:
        chosen = draw(params if params is not None else st.one_of(tiled_params(), im2col_params(inside=True)))
        memory = _draw_memory(draw, chosen)
        start = _draw_start if isinstance(chosen, Im2colParams) else _draw_coordinates
        return chosen, memory, tuple(max(0, coordinate) for coordinate in start(draw, chosen))

    return build()


def _draw_memory(draw: DrawFn, params: Params) -> np.ndarray:
    from hypothesis import strategies as st

    return np.random.default_rng(draw(st.integers(0, 2**16))).integers(
        0, 256, params.global_address + tensor_bytes(params), np.uint8
    )


def _aligned(params: Params, coordinate: int) -> int:
    multiple = 1 if params.interleave else chunk_elements(params.data_type)
    return coordinate // multiple * multiple


def _draw_coordinates(draw: DrawFn, params: Params) -> tuple[int, ...]:
    from hypothesis import strategies as st

    extents = [*box_extents(params), *(4,) * params.rank][: params.rank]
    coordinates = [draw(st.integers(-n, dim)) for n, dim in zip(extents, params.global_dim, strict=True)]
    return (_aligned(params, coordinates[0]), *coordinates[1:])


def _draw_start(draw: DrawFn, params: Im2colParams) -> tuple[int, ...]:
    from hypothesis import strategies as st

    spatial = zip(params.pixel_box_lower_corner, params.pixel_box_upper_corner, params.global_dim[1:-1], strict=True)
    start = [draw(st.integers(lower, dim - 1 + upper)) for lower, upper, dim in spatial]
    channel = _aligned(params, draw(st.integers(-16, params.global_dim[0])))
    return (channel, *start, draw(st.integers(-1, params.global_dim[-1])))
