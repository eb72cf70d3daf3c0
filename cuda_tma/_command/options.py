"""The options of the command line for the map of a tensor, as a table with a reader for each value."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any, NamedTuple

from .. import TensorMapOptions, TensorSpec
from .._compute_capability import parse_compute_capability
from .._given import shown
from ..enums import TensorMapDataType, TensorMapIm2ColWideMode

__all__ = ["COMMON", "CONVOLUTION", "CORNERS", "OPTIONS", "TILED", "WIDE", "Option", "capability", "data_type", "dtype"]
__all__ += ["integer", "sizes"]

# A number of 25 digits exceeds 64 bits, and Python's int() accepts the number.
_INTEGER = r"[+-]?[0-9]{1,25}"


# --- readers of values ---


def sizes(text: str) -> tuple[int, ...]:
    """Return the sizes in a text such as ``"128x1733"`` or ``"128,1733"``."""
    if not re.fullmatch(f"{_INTEGER}([x,]{_INTEGER})*", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a list of integers; write it as 128x1733")
    return tuple(map(int, re.split("[x,]", text)))


def integer(text: str) -> int:
    if not re.fullmatch(_INTEGER, text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not an integer")
    return int(text)


def _address(text: str) -> int:
    if re.fullmatch("0x[0-9a-f]{1,25}", text, re.IGNORECASE):
        return int(text, 16)
    if not re.fullmatch(_INTEGER, text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not an address; write it as 4096 or 0x1000")
    return int(text)


def _padding(text: str) -> str | tuple[Any, ...]:
    """Return the padding that a text such as ``"valid"``, ``"1x2"`` or ``"0:1x2:2"`` (before:after) describes."""
    if text in ("same", "valid"):
        return text
    if not re.fullmatch(f"{_INTEGER}(:{_INTEGER})?([x,]{_INTEGER}(:{_INTEGER})?)*", text):
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is not a padding; write it as 1x1, as 0:1x2:2 (before:after), same or valid"
        )
    found = [tuple(map(int, part.split(":"))) for part in re.split("[x,]", text)]
    return tuple(part[0] if len(part) == 1 else part for part in found)


def _told(parse: Callable[..., Any], *arguments: str) -> Callable[[str], Any]:
    """Return a reader that converts errors of `parse` to an ArgumentTypeError with the same text."""

    def read(text: str) -> Any:
        try:
            return parse(text, *arguments)
        except (TypeError, ValueError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _dtype_name(text: str) -> str:
    return TensorSpec((1,), "bfloat16" if text.lower() == "bf16" else text).dtype


def _data_type(text: str) -> TensorMapDataType | None:
    return TensorMapOptions((1,), data_type=text).data_type


dtype = _told(_dtype_name)
data_type = _told(_data_type)
capability = _told(parse_compute_capability)

# --- the table ---


class Option(NamedTuple):
    """An option of a tensor map: its flag, the reader of its value, an example, its help, and its modes."""

    flag: str
    read: Callable[[str], Any]
    example: str
    help: str
    modes: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--").replace("-", "_")


TILED, CONVOLUTION, CORNERS, WIDE = "tiled", "im2col of a convolution", "im2col", "im2col wide"
_ALL = (TILED, CONVOLUTION, CORNERS, WIDE)
_PIXELS = (CONVOLUTION, CORNERS, WIDE)


def _enum(flag: str, enum: Any, text: str, modes: tuple[str, ...] = _ALL) -> Option:
    names = [member.short_name for member in enum]
    return Option(flag, _told(enum.parse, flag[2:].replace("-", "_")), names[-1], f"{text}: {', '.join(names)}", modes)


_FLAGGED = [field for field in fields(TensorMapOptions) if field.metadata.get("flag")]
COMMON = ("data_type", *(field.name for field in _FLAGGED))  # The options in COMMON apply to maps of all modes.

# fmt: off
OPTIONS = (
    Option("--shape", sizes, "128x1733", "extents of the tensor in elements, outermost first", _ALL),
    Option("--dtype", dtype, "bfloat16", "data type of the tensor, by its name in NumPy, torch or the driver (default: "
           "float32)", _ALL),
    Option("--strides", sizes, "1736x1", "strides of the tensor in elements (default: contiguous)", _ALL),
    Option("--address", _address, "0x1000", "address of the tensor's first element (default: 0)", _ALL),
    Option("--data-type", data_type, "TFLOAT32", "data type by which TMA reads an element (default: from the dtype)",
           _ALL),
    Option("--box", sizes, "32x32", "tiled map: extents of the box that a load copies, in elements", (TILED,)),
    Option("--kernel-size", sizes, "3x3", "im2col map of a convolution: extents of its filter; one value holds for all "
           "dimensions", (CONVOLUTION,)),
    Option("--padding", _padding, "1x1", "padding of the convolution, such as 1x1, 0:1x2:2 (before:after), same or "
           "valid (default: 0)", (CONVOLUTION,)),
    Option("--stride", sizes, "2x2", "stride of the convolution (default: 1); --strides are those of the tensor",
           (CONVOLUTION,)),
    Option("--dilation", sizes, "1x1", "dilation of the convolution (default: 1)", (CONVOLUTION,)),
    Option("--lower-corner", sizes, "1x1", "im2col map: first pixel of the bounding box, as an offset from the "
           "tensor's first pixel; write negative ones as --lower-corner=-1x-1", (CORNERS, WIDE)),
    Option("--upper-corner", sizes, "1x1", "last pixel of the bounding box, as an offset from the tensor's last pixel",
           (CORNERS, WIDE)),
    _enum("--wide", TensorMapIm2ColWideMode, "im2col map along W only (compute capability 10.0 and later), with "
          "one value in each corner; its mode", (WIDE,)),
    Option("--channels", integer, "64", "elements of dimension C that an im2col load copies for each pixel", _PIXELS),
    Option("--pixels", integer, "128", "pixels that an im2col load copies", _PIXELS),
    Option("--element-strides", sizes, "1x1", "strides between the elements that a load copies (default: 1)",
           (TILED, CORNERS, WIDE)),
    *(_enum("--" + f.name.replace("_", "-"), f.metadata["type"], f.metadata["flag"]) for f in _FLAGGED),
)
# fmt: on
