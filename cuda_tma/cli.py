"""``cuda-tma``: check, decode, compare and draw tensor maps on a machine without a GPU.

Exit status: 0 if the map is accepted, was decoded or drawn, or both are equal; 1 if it is refused, or they differ; 2 if
the input is no tensor map or the command line is wrong; 141 if nobody reads the output to its end, as of ``| head``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ._arguments import tiled_params
from ._dlpack import describe_tensor
from .codec import decode, encode
from .convolution import Convolution
from .data_type import parse_data_type
from .diff import diff, words_of
from .enums import PARAMETER_ENUMS
from .errors import TensorMapError
from .explain import sentence
from .fields import fields
from .info import facts
from .options import Options, TensorMapIm2colOptions, TensorMapOptions
from .params import Params
from .rules import check

__all__ = ["main"]

# commands that live in their own modules: each has main(argv)
_ELSEWHERE = {"demo": "cuda_tma.demo"}
_CONVOLUTION = {"kernel_size": None, "padding": "0", "stride": "1", "dilation": "1"}  # and their defaults
_UNREAD = 128 + 13  # what a shell reports of a program that SIGPIPE ended
_ENUM_OPTIONS = ("interleave", "swizzle", "l2_promotion", "oob_fill")


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
        status = arguments.run(arguments)
        sys.stdout.flush()  # here, as Python's own flush at the end complains if nobody reads any more
        return status
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in the buffer
        return _UNREAD
    except (ValueError, TypeError, OSError, ImportError) as error:
        print(f"cuda-tma: {error}", file=sys.stderr)
        return 2


def _check(arguments: argparse.Namespace) -> int:
    params = _params(arguments)
    found = check(params, arguments.compute_capability, warnings=arguments.warnings)
    errors = [v for v in found if v.severity == "error"]
    if arguments.json:
        _print_json({"accepted": not errors, "violations": [asdict(v) | {"message": v.message} for v in found]})
    else:
        name = arguments.dtype if arguments.map is None else parse_data_type(params.data_type).short_name
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


def _plot(arguments: argparse.Namespace) -> int:
    from . import plot  # the only command that needs matplotlib

    params = _params(arguments)
    coordinates = tuple(reversed(arguments.at or (0,) * params.rank))
    if len(coordinates) != params.rank:
        raise TensorMapError(f"--at has {len(coordinates)} values and the map has rank {params.rank}")
    try:
        if arguments.picture == "banks":
            figure = plot.banks(params, arguments.access)
        else:
            figure = getattr(plot, arguments.picture)(params, coordinates)
    except ImportError as error:
        raise ImportError(f"pictures need matplotlib ({error}): pip install matplotlib") from None
    figure.savefig(arguments.output, dpi=150)
    print(f"wrote {arguments.output}")
    return 0


def _info(arguments: argparse.Namespace) -> int:
    found = facts()
    if arguments.json:
        _print_json(found)
        return 0
    rows = [(name, version or "not installed") for name, version in found["versions"].items()]
    rows.append(("device header", found["include_path"]))
    driver = found["driver"]
    if "missing" in driver:
        rows.append(("driver", "none: all but making and launching maps works"))
        rows.append(("why none", driver["missing"]))
    else:
        rows.append(("driver", f"for CUDA {driver['cuda_version']}"))
        rows += [(purpose, "yes" if there else "no") for purpose, there in driver["functions"].items()]
    for number, device in enumerate(found["devices"]):
        capability = "{}.{}".format(*device["compute_capability"])
        tma = "has TMA" if device["has_tma"] else "has no TMA, which came with 9.0"
        rows.append((f"device {number}", f"{device['name']}, compute capability {capability}: {tma}"))
    _print_table("", ("what", "here"), rows)
    return 0


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
    """From options in tensor order to params in driver order, as the package itself goes."""
    return tiled_params(describe_tensor(a.shape, a.strides, a.dtype, a.address), _options(a))


def _options(a: argparse.Namespace) -> Options:
    """The options of the mode whose arguments are given."""
    enums = {name: getattr(a, name) for name in (*_ENUM_OPTIONS, "allocation_class")}
    if a.box is not None:
        return TensorMapOptions(a.box, a.element_strides, a.data_type, **enums)
    corners: Any = a if a.kernel_size is None else _convolution(a)
    needed = (corners.pixel_box_lower_corner, corners.pixel_box_upper_corner, a.channels_per_pixel, a.pixels_per_column)
    if None in needed:
        raise TensorMapError(
            "give --box, or for im2col --channels and --pixels, and --kernel-size or --lower-corner and --upper-corner"
        )
    return TensorMapIm2colOptions(*needed, corners.element_strides, a.data_type, **enums)


def _convolution(a: argparse.Namespace) -> Convolution:
    return Convolution(**{name: _for_each(getattr(a, name), len(a.shape) - 2) for name in _CONVOLUTION})


def _for_each(sizes: tuple[int, ...], dimensions: int) -> tuple[int, ...]:
    """One for each spatial dimension; one for all if there is but one."""
    return sizes * dimensions if len(sizes) == 1 else sizes


def _sizes(text: str) -> tuple[int, ...]:
    """``"128x1733"`` or ``"128,1733"``."""
    return tuple(int(part) for part in re.split("[x,]", text))


def _capability(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(".")
    return int(major), int(minor or 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="cuda-tma", description="Tensor maps (the 128-byte CUtensorMap), explained.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    checker = _command(commands, "check", _check, "what the driver would refuse in a map, and the remedy")
    _add_map(checker)
    checker.add_argument("--compute-capability", type=_capability, default=(9, 0), metavar="9.0")
    checker.add_argument("--warnings", action="store_true", help="also what is accepted and regretted")
    _add_map(_command(commands, "decode", _decode, "what a map says; with --shape, also its 128 bytes"))
    command = _command(commands, "diff", _diff, "where two maps differ, and what that does to a load")
    command.add_argument("a", help="256 hex digits, a file, or - for standard input")
    command.add_argument("b")
    _command(commands, "info", _info, "versions, driver and devices of this machine")
    _add_plot(commands)
    for name in _ELSEWHERE:
        commands.add_parser(name, help=f"see cuda-tma {name} --help")
    return parser


def _add_plot(commands: Any) -> None:
    text = "draw a tile in shared memory, its banks, or its box in the tensor"
    command = commands.add_parser("plot", help=text, description=text)
    command.set_defaults(run=_plot)
    command.add_argument("picture", choices=("tile", "banks", "box"))
    _add_map(command)
    command.add_argument(
        "--at", type=_sizes, metavar="0x0", help="where the load starts, in tensor order; as --at=-1x0"
    )
    command.add_argument("--access", choices=("row", "column", "ldmatrix"), default="column", help="of banks")
    command.add_argument("--output", type=Path, required=True, metavar="FILE", help="PNG, SVG or PDF, by its name")


def _command(commands: Any, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument("--json", action="store_true", help="machine-readable output")
    command.set_defaults(run=run)
    return command


def _add_map(command: argparse.ArgumentParser) -> None:
    """The two ways to give a map: its bytes, or the tensor and the options that make it."""
    command.add_argument("map", nargs="?", help="256 hex digits, a file, or - for standard input")
    group = command.add_argument_group("a map from a tensor, in its own order")
    group.add_argument("--shape", type=_sizes, metavar="128x1733")
    group.add_argument("--dtype", default="float32", help="of the tensor; float32 if not given")
    group.add_argument("--data-type", metavar="TFLOAT32", help="how the engine reads it; follows from the dtype")
    group.add_argument("--strides", type=_sizes, metavar="1736x1", help="in elements; contiguous if not given")
    group.add_argument("--address", type=lambda text: int(text, 0), default=0)
    group.add_argument("--box", type=_sizes, metavar="32x32")
    group.add_argument("--element-strides", type=_sizes, metavar="1x1")
    group.add_argument(
        "--lower-corner",
        type=_sizes,
        dest="pixel_box_lower_corner",
        metavar="-1x-1",
        help="im2col, as --lower-corner=-1x-1",
    )
    group.add_argument("--upper-corner", type=_sizes, dest="pixel_box_upper_corner", metavar="-1x-1")
    group.add_argument("--kernel-size", type=_sizes, metavar="3x3", help="im2col of a convolution, for the corners")
    for name, default in list(_CONVOLUTION.items())[1:]:
        group.add_argument(f"--{name}", type=_sizes, default=default, metavar="1x1", help=f"its {name}, or {default}")
    group.add_argument("--channels", type=int, dest="channels_per_pixel")
    group.add_argument("--pixels", type=int, dest="pixels_per_column")
    for name in _ENUM_OPTIONS:
        default, *others = (member.short_name for member in PARAMETER_ENUMS[name])
        _add_choice(group, name, default, others)
    _add_choice(group, "allocation_class", "SMALL", ["LARGE"])


def _add_choice(group: Any, name: str, default: str, others: Iterable[str]) -> None:
    option = f"--{name.replace('_', '-')}"
    group.add_argument(option, default=default, metavar=default, help=f"or {', '.join(others)}")


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
