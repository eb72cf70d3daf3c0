"""The constraints on a tensor map, each stated once, and :func:`check`, which applies them.

:data:`RULES` is a table: a row is a rule's name, the parameter it is about, its text, its source, and the function that
finds what breaks it. The rows stand in the order of the driver's arguments. ``docs/rules.md`` is this table and that of
:mod:`cuda_tma.rules._advice`: ``python tools/write_rules.py`` writes it.

An error is what the driver refuses; where it is more lenient than its documentation, the difference is a warning. What
holds for compute capability 10.0 and later alone is documented, not verified on hardware.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

from ..compute_capability import parse_compute_capability
from ..enums import TensorMapAllocationClass, TensorMapInterleave
from ..limits import MAX_BOX_DIM
from ..params import Im2colParams, Im2colWideParams, Params, TiledParams, check_params, check_sizes
from . import _predicates as find
from ._advice import WARNINGS
from ._rule import ALL_MODES, Rule, Violation

__all__ = ["RULES", "check", "markdown"]

_TILED: tuple[type, ...] = (TiledParams,)
_IM2COL: tuple[type, ...] = (Im2colParams,)
_WIDE: tuple[type, ...] = (Im2colWideParams,)
_PIXELS = _IM2COL + _WIDE


_API = "CUDA 13.5 driver API, cuTensorMapEncode*: "
_TILED_API = "CUDA 13.5 driver API, cuTensorMapEncodeTiled: "
_IM2COL_API = "CUDA 13.5 driver API, cuTensorMapEncodeIm2col: "
_WIDE_API = "CUDA 13.5 driver API, cuTensorMapEncodeIm2colWide: "
_OBSERVED = "observed: driver 580, sm_90"
_UNVERIFIED = " (documented, not verified on hardware)"

_CLASSES = (TensorMapAllocationClass.SMALL, TensorMapAllocationClass.LARGE)

# fmt: off
RULES = (
    Rule("compute_capability", "compute_capability",
         "9.0 or later; for im2col wide 10.0 or later", _API + "description", find.compute_capability),
    Rule("data_type", "data_type",
         "one of the driver's 16 types; the packed ones (13 to 15) need compute capability 10.0",
         _API + "tensorDataType; " + _OBSERVED, find.data_type),
    Rule("rank", "rank",
         "1 to 5; 3 to 5 with an interleaved layout and for im2col", _API + "tensorRank", find.rank),
    Rule("array_length", "rank",
         "every array has as many values as the rank asks for", _API + "globalStrides, boxDim, elementStrides",
         find.lengths),
    Rule("global_address_range", "global_address",
         "a 64-bit address", _API + "globalAddress", find.address_range),
    Rule("global_address_alignment", "global_address",
         "a multiple of 16 bytes; of 32 with INTERLEAVE_32B, 16U4_ALIGN16B and 16U6_ALIGN16B",
         _API + "globalAddress", find.address_alignment),
    Rule("global_dim_range", "global_dim",
         "each 1 to 2^32 (CUDA 13.5 documents 2^31, earlier releases 2^32)",
         _API + "globalDim; " + _OBSERVED, find.within("global_dim", 1, 2**32)),
    Rule("global_dim_packed", "global_dim",
         "the innermost is a multiple of 2 for 16U4_ALIGN8B, of 128 for 16U4_ALIGN16B and 16U6_ALIGN16B",
         _API + "globalDim" + _UNVERIFIED, find.packed_dim),
    Rule("global_strides_alignment", "global_strides",
         "each a multiple of 16 bytes; of 32 with INTERLEAVE_32B, 16U4_ALIGN16B and 16U6_ALIGN16B",
         _API + "globalStrides", find.stride_alignment),
    Rule("global_strides_range", "global_strides",
         "each less than 2^40 bytes", _API + "globalStrides", find.stride_range),
    Rule("box_dim_range", "box_dim",
         "each 1 to 256", _TILED_API + "boxDim", find.within("box_dim", 1, MAX_BOX_DIM), _TILED),
    Rule("box_dim_multiple", "box_dim",
         "the innermost is a whole number of 16 bytes (the documentation says so for INTERLEAVE_NONE alone)",
         _TILED_API + "boxDim; " + _OBSERVED, find.inner_multiple, _TILED),
    Rule("box_dim_packed", "box_dim",
         "the innermost is 128 for 16U4_ALIGN16B and 16U6_ALIGN16B",
         _TILED_API + "boxDim" + _UNVERIFIED, find.inner_packed, _TILED),
    Rule("box_dim_span", "box_dim",
         "the innermost is no wider than the swizzle span (32, 64, 128 bytes), with INTERLEAVE_NONE",
         _TILED_API + "interleave", find.inner_span, _TILED),
    Rule("box_dim_bytes", "box_dim",
         "the product of floor(box_dim / element_strides), in bytes, is at most 228 KiB",
         _OBSERVED, find.transfer, _TILED),
    Rule("pixel_box_lower_corner_range", "pixel_box_lower_corner",
         "each -32768 to 32767 for rank 3, -128 to 127 for rank 4, -16 to 15 for rank 5",
         _IM2COL_API + "pixelBoxLowerCorner", find.corner("pixel_box_lower_corner"), _IM2COL),
    Rule("pixel_box_lower_corner_range", "pixel_box_lower_corner_width",
         "-32768 to 32767", _WIDE_API + "pixelBoxLowerCornerWidth" + _UNVERIFIED,
         find.corner_width("pixel_box_lower_corner_width"), _WIDE),
    Rule("pixel_box_upper_corner_range", "pixel_box_upper_corner",
         "each -32768 to 32767 for rank 3, -128 to 127 for rank 4, -16 to 15 for rank 5",
         _IM2COL_API + "pixelBoxUpperCorner", find.corner("pixel_box_upper_corner"), _IM2COL),
    Rule("pixel_box_upper_corner_range", "pixel_box_upper_corner_width",
         "-32768 to 32767", _WIDE_API + "pixelBoxUpperCornerWidth" + _UNVERIFIED,
         find.corner_width("pixel_box_upper_corner_width"), _WIDE),
    Rule("pixel_box_empty", "pixel_box_upper_corner",
         "extent + upper, in 32 bits with a sign, is more than lower in every spatial dimension; the extent of W is "
         "global_dim[1], but with an interleaved layout the driver takes global_dim[0] for it, [1] for H, [2] for D",
         _IM2COL_API + "pixelBoxUpperCorner; " + _OBSERVED, find.pixel_box, _IM2COL),
    Rule("pixel_box_empty", "pixel_box_upper_corner_width",
         "extent + upper - lower is more than 0 along W",
         _WIDE_API + "pixelBoxUpperCornerWidth" + _UNVERIFIED, find.pixel_box, _WIDE),
    Rule("channels_per_pixel_range", "channels_per_pixel",
         "1 to 256", _IM2COL_API + "channelsPerPixel", find.within("channels_per_pixel", 1, MAX_BOX_DIM), _PIXELS),
    Rule("channels_per_pixel_multiple", "channels_per_pixel",
         "a whole number of 16 bytes", _OBSERVED, find.inner_multiple, _PIXELS),
    Rule("channels_per_pixel_packed", "channels_per_pixel",
         "128 for 16U4_ALIGN16B and 16U6_ALIGN16B",
         _IM2COL_API + "channelsPerPixel" + _UNVERIFIED, find.inner_packed, _PIXELS),
    Rule("channels_per_pixel_span", "channels_per_pixel",
         "no wider than the swizzle span (32, 64, 128 bytes), with INTERLEAVE_NONE",
         _IM2COL_API + "interleave", find.inner_span, _PIXELS),
    Rule("pixels_per_column_range", "pixels_per_column",
         "1 to 1024", _IM2COL_API + "pixelsPerColumn", find.within("pixels_per_column", 1, 1024), _PIXELS),
    Rule("pixels_per_column_bytes", "pixels_per_column",
         "channels_per_pixel * pixels_per_column, in bytes, is at most 228 KiB", _OBSERVED, find.transfer, _PIXELS),
    Rule("element_strides_range", "element_strides",
         "each 1 to 8", _API + "elementStrides", find.within("element_strides", 1, 8)),
    Rule("interleave", "interleave",
         "one of the driver's 3 layouts", _API + "interleave",
         find.member("interleave", range(3), find.listed(TensorMapInterleave))),
    Rule("interleave_packed", "interleave",
         "NONE for 16U6_ALIGN16B", _API + "interleave" + _UNVERIFIED, find.packed_interleave),
    Rule("mode", "mode",
         "W or W128", _WIDE_API + "mode" + _UNVERIFIED, find.member("mode", range(2), "0 (W) or 1 (W128)"), _WIDE),
    Rule("swizzle", "swizzle",
         "one of the driver's 7 modes; the atom swizzles (4 to 6) need compute capability 10.0",
         _API + "swizzle; " + _OBSERVED, find.swizzle),
    Rule("swizzle_packed", "swizzle",
         "NONE, 128B or 128B_ATOM_32B for 16U4_ALIGN16B; these or 128B_ATOM_64B for 16U6_ALIGN16B",
         _API + "swizzle" + _UNVERIFIED, find.packed_swizzle),
    Rule("swizzle_wide", "swizzle",
         "64B, 128B or 128B_ATOM_32B for im2col wide", _WIDE_API + "swizzle" + _UNVERIFIED, find.wide_swizzle, _WIDE),
    Rule("l2_promotion", "l2_promotion",
         "one of the driver's 4 sizes", _API + "l2Promotion", find.member("l2_promotion", range(4), "0 to 3")),
    Rule("oob_fill", "oob_fill",
         "NONE or NAN", _API + "oobFill", find.member("oob_fill", range(2), "0 (NONE) or 1 (NAN)")),
    Rule("oob_fill_data_type", "oob_fill",
         "NAN for a floating-point data type alone", _API + "oobFill", find.nan_fill),
    Rule("allocation_class", "allocation_class",
         "SMALL or LARGE: AUTO is asked of the driver, and a map holds what it chose",
         "CUDA 13.5 driver API, cuTensorMapSetAllocationClass" + _UNVERIFIED,
         find.member("allocation_class", _CLASSES, find.listed(_CLASSES))),
)
# fmt: on


def check(
    params: Params, compute_capability: tuple[int, int] | str = (9, 0), warnings: bool = False
) -> tuple[Violation, ...]:
    """What the driver would refuse in `params`: all of it, in the order of the driver's arguments.

    Parameters
    ----------
    params : TiledParams, Im2colParams or Im2colWideParams
        In driver order.
    compute_capability : (int, int) or str
        The device, also as ``"9.0"`` or ``"sm_90a"``.
        Rules for 10.0 and later are documented, not verified on hardware; their source says so.
    warnings : bool
        Whether to add, after the errors, what the driver accepts and users regret.

    Returns
    -------
    tuple of Violation
        Empty if the driver accepts the map.

    Raises
    ------
    TensorMapError
        If an argument is of another type, no device known has such a compute capability, or a number of a map that
        breaks a rule is beyond 128 bits.

    Examples
    --------
    >>> p = TiledParams(data_type=7, global_address=0, global_dim=(1733, 128), global_strides=(6932,),
    ...                 box_dim=(32, 32), element_strides=(1, 1))
    >>> [str(v) for v in check(p)]
    ['global_strides[0]=6932 must be a multiple of 16. Use 6944.']
    """
    check_params(params)
    m = find.tensor_map(params, parse_compute_capability(compute_capability))
    mode: Any = type(params)  # mypy holds a dataclass to be no key of a cache
    rules, advice = _rules_of(mode)
    broken: list[Violation] = []
    for rule in rules:
        if rule.look(m):
            if not broken:
                check_sizes(params)  # before they are written into messages
            broken += rule.violations(m)
    if warnings:
        for rule in advice:
            broken += rule.violations(m)
    return tuple(broken)


@cache
def _rules_of(mode: type) -> tuple[tuple[Rule, ...], tuple[Rule, ...]]:
    """The rules and the warnings of a mode."""
    rules, advice = (tuple(rule for rule in table if issubclass(mode, rule.modes)) for table in (RULES, WARNINGS))
    return rules, advice


def markdown() -> str:
    """The tables of rules and warnings as the text of ``docs/rules.md``."""

    def rows(table: Iterable[Rule]) -> str:
        head = "| rule | parameter | modes | what holds | source |\n|---|---|---|---|---|\n"
        return head + "".join(
            f"| `{r.name}` | `{r.parameter}` | {_MODES[r.modes]} | {r.text} | {r.source} |\n" for r in table
        )

    return _PAGE.format(rules=rows(RULES), warnings=rows(WARNINGS))


_MODES = {ALL_MODES: "all", _TILED: "tiled", _IM2COL: "im2col", _WIDE: "im2col wide", _PIXELS: "im2col, wide"}
_PAGE = """# The rules of a tensor map

Generated by `python tools/write_rules.py`. Parameters have the driver's names, order and units.

## What the driver refuses

{rules}
## What it accepts and users regret

Reported by `check(params, warnings=True)`.

{warnings}"""
