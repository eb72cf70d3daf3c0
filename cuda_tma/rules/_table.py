"""The constraints on a tensor map, each of which is stated once, and :func:`check`, which applies them.

:data:`RULES` is a table. A row contains the name of a rule, its parameter, its text, its source, and the function that
finds violations. The rows are in the order of the driver's arguments. The command ``python tools/write_rules.py``
writes this table and the table of :mod:`cuda_tma.rules._warnings` to ``docs/rules.md``.

The driver refuses a map that breaks a rule, and returns an error. If the driver accepts a map that its documentation
forbids, the rule is a warning. Rules for compute capability 10.0 and later are documented, but not verified on
hardware.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from .._compute_capability import parse_compute_capability
from .._data_type import ELEMENTS
from .._errors import Violation
from .._limits import (
    MAX_BOX_DIM,
    MAX_DIM,
    MAX_ELEMENT_STRIDE,
    MAX_PIXELS_PER_COLUMN,
    TMA_EXTENDED_SINCE,
    TMA_SINCE,
)
from .._option_table import COMMON
from .._params_checks import check_params, check_sizes
from .._swizzle_pattern import PATTERNS, SPAN_BYTES
from ..enums import TensorMapDataType as T
from ..enums import TensorMapInterleave
from ..enums import TensorMapSwizzle as S
from ..params import Params
from . import _find as find
from ._explain import sentence
from ._rule import API, IM2COL, OBSERVED, PIXELS, TILED, UNVERIFIED, WIDE, Rule
from ._warnings import WARNINGS

__all__ = ["RULES", "check"]

_TILED_API = "CUDA 13.5 driver API, cuTensorMapEncodeTiled: "
_IM2COL_API = "CUDA 13.5 driver API, cuTensorMapEncodeIm2col: "
_WIDE_API = "CUDA 13.5 driver API, cuTensorMapEncodeIm2colWide: "

# The texts below describe the properties of data types and swizzles.


def _names(members: Iterable[Any], last: str = "and") -> str:
    *names, end = (member.short_name for member in members)
    return f"{', '.join(names)} {last} {end}" if names else end


def _numbers(values: Iterable[int]) -> str:
    return ", ".join(map(str, sorted({*values})))


def _by_value(attribute: str, least: int) -> dict[int, list[T]]:
    """Return the data types by the value of one property. Omit values below `least`."""
    found: dict[int, list[T]] = {}
    for data_type in T:
        value = getattr(ELEMENTS[data_type], attribute)
        if value is not None and value >= least:
            found.setdefault(value, []).append(data_type)
    return found


_PACKED = [t for t in T if ELEMENTS[t].since == TMA_EXTENDED_SINCE]
_ATOM_SWIZZLES = [s for s in S if PATTERNS[s].since == TMA_EXTENDED_SINCE]
_ALIGNMENT = "a multiple of 16 bytes; of 32 with INTERLEAVE_32B, " + _names(_by_value("address_align_bytes", 32)[32])
_DIM_MULTIPLES = ", ".join(f"of {n} for {_names(types)}" for n, types in _by_value("dim_multiple", 2).items())
_ROWS = ", ".join(f"{n} for {_names(types)}" for n, types in _by_value("row_elements", 1).items())
_SPANS = f"no wider than the swizzle span ({_numbers(SPAN_BYTES.values())} bytes), with INTERLEAVE_NONE"

# fmt: off
RULES = (
    Rule("compute_capability", "compute_capability",
         f"{find.version(TMA_SINCE)} or later; for im2col wide {find.version(TMA_EXTENDED_SINCE)} or later",
         API + "description", find.compute_capability),
    Rule("data_type", "data_type",
         f"one of the driver's {len(T)} types; the packed ones ({find.ranged(_PACKED)}) need compute capability "
         f"{find.version(TMA_EXTENDED_SINCE)}",
         API + "tensorDataType; " + OBSERVED, find.data_type),
    Rule("rank", "rank",
         "1 to 5; 3 to 5 with an interleaved layout and for im2col", API + "tensorRank", find.rank),
    Rule("array_length", "rank",
         "the length of every array fits the rank", API + "globalStrides, boxDim, elementStrides",
         find.lengths),
    Rule("global_address_range", "global_address",
         "a 64-bit address", API + "globalAddress", find.address_range),
    Rule("global_address_alignment", "global_address",
         _ALIGNMENT, API + "globalAddress", find.address_alignment),
    Rule("global_dim_range", "global_dim",
         "each 1 to 2^32 (CUDA 13.5 documents 2^31, earlier releases 2^32)",
         API + "globalDim; " + OBSERVED, find.within("global_dim", 1, MAX_DIM)),
    Rule("global_dim_packed", "global_dim",
         f"the innermost is a multiple {_DIM_MULTIPLES}",
         API + "globalDim" + UNVERIFIED, find.packed_dim),
    Rule("global_strides_alignment", "global_strides",
         f"each {_ALIGNMENT}",
         API + "globalStrides", find.stride_alignment),
    Rule("global_strides_range", "global_strides",
         "each less than 2^40 bytes", API + "globalStrides", find.stride_range),
    Rule("box_dim_range", "box_dim",
         "each 1 to 256", _TILED_API + "boxDim", find.within("box_dim", 1, MAX_BOX_DIM), TILED),
    Rule("box_dim_multiple", "box_dim",
         "the innermost is a whole number of 16 bytes (documented only for INTERLEAVE_NONE)",
         _TILED_API + "boxDim; " + OBSERVED, find.inner_multiple, TILED),
    Rule("box_dim_packed", "box_dim",
         f"the innermost is {_ROWS}",
         _TILED_API + "boxDim" + UNVERIFIED, find.inner_packed, TILED),
    Rule("box_dim_span", "box_dim",
         f"the innermost is {_SPANS}",
         _TILED_API + "interleave", find.inner_span, TILED),
    Rule("box_dim_bytes", "box_dim",
         "the product of floor(box_dim / element_strides), in bytes, is at most 228 KiB",
         OBSERVED, find.transfer, TILED),
    Rule("pixel_box_lower_corner_range", "pixel_box_lower_corner",
         "each -32768 to 32767 for rank 3, -128 to 127 for rank 4, -16 to 15 for rank 5",
         _IM2COL_API + "pixelBoxLowerCorner", find.corner("pixel_box_lower_corner"), IM2COL),
    Rule("pixel_box_lower_corner_range", "pixel_box_lower_corner_width",
         "-32768 to 32767", _WIDE_API + "pixelBoxLowerCornerWidth" + UNVERIFIED,
         find.corner_width("pixel_box_lower_corner_width"), WIDE),
    Rule("pixel_box_upper_corner_range", "pixel_box_upper_corner",
         "each -32768 to 32767 for rank 3, -128 to 127 for rank 4, -16 to 15 for rank 5",
         _IM2COL_API + "pixelBoxUpperCorner", find.corner("pixel_box_upper_corner"), IM2COL),
    Rule("pixel_box_upper_corner_range", "pixel_box_upper_corner_width",
         "-32768 to 32767", _WIDE_API + "pixelBoxUpperCornerWidth" + UNVERIFIED,
         find.corner_width("pixel_box_upper_corner_width"), WIDE),
    Rule("pixel_box_empty", "pixel_box_upper_corner",
         "extent + upper, in 32 bits with a sign, is more than lower in every spatial dimension; the extent of W is "
         "global_dim[1], but with an interleaved layout the driver takes global_dim[0] for it, [1] for H, [2] for D",
         _IM2COL_API + "pixelBoxUpperCorner; " + OBSERVED, find.pixel_box, IM2COL),
    Rule("pixel_box_empty", "pixel_box_upper_corner_width",
         "extent + upper - lower is more than 0 along W",
         _WIDE_API + "pixelBoxUpperCornerWidth" + UNVERIFIED, find.pixel_box, WIDE),
    Rule("channels_per_pixel_range", "channels_per_pixel",
         "1 to 256", _IM2COL_API + "channelsPerPixel", find.within("channels_per_pixel", 1, MAX_BOX_DIM), PIXELS),
    Rule("channels_per_pixel_multiple", "channels_per_pixel",
         "a whole number of 16 bytes", OBSERVED, find.inner_multiple, PIXELS),
    Rule("channels_per_pixel_packed", "channels_per_pixel",
         _ROWS,
         _IM2COL_API + "channelsPerPixel" + UNVERIFIED, find.inner_packed, PIXELS),
    Rule("channels_per_pixel_span", "channels_per_pixel",
         _SPANS,
         _IM2COL_API + "interleave", find.inner_span, PIXELS),
    Rule("pixels_per_column_range", "pixels_per_column",
         "1 to 1024", _IM2COL_API + "pixelsPerColumn",
         find.within("pixels_per_column", 1, MAX_PIXELS_PER_COLUMN), PIXELS),
    Rule("pixels_per_column_bytes", "pixels_per_column",
         "channels_per_pixel * pixels_per_column, in bytes, is at most 228 KiB", OBSERVED, find.transfer, PIXELS),
    Rule("element_strides_range", "element_strides",
         "each 1 to 8", API + "elementStrides", find.within("element_strides", 1, MAX_ELEMENT_STRIDE)),
    Rule("interleave", "interleave",
         "one of the driver's 3 layouts", API + "interleave",
         find.member("interleave", range(3), find.listed(TensorMapInterleave))),
    Rule("interleave_packed", "interleave",
         f"NONE for {_names(t for t in T if not ELEMENTS[t].can_interleave)}",
         API + "interleave" + UNVERIFIED, find.packed_interleave),
    Rule("mode", "mode",
         "W or W128", _WIDE_API + "mode" + UNVERIFIED, find.member("mode", range(2), "0 (W) or 1 (W128)"), WIDE),
    Rule("swizzle", "swizzle",
         f"one of the driver's {len(S)} modes; the atom swizzles ({find.ranged(_ATOM_SWIZZLES)}) need compute "
         f"capability {find.version(TMA_EXTENDED_SINCE)}",
         API + "swizzle; " + OBSERVED, find.swizzle),
    Rule("swizzle_packed", "swizzle",
         "; ".join(f"{_names(legal, 'or')} for {t.short_name}" for t in T if (legal := ELEMENTS[t].swizzles)),
         API + "swizzle" + UNVERIFIED, find.packed_swizzle),
    Rule("swizzle_wide", "swizzle",
         f"{_names((s for s in S if PATTERNS[s].is_wide), 'or')} for im2col wide",
         _WIDE_API + "swizzle" + UNVERIFIED, find.wide_swizzle, WIDE),
    Rule("l2_promotion", "l2_promotion",
         "one of the driver's 4 sizes", API + "l2Promotion", find.member("l2_promotion", range(4), "0 to 3")),
    Rule("oob_fill", "oob_fill",
         "NONE or NAN", API + "oobFill", find.member("oob_fill", range(2), "0 (NONE) or 1 (NAN)")),
    Rule("oob_fill_data_type", "oob_fill",
         "NAN only for a floating-point data type", API + "oobFill", find.nan_fill),
    *(Rule(option.name, option.name, option.rule, option.source + UNVERIFIED * bool(option.since),
           find.member(option.name, option.legal, find.listed(option.legal)))
      for option in COMMON if option.rule),
)
# fmt: on


def check(
    params: Params,
    compute_capability: tuple[int, int] | str = (9, 0),
    warnings: bool = False,
    *,
    dtype_name: str | None = None,
) -> tuple[Violation, ...]:
    """Return every rule that `params` breaks, in the order of the driver's arguments.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        The parameters in driver order.
    compute_capability : (int, int) or str
        The device, as a pair of numbers or as ``"9.0"`` or ``"sm_90a"``. Rules for 10.0 and later are documented, but
        not verified on hardware, as their source states.
    warnings : bool
        Whether to add advice on maps that the driver accepts, after the errors.
    dtype_name : str, optional
        The dtype of the tensor. Each violation then has a `sentence` in the user's terms.

    Returns
    -------
    tuple of Violation
        The broken rules. The tuple is empty if the driver accepts the map.

    Raises
    ------
    TensorMapError
        If an argument has another type, or if no known device has this compute capability. Also if a map breaks a rule
        and contains a number beyond 128 bits.

    Examples
    --------
    >>> from cuda_tma.params import TiledParams
    >>> p = TiledParams(data_type=7, global_address=0, global_dim=(1733, 128), global_strides=(6932,),
    ...                 box_dim=(32, 32), element_strides=(1, 1))
    >>> [str(v) for v in check(p)]
    ['global_strides[0]=6932 must be a multiple of 16. Use 6944.']
    """
    check_params(params)
    m = find.tensor_map(params, parse_compute_capability(compute_capability))
    mode: Any = type(params)  # The type is Any, because for mypy a dataclass is not hashable.
    rules, advice = _rules_of(mode)
    broken: list[Violation] = []
    for rule in rules:
        if findings := rule.find(m):
            if not broken:
                check_sizes(params)  # The sizes of the numbers are checked before a message contains the numbers.
            broken += map(rule.violation, findings)
    if warnings:
        for rule in advice:
            broken += map(rule.violation, rule.find(m))
    if dtype_name is not None:
        broken = [replace(each, sentence=sentence(params, each, dtype_name)) for each in broken]
    return tuple(broken)


@cache
def _rules_of(mode: type) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """Return the rules and the warnings that apply to a mode."""
    rules, advice = (tuple(rule for rule in table if issubclass(mode, rule.modes)) for table in (RULES, WARNINGS))
    return rules, advice
