"""The files that ``cuda-tma sanitize`` and ``pytest --cuda-tma`` write."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write
from . import sarif
from .document import document
from .exit_status import Misuse
from .generated import kept_beside
from .judgement import STANDARD_OUTPUT
from .outcome import Outcome
from .page import page
from .record import record
from .sources import Sources

if TYPE_CHECKING:
    from .._intercept.launched import Launched

__all__ = ["check_outputs", "write_failure", "write_outputs"]


def check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse an output file that cannot be written, or that is an input of this command, before a long run."""
    for option in ("json", "sarif", "html", "record"):
        path = getattr(arguments, option)
        if not path or path == STANDARD_OUTPUT:
            continue
        if not Path(path).absolute().parent.is_dir():
            raise Misuse(f"--{option} {path} cannot be written: there is no such folder")
        for given in filter(None, (arguments.file, *arguments.suppressions, arguments.baseline)):
            if os.path.exists(path) and os.path.exists(given) and os.path.samefile(given, path):
                raise Misuse(f"--{option} {path} is {given}, an input of this command; name another file")


def write_outputs(
    arguments: argparse.Namespace, outcome: Outcome, status: int, sources_of: Callable[[Launched], Sources]
) -> None:
    """Write each output file that the options name.

    Raises
    ------
    Misuse
        If a file cannot be written.
    """
    files = [each for each in (arguments.html, arguments.json, arguments.sarif) if each not in (None, STANDARD_OUTPUT)]
    if files:
        outcome, generated = kept_beside(outcome, files[0])
        for path, text in generated.items():
            _write_beside(path, text)
    if arguments.json and arguments.json != STANDARD_OUTPUT:
        _write("--json", arguments.json, document(outcome, status, sources_of))
    if arguments.sarif:
        _write("--sarif", arguments.sarif, sarif.log(outcome, status, sources_of))
    if arguments.html:
        _write_text("--html", arguments.html, page(outcome, status, sources_of))
    if arguments.record:
        record(arguments, outcome, sources_of)


def _write_beside(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise Misuse(f"{path.parent} cannot be created: {error.strerror or error}") from None
    _write_text("the generated source", str(path), text)


def write_failure(arguments: argparse.Namespace, error: Misuse) -> None:
    """Write a report which states that the run has no result."""
    if arguments.sarif:
        _write("--sarif", arguments.sarif, sarif.failure(str(error), error.status))


def _write(option: str, path: str, values: dict[str, Any]) -> None:
    _write_text(option, path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")


def _write_text(option: str, path: str, text: str) -> None:
    try:
        write(path, text)
    except OSError as error:
        raise Misuse(f"{option} {path} cannot be written: {error.strerror or error}") from None
