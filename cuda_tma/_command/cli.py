"""The command ``cuda-tma``, which checks, decodes, compares, draws and suggests tensor maps without a GPU.

The exit status is 0 if the map is accepted, decoded or drawn, or if both maps or layouts are equal. The status is 1 if
a map is refused, if both maps or layouts differ, or if a kernel has errors. The status is 2 if the command line is
wrong, the bytes are not a tensor map, or a file cannot be read or written. The status is 3 if a launch could not be
checked because of an unsupported instruction, the time limit, or the memory of the process. The status is 130 after
Ctrl-C. The status is 141 if no process reads the output to its end, as with ``| head``.

With ``--json``, the standard output is always JSON. The document of a refused map is ``{"accepted": false, ...}`` with
an ``error`` or ``violations``. The document of a wrong command line is ``{"error": ...}``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from .. import TensorMapError, TensorMapFault, suggest
from .._files import write
from ..codec import decode, diff, encode, field_words
from ..enums import TensorMapDataType, TensorMapIm2ColWideMode
from ..params import Im2colParams, Im2colWideParams, Params
from ..rules import Violation, check
from . import demo, explain, layouts, run, sanitize
from .console import complain, escape_unprintable, print_json, print_table, silence
from .exit_status import ACCEPTED, INTERRUPTED, MISUSE, REFUSED, UNREAD, UNSUPPORTED, Misuse
from .info import facts
from .maps import given_map, read_bytes
from .parser import parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command of the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name (default: those of this process).

    Returns
    -------
    int
        The exit status.
    """
    escape_unprintable()
    try:
        status = _outcome(list(sys.argv[1:] if argv is None else argv))
        if sys.stdout is not None:
            # The command flushes its output, because the flush at Python's exit prints an error if the reader closed
            # the pipe.
            sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        silence(sys.stdout)
        return UNREAD
    except OSError as error:
        silence(sys.stdout)
        complain(f"the output cannot be written: {error.strerror or error}")
        return MISUSE


def _outcome(argv: list[str]) -> int:
    """Run the command, and print errors to standard error and, with ``--json``, also to standard output."""
    answer: dict[str, Any]
    argv, program = _divided(argv)
    try:
        arguments = parser(_COMMANDS).parse_args(argv)
        arguments.program = program
        return arguments.run(arguments)
    except SystemExit as end:  # The parser argparse raises SystemExit after it prints the help or the version.
        return int(end.code or ACCEPTED)
    except Misuse as error:
        status, answer = error.status, {"error": str(error)}
    except TensorMapError as error:
        violations = [_as_json(violation) for violation in error.violations]
        status, answer = REFUSED, {"accepted": False, "violations": violations, "error": str(error)}
    except MemoryError:
        status, answer = UNSUPPORTED, {"error": f"{_what(argv)} needs more memory than this process may have"}
    except TensorMapFault as fault:  # The command cannot draw the load, because the load has a fault.
        status, answer = REFUSED, {"error": str(fault)}
    if "--json" in argv:
        print_json(answer)
    complain(answer["error"])
    return status


def _what(argv: list[str]) -> str:
    return "this launch" if {"run", "sanitize"} & {*argv[:1]} else "this command"


def _divided(argv: list[str]) -> tuple[list[str], list[str] | None]:
    """Return the command's own arguments, and the program after ``--`` of ``sanitize``, or None."""
    if argv[:1] != ["sanitize"] or "--" not in argv:
        return argv, None
    at = argv.index("--")
    return argv[:at], argv[at + 1 :]


_PICTURES = ("tile", "banks", "box", "tiles")

# --- the commands ---


def _check(arguments: argparse.Namespace) -> int:
    params = given_map(arguments)
    dtype_name = _dtype_name(arguments, params)
    found = check(params, arguments.compute_capability, arguments.warnings, dtype_name=dtype_name)
    errors = sum(violation.severity == "error" for violation in found)
    others = diff(encode(params), encode(replace(params, unexplained=()))) if params.unexplained else ()
    if arguments.json:
        violations, unexplained = [_as_json(v) for v in found], [asdict(d) for d in others]
        print_json({"accepted": not errors, "violations": violations, "unexplained": unexplained})
    else:
        lines = [f"{violation.severity}: {violation.sentence}" for violation in found]
        lines += [f"warning: {d.field}: {d.a}, where the driver writes {d.b}: {d.meaning}" for d in others]
        for number, line in enumerate(lines, 1):
            print(f"{number}. {line}")
        print(_verdict(errors, bool(others)))
    return REFUSED if errors else ACCEPTED


