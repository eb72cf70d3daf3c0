"""The options of the command line that make a map from a tensor: one row of a table each, and how its value is read."""

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

_INTEGER = r"[+-]?[0-9]{1,25}"  # of 64 bits and more, yet not of so many digits that int() refuses them


# --- how values are read: argparse names the option, and prints what an ArgumentTypeError says ---


def sizes(text: str) -> tuple[int, ...]:
    """``"128x1733"`` or ``"128,1733"``."""
    if not re.fullmatch(f"{_INTEGER}([x,]{_INTEGER})*", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is no list of integers; write them as 128x1733")
    return tuple(map(int, re.split("[x,]", text)))


def integer(text: str) -> int:
    if not re.fullmatch(_INTEGER, text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is no integer")
    return int(text)


def _address(text: str) -> int:
    if re.fullmatch("0x[0-9a-f]{1,25}", text, re.IGNORECASE):
        return int(text, 16)
    if not re.fullmatch(_INTEGER, text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is no address; write it as 4096 or 0x1000")
    return int(text)


def _padding(text: str) -> str | tuple[Any, ...]:
    """``"same"``, ``"valid"``, ``"1x2"``, or with what is before and after ``"0:1x2:2"``."""
    if text in ("same", "valid"):
        return text
    if not re.fullmatch(f"{_INTEGER}(:{_INTEGER})?([x,]{_INTEGER}(:{_INTEGER})?)*", text):
        raise argparse.ArgumentTypeError(
            f"{shown(text)} is no padding; write it as 1x1, as 0:1x2:2 with before:after, same or valid"
        )
    found = [tuple(map(int, part.split(":"))) for part in re.split("[x,]", text)]
    return tuple(part[0] if len(part) == 1 else part for part in found)


def _told(parse: Callable[..., Any], *arguments: str) -> Callable[[str], Any]:
    """A reader whose own words say what is wrong."""

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
    """One option: its name, how its value is read, an example of it, its help, and the modes it belongs to."""

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
COMMON = ("data_type", *(field.name for field in _FLAGGED))  # of maps of all modes

# fmt: off
OPTIONS = (
    Option("--shape", sizes, "128x1733", "the tensor's extents in elements, outermost first", _ALL),
    Option("--dtype", dtype, "bfloat16", "of the tensor, as NumPy, torch or the driver name it; float32 if not given",
           _ALL),
    Option("--strides", sizes, "1736x1", "the tensor's, in elements; contiguous if not given", _ALL),
    Option("--address", _address, "0x1000", "of the tensor's first element; 0 if not given", _ALL),
    Option("--data-type", data_type, "TFLOAT32", "how the engine reads an element; follows from the dtype",
           _ALL),
    Option("--box", sizes, "32x32", "a tiled map: extents of the box that a load delivers, in elements", (TILED,)),
    Option("--kernel-size", sizes, "3x3", "an im2col map of a convolution: its filter; one value is for all dimensions",
           (CONVOLUTION,)),
    Option("--padding", _padding, "1x1", "the convolution's: 0 if not given, before:after as 0:1x2:2, same or valid",
           (CONVOLUTION,)),
    Option("--stride", sizes, "2x2", "the convolution's; 1 if not given. The tensor's are --strides", (CONVOLUTION,)),
    Option("--dilation", sizes, "1x1", "the convolution's; 1 if not given", (CONVOLUTION,)),
    Option("--lower-corner", sizes, "1x1", "an im2col map: where the box of pixels begins, from the tensor's first; "
           "negative as --lower-corner=-1x-1", (CORNERS, WIDE)),
    Option("--upper-corner", sizes, "1x1", "where the box of pixels ends, from the tensor's last", (CORNERS, WIDE)),
    _enum("--wide", TensorMapIm2ColWideMode, "an im2col map along W alone (compute capability 10.0 and later), with "
          "one value in each corner, of mode", (WIDE,)),
    Option("--channels", integer, "64", "elements of dimension C that an im2col load delivers of each pixel", _PIXELS),
    Option("--pixels", integer, "128", "pixels that an im2col load delivers", _PIXELS),
    Option("--element-strides", sizes, "1x1", "steps between the elements that a load visits; 1 if not given",
           (TILED, CORNERS, WIDE)),
    *(_enum("--" + f.name.replace("_", "-"), f.metadata["type"], f.metadata["flag"]) for f in _FLAGGED),
)
# fmt: on
