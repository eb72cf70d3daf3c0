"""The tensor map of a command, from its bytes, or from a tensor and options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from .. import (
    Convolution,
    TensorMapError,
    TensorMapIm2colOptions,
    TensorMapIm2colWideOptions,
    TensorMapOptions,
    TensorSpec,
    params_of,
)
from ..codec import decode
from ..params import Params
from .dump import read_map
from .exit_status import Misuse
from .options import COMMON, CONVOLUTION, CORNERS, OPTIONS, TILED, WIDE, Option

__all__ = ["given_map", "read_bytes"]

_BY_NAME = {option.name: option for option in OPTIONS}
# The table contains, for each mode of a map, the options that select the mode and the options that the mode requires.
_MARKS = {"wide": WIDE, "kernel_size": CONVOLUTION, "lower_corner": CORNERS, "upper_corner": CORNERS, "box": TILED}
_PIXELS = ("channels", "pixels")
_NEEDS = {
    TILED: ("box",),
    CONVOLUTION: ("kernel_size", *_PIXELS),
    CORNERS: ("lower_corner", "upper_corner", *_PIXELS),
    WIDE: ("lower_corner", "upper_corner", *_PIXELS),
}


def read_bytes(source: str) -> bytes:
    """Return the 128 bytes of the tensor map that an argument names."""
    try:
        return read_map(source)
    except OSError as error:
        raise Misuse(f"{source[:200]} cannot be read: {error.strerror or error}") from None
    except TensorMapError as error:
        raise Misuse(str(error)) from None


def given_map(arguments: argparse.Namespace) -> Params:
    """Return the parameters of the tensor map in the arguments.

    Raises
    ------
    Misuse
        If the arguments contain no map, if they contain options of another mode, or if the bytes are not a map.
    TensorMapError
        If no tensor map of the tensor can have these options.
    """
    given = {name: value for name in _BY_NAME if (value := getattr(arguments, name)) is not None}
    if arguments.map is not None:
        if given:
            raise Misuse(
                f"the 128 bytes of a map already determine all of its fields; leave out {_flags(given)}, or the bytes"
            )
        return _decoded(arguments.map)
    if "shape" not in given:
        raise Misuse(
            "pass a descriptor (hex digits, a file or -), or pass --shape with --box or with the options of im2col"
        )
    mode = _mode(given)
    spec = TensorSpec(given["shape"], given.get("dtype", "float32"), given.get("strides"), given.get("address", 0))
    return params_of(spec, _options(mode, given))


def _decoded(source: str) -> Params:
    raw = read_bytes(source)
    try:
        return decode(raw)
    except TensorMapError as error:
        raise Misuse(str(error)) from None


def _mode(given: dict[str, Any]) -> str:
    """Return the mode of the options; refuse missing options, and options of another mode."""
    mark = next((mark for mark in _MARKS if mark in given), None)
    if mark is None:
        raise Misuse(
            "pass --box; for im2col, pass --channels, --pixels, and --kernel-size or both --lower-corner and "
            "--upper-corner"
        )
    mode = _MARKS[mark]
    for name in given:
        if mode not in _BY_NAME[name].modes:
            raise Misuse(_stranger(_BY_NAME[name], mode, _BY_NAME[mark].flag))
    if missing := [name for name in _NEEDS[mode] if name not in given]:
        raise Misuse(f"a map of mode {mode} ({_BY_NAME[mark].flag}) also needs {_flags(missing)}")
    return mode


def _stranger(option: Option, mode: str, mark: str) -> str:
    return (
        f"{option.flag} does not fit {mark}, which makes the map {mode}: leave one of them out. "
        f"{option.flag} is for {' and '.join(option.modes)}: {option.help}"
    )


def _flags(names: Any) -> str:
    return ", ".join(_BY_NAME[name].flag for name in names)


def _options(mode: str, given: dict[str, Any]) -> Any:
    common = {name: given[name] for name in COMMON if name in given}
    try:
        return _MAKERS[mode](given, common)
    except TypeError as error:  # The class Convolution raises TypeError if the ranks of its arguments differ.
        raise Misuse(str(error)) from None


def _tiled(given: dict[str, Any], common: dict[str, Any]) -> TensorMapOptions:
    return TensorMapOptions(given["box"], given.get("element_strides"), **common)


def _im2col(given: dict[str, Any], common: dict[str, Any]) -> TensorMapIm2colOptions:
    columns = given["channels"], given["pixels"]
    return TensorMapIm2colOptions(
        given["lower_corner"], given["upper_corner"], *columns, given.get("element_strides"), **common
    )


def _convolution(given: dict[str, Any], common: dict[str, Any]) -> TensorMapIm2colOptions:
    dimensions = len(given["shape"]) - 2
    if not 1 <= dimensions <= 3:
        raise TensorMapError(
            f"--shape has {dimensions + 2} extents; a convolution's tensor has 3 to 5: NWC, NHWC or NDHWC"
        )
    names = ("kernel_size", "stride", "padding", "dilation")
    geometry = Convolution(**{name: _for_each(given[name], dimensions) for name in names if name in given})
    corners = geometry.pixel_box_lower_corner, geometry.pixel_box_upper_corner
    return TensorMapIm2colOptions(*corners, given["channels"], given["pixels"], geometry.element_strides, **common)


def _for_each(values: Any, dimensions: int) -> Any:
    """Return one value for each spatial dimension; a single value that is not a name applies to all dimensions."""
    return values * dimensions if len(values) == 1 else values


def _wide(given: dict[str, Any], common: dict[str, Any]) -> TensorMapIm2colWideOptions:
    corners = given["lower_corner"], given["upper_corner"]
    if any(len(corner) != 1 for corner in corners):
        raise Misuse(
            "--lower-corner and --upper-corner of an im2col-wide map have one value each, for dimension W; pass one "
            "value"
        )
    columns = given["channels"], given["pixels"], given.get("element_strides")
    return TensorMapIm2colWideOptions(corners[0][0], corners[1][0], *columns, mode=given["wide"], **common)


_MAKERS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    TILED: _tiled,
    CONVOLUTION: _convolution,
    CORNERS: _im2col,
    WIDE: _wide,
}
