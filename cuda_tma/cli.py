"""``cuda-tma``: check, decode and compare tensor maps on a machine without a GPU.

Exit status: 0 if the map is accepted, was decoded, or both are equal; 1 if it is refused, or they differ; 2 if the
input is no tensor map or the command line is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import accumulate
from operator import mul
from pathlib import Path
from typing import Any

from .codec import decode, encode, fields
from .data_type import element_bits, parse_data_type
from .diff import diff, words_of
from .enums import TensorMapInterleave, TensorMapL2Promotion, TensorMapOOBFill, TensorMapSwizzle
from .errors import TensorMapError
from .explain import sentence
from .params import Im2colParams, Params, TiledParams
from .rules import check

__all__ = ["main"]

# commands that live in their own modules: each has main(argv)
_ELSEWHERE = {"demo": "cuda_tma.demo"}
_ENUM_OPTIONS = {
    "interleave": TensorMapInterleave,
    "swizzle": TensorMapSwizzle,
    "l2_promotion": TensorMapL2Promotion,
    "oob_fill": TensorMapOOBFill,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of this process if None.

    Returns
    -------
    int
        The exit status.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv and argv[0] in _ELSEWHERE:
        return importlib.import_module(_ELSEWHERE[argv[0]]).main(argv[1:]) or 0
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except (ValueError, TypeError, OSError) as error:
        print(f"cuda-tma: {error}", file=sys.stderr)
        return 2


def _check(arguments: argparse.Namespace) -> int:
    params = _params(arguments)
    found = check(params, arguments.compute_capability, warnings=arguments.warnings)
    errors = [v for v in found if v.severity == "error"]
    if arguments.json:
        _print_json({"accepted": not errors, "violations": [asdict(v) | {"message": v.message} for v in found]})
    else:
        name = arguments.dtype or parse_data_type(params.data_type).short_name
        for number, violation in enumerate(found, 1):
            print(f"{number}. {violation.severity}: {sentence(params, violation, name)}")
        count = f"refused: {len(errors)} rule{'s' * (len(errors) > 1)} broken"
        print(count if errors else "accepted: the driver takes this map")
    return 1 if errors else 0


def _decode(arguments: argparse.Namespace) -> int:
    params = _params(arguments)
    raw = encode(params)
    if arguments.json:
        _print_json({"mode": type(params).__name__} | asdict(params) | {"descriptor": raw.hex()})
        return 0
    rows = [
        (f.label, words_of(f, raw, params), ", ".join(map(str, f.byte_offsets)))
        for f in fields(type(params), params.rank)
    ]
    rows += [("unexplained", f"word {word}, bits {mask:#010x}", str(4 * word)) for word, mask in params.unexplained]
    _print_table(f"{type(params).__name__}, rank {params.rank}", ("field", "value", "bytes"), rows)
    if arguments.map is None:
        print(raw.hex())
    return 0


def _diff(arguments: argparse.Namespace) -> int:
    found = diff(_read(arguments.a), _read(arguments.b))
    if arguments.json:
        _print_json([asdict(d) for d in found])
        return bool(found)
    rows = [(d.field, d.a, d.b, ", ".join(map(str, d.byte_offsets)), d.meaning) for d in found]
    if rows:
        _print_table("", ("field", "a", "b", "bytes", "what it does to a load"), rows)
    else:
        print("equal")
    return bool(found)


# --- input ------------------------------------------------------------------------------------------------------------


def _read(text: str) -> bytes:
    """128 bytes from hex digits, from a file of bytes or of hex digits, or (``-``) from standard input."""
    digits = re.sub(r"[\s_,]|0x", "", text)
    if re.fullmatch(r"[0-9a-fA-F]{256}", digits):
        return bytes.fromhex(digits)
    data = sys.stdin.buffer.read() if text == "-" else Path(text).read_bytes()
    if len(data) == 128:
        return data
    digits = re.sub(r"[\s_,]|0x", "", data.decode("ascii", "replace"))
    if not re.fullmatch(r"[0-9a-fA-F]{256}", digits):
        raise TensorMapError(f"{text} is no tensor map: neither 128 bytes nor 256 hex digits")
    return bytes.fromhex(digits)


def _params(arguments: argparse.Namespace) -> Params:
    if (arguments.map is None) == (arguments.shape is None):
        raise TensorMapError("give either a descriptor (hex digits or a file) or --shape, --dtype and --box")
    return decode(_read(arguments.map)) if arguments.map is not None else _params_of_shape(arguments)


def _params_of_shape(a: argparse.Namespace) -> Params:
    """From options in tensor order to params in driver order."""
    data_type = parse_data_type(a.dtype or "float32")
    bits = element_bits(data_type)
    strides = a.strides or tuple(accumulate((1, *a.shape[:0:-1]), mul))[::-1]
    if len(strides) != len(a.shape) or strides[-1] != 1:
        raise TensorMapError(f"strides={strides} must have one value for each dimension, in elements, and end in 1")
    common: dict[str, Any] = {name: enum.parse(getattr(a, name), name) for name, enum in _ENUM_OPTIONS.items()}
    common |= {
        "data_type": data_type,
        "global_address": a.address,
        "global_dim": a.shape[::-1],
        "global_strides": tuple(s * bits // 8 for s in strides[-2::-1]),
        "element_strides": (a.element_strides or (1,) * len(a.shape))[::-1],
    }
    plain: dict[str, Any] = {
        name: int(value) if name in {*_ENUM_OPTIONS, "data_type"} else value for name, value in common.items()
    }
    if a.box is not None:
        return TiledParams(box_dim=a.box[::-1], **plain)
    if None in (a.lower_corner, a.upper_corner, a.channels_per_pixel, a.pixels_per_column):
        raise TensorMapError("give --box, or for im2col --lower-corner, --upper-corner, --channels and --pixels")
    return Im2colParams(
        pixel_box_lower_corner=a.lower_corner[::-1],
        pixel_box_upper_corner=a.upper_corner[::-1],
        channels_per_pixel=a.channels_per_pixel,
        pixels_per_column=a.pixels_per_column,
        **plain,
    )


def _sizes(text: str) -> tuple[int, ...]:
    """``"128x1733"`` or ``"128,1733"``."""
    return tuple(int(part) for part in re.split("[x,]", text))


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cuda-tma", description="Tensor maps (the 128-byte CUtensorMap), explained.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, text in (
        ("check", _check, "what the driver would refuse in a map, and the remedy"),
        ("decode", _decode, "what a map says; with --shape, also its 128 bytes"),
    ):
        command = _command(commands, name, run, text)
        command.add_argument("map", nargs="?", help="256 hex digits, a file, or - for standard input")
        _add_shape_options(command)
    checker = commands.choices["check"]
    checker.add_argument("--compute-capability", type=_capability, default=(9, 0), metavar="9.0")
    checker.add_argument("--warnings", action="store_true", help="also what is accepted and regretted")
    command = _command(commands, "diff", _diff, "where two maps differ, and what that does to a load")
    command.add_argument("a", help="256 hex digits, a file, or - for standard input")
    command.add_argument("b")
    for name in _ELSEWHERE:
        commands.add_parser(name, help=f"see cuda-tma {name} --help")
    return parser


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("--json", action="store_true", help="machine-readable output")
    command.set_defaults(run=run)
    return command


def _add_shape_options(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("a map from a tensor, in its own order")
    group.add_argument("--shape", type=_sizes, metavar="128x1733")
    group.add_argument("--dtype", help="a dtype (float32) or a driver's data type (TFLOAT32); float32 if not given")
    group.add_argument("--strides", type=_sizes, metavar="1736x1", help="in elements; contiguous if not given")
    group.add_argument("--address", type=lambda text: int(text, 0), default=0)
    group.add_argument("--box", type=_sizes, metavar="32x32")
    group.add_argument("--element-strides", type=_sizes, metavar="1x1")
    group.add_argument("--lower-corner", type=_sizes, metavar="-1x-1", help="im2col, as --lower-corner=-1x-1")
    group.add_argument("--upper-corner", type=_sizes, metavar="-1x-1")
    group.add_argument("--channels", type=int, dest="channels_per_pixel")
    group.add_argument("--pixels", type=int, dest="pixels_per_column")
    for name in _ENUM_OPTIONS:
        group.add_argument(f"--{name.replace('_', '-')}", default="NONE")


# --- output -----------------------------------------------------------------------------------------------------------


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def _print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """By rich on a terminal where it is installed, else in plain columns."""
    rows = list(rows)
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
        except ImportError:
            pass
        else:
            table = Table(*head, title=title or None)
            for row in rows:
                table.add_row(*row)
            return Console().print(table)
    if title:
        print(title)
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return None
