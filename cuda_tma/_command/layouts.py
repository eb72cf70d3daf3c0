"""The command ``cuda-tma layouts``, which shows the places of each element of a matrix in two layouts."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .. import TensorMapError
from .._files import write
from .console import print_json, print_table
from .exit_status import ACCEPTED, REFUSED, Misuse

if TYPE_CHECKING:
    from ..layouts import Comparison

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Compare two layouts, and draw them if requested; without layouts, list the names of all layouts."""
    from ..layouts import NAMES

    given = [name for name in (arguments.written, arguments.read) if name is not None]
    if not given:
        return _listed(dict(NAMES), arguments.json)
    if len(given) == 1:
        raise Misuse(
            "pass two layouts: first the layout that one instruction writes, then the layout that the next instruction "
            "reads"
        )
    written, read = given
    found = _compared(written, read, arguments.loaded)
    if arguments.output:
        _draw(found, Path(arguments.output))
    if arguments.json:
        print_json(_as_json(found))
    else:
        print(found)
    return ACCEPTED if found.equal else REFUSED


def _listed(names: dict[str, str], as_json: bool) -> int:
    if as_json:
        print_json(names)
    else:
        print_table("", ("layout", "description"), [*names.items()])
    return ACCEPTED


def _compared(written: str, read: str, loaded: str | None) -> Comparison:
    from ..layouts import compare

    try:
        return compare(written, read, loaded=loaded)
    except (ImportError, TensorMapError, ValueError) as error:
        raise Misuse(str(error)) from None


def _draw(found: Comparison, path: Path) -> None:
    if path.suffix != ".svg":
        raise Misuse(f"--output {path} is not the name of an SVG file; end the name in .svg")
    try:
        write(path, found.svg())
    except OSError as error:
        raise Misuse(f"--output {path} cannot be written: {error.strerror or error}") from None


def _as_json(found: Comparison) -> dict[str, object]:
    return {
        "written": found.written.name,
        "read": found.read.name,
        "equal": found.equal,
        "words": str(found),
        "fields": {"written": found.written.fields, "read": found.read.fields},
        "elements": [*found.elements()],
    }