def _verdict(errors: int, has_others: bool) -> str:
    if errors:
        return f"refused: {_broken(errors)}"
    if has_others:
        return "accepted, with a warning: the driver accepts the parameters, but would write other bytes"
    return "accepted: the driver accepts this map"


def _broken(errors: int) -> str:
    return f"{errors} rule{'s' * (errors > 1)} broken"


def _decode(arguments: argparse.Namespace) -> int:
    params = given_map(arguments)
    if arguments.map is None:
        _require_legal(params, arguments)
    raw = encode(params)
    if arguments.json:
        own = {"wide_mode": params.mode} if isinstance(params, Im2colWideParams) else {}
        print_json(asdict(params) | own | {"mode": type(params).__name__, "descriptor": raw.hex()})
        return ACCEPTED
    rows = [(name, words, ", ".join(map(str, offsets))) for name, words, offsets in field_words(params)]
    if isinstance(params, Im2colWideParams):
        rows.append(("mode", TensorMapIm2ColWideMode(params.mode).short_name, "none that is known"))
    rows += [("unexplained", f"word {word}, bits {mask:#010x}", str(4 * word)) for word, mask in params.unexplained]
    print_table(f"{type(params).__name__}, rank {params.rank}", ("field", "value", "bytes"), rows)
    if arguments.map is None:
        print(raw.hex())
    return ACCEPTED


def _diff(arguments: argparse.Namespace) -> int:
    if arguments.a == arguments.b == "-":
        raise Misuse(
            "both maps are to be read from standard input, which can be read only once; pass one of them as digits or "
            "as a file"
        )
    a, b = read_bytes(arguments.a), read_bytes(arguments.b)
    try:
        found = diff(a, b)
    except TensorMapError as error:
        complain(f"{error}. The numbers in its fields are compared as they are stored")
        found = diff(a, b, stored=True)
    if arguments.json:
        print_json([asdict(d) for d in found])
    elif found:
        rows = [(d.field, d.a, d.b, ", ".join(map(str, d.byte_offsets)), d.meaning) for d in found]
        print_table("", ("field", "a", "b", "bytes", "effect on a load"), rows, prose=True)
    else:
        print("equal")
    return REFUSED if found else ACCEPTED


def _suggest(arguments: argparse.Namespace) -> int:
    names = ("access", "smem_limit_bytes", "compute_capability")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    data_type = arguments.dtype if arguments.data_type is None else arguments.data_type
    found = suggest(arguments.shape, data_type, **given)
    if arguments.json:
        words = {name: getattr(found.options, name).short_name for name in ("data_type", "swizzle")}
        print_json({"box_dim": found.options.box_dim, **words, "loads": found.loads, "reasons": found.reasons})
    else:
        print(found)
    return ACCEPTED


def _plot(arguments: argparse.Namespace) -> int:
    if arguments.html is not None:
        return _explore(arguments)
    _check_plot(arguments)
    # If the file name had no suffix, matplotlib would add one and write to a different file.
    if not Path(arguments.output).suffix:
        raise Misuse(f"--output {arguments.output} has no suffix to select a format; end it with .png, .svg or .pdf")
    params = given_map(arguments)
    _require_legal(params, arguments)
    try:
        figure = _picture(arguments, params)
        figure.savefig(arguments.output, dpi=150)
    except ImportError as error:
        raise Misuse(str(error)) from None
    except (OSError, ValueError) as error:
        if isinstance(error, TensorMapError):
            raise
        raise Misuse(f"--output {arguments.output}: {error}") from None
    return _wrote(arguments.output, arguments.json)


def _wrote(path: str, as_json: bool) -> int:
    if as_json:
        print_json({"output": path})
    else:
        print(f"wrote {path}")
    return ACCEPTED


def _check_plot(arguments: argparse.Namespace) -> None:
    """Check the arguments that a picture needs; with --html, refuse these arguments."""
    if arguments.picture not in _PICTURES:
        given = "none" if arguments.picture is None else repr(arguments.picture)
        raise Misuse(f"argument {{{','.join(_PICTURES)}}}: invalid choice: {given} (see cuda-tma plot --help)")
    if arguments.output is None:
        raise Misuse("the following arguments are required: --output (see cuda-tma plot --help)")


def _explore(arguments: argparse.Namespace) -> int:
    """Write the page with the map of the arguments, if they contain a map."""
    from ..plot import explorer

    others = [name for name in ("output", "at", "access") if getattr(arguments, name) is not None]
    if others or arguments.picture in _PICTURES:
        extra = arguments.picture if arguments.picture in _PICTURES else f"--{others[0]}"
        raise Misuse(f"--html writes a page on which a reader selects these values; leave out {extra}")
    if Path(arguments.html).suffix != ".html":
        raise Misuse(f"--html {arguments.html} is not the name of a page; end the name in .html")
    arguments.map = arguments.map or arguments.picture
    params = given_map(arguments) if arguments.map or arguments.shape else None
    try:
        write(arguments.html, explorer(params))
    except OSError as error:
        raise Misuse(f"--html {arguments.html} cannot be written: {error.strerror or error}") from None
    return _wrote(arguments.html, arguments.json)


def _picture(arguments: argparse.Namespace, params: Params) -> Any:
    from .. import plot

    if arguments.picture == "banks":
        if arguments.at is not None:
            raise Misuse(
                "--at is the start of a load and is only for tile and box; leave it out, because the banks are the "
                "same for every start"
            )
        return plot.banks(params, arguments.access or "column")
    if arguments.access is not None:
        raise Misuse("--access applies only to banks; leave it out")
    coordinates = tuple(reversed(arguments.at or (0,) * params.rank))
    if len(coordinates) != params.rank:
        raise Misuse(
            f"--at has length {len(coordinates)}, but the map has rank {params.rank}; pass one coordinate for each "
            "dimension"
        )
    return getattr(plot, arguments.picture)(params, coordinates)


def _info(arguments: argparse.Namespace) -> int:
    found = facts()
    if arguments.json:
        print_json(found)
    else:
        print_table("", ("item", "this machine"), _rows_of(found))
    return ACCEPTED


def _rows_of(found: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [(name, version or "not installed") for name, version in found["versions"].items()]
    rows.append(("device header", found["include_path"]))
    driver = found["driver"]
    if "missing" in driver:
        rows.append(("driver", "none: everything works but making and launching maps"))
        rows.append(("reason", driver["missing"]))
    else:
        rows.append(("driver", f"for CUDA {driver['cuda_version']}"))
        rows += [(purpose, "yes" if there else "no") for purpose, there in driver["functions"].items()]
    for number, device in enumerate(found["devices"]):
        capability = "{}.{}".format(*device["compute_capability"])
        tma = "has TMA" if device["has_tma"] else "has no TMA, which came with 9.0"
        rows.append((f"device {number}", f"{device['name']}, compute capability {capability}: {tma}"))
    return rows


_COMMANDS = {
    "check": _check,
    "decode": _decode,
    "diff": _diff,
    "explain": explain.run,
    "suggest": _suggest,
    "plot": _plot,
    "layouts": layouts.run,
    "info": _info,
    "run": run.run,
    "sanitize": sanitize.run,
    "demo": demo.run,
}

# --- verdicts ---


def _as_json(violation: Violation) -> dict[str, Any]:
    return asdict(violation) | {"message": violation.message}


def _dtype_name(arguments: argparse.Namespace, params: Params) -> str:
    """Return the name of the element type as the user wrote it."""
    return arguments.dtype or ("float32" if arguments.map is None else TensorMapDataType(params.data_type).short_name)


def _require_legal(params: Params, arguments: argparse.Namespace) -> None:
    """Refuse a map without a picture, because the driver refuses the map, or its bytes decode to another map."""
    dtype_name = _dtype_name(arguments, params)
    if violations := check(params, arguments.compute_capability, dtype_name=dtype_name):
        shape = tuple(reversed(params.global_dim))
        lines = [f"{number}. {violation.sentence}" for number, violation in enumerate(violations, 1)]
        head = f"no tensor map for a {dtype_name} tensor of shape {shape}; {_broken(len(violations))}:"
        raise TensorMapError("\n".join([head, *lines]), violations)
    if arguments.map is None and not _is_said_by(encode(params), params):
        raise TensorMapError(
            "the 128 bytes of this map are unknown, because the corners do not fit in the fields of a plain im2col map"
        )


def _is_said_by(raw: bytes, params: Params) -> bool:
    """Return whether the bytes decode to the parameters; for a wide map, compare only the corners."""
    found = decode(raw)
    if not isinstance(params, Im2colWideParams):
        return found == params
    # The 128 bytes do not distinguish an im2col wide map, so the decoder returns Im2colParams for it.
    assert isinstance(found, Im2colParams)
    corners = found.pixel_box_lower_corner[0], found.pixel_box_upper_corner[0]
    return corners == (params.pixel_box_lower_corner_width, params.pixel_box_upper_corner_width)
