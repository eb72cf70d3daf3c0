"""``cuda-tma sanitize``: errors in a kernel, or in every launch of a program, for people, for programs (JSON), and for
code scanning (SARIF)."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write
from . import sarif
from .console import print_json
from .document import document
from .exit_status import Misuse
from .judgement import STANDARD_OUTPUT
from .outcome import Outcome, exit_status
from .record import record
from .sources import Sources

if TYPE_CHECKING:
    from .._intercept.launched import Launched

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Judge a program, recorded launches, or one kernel."""
    if arguments.file is None and arguments.program is None and arguments.json:
        arguments.file, arguments.json = arguments.json, STANDARD_OUTPUT  # --json FILE: the FILE that is judged
    if arguments.program is not None:
        from .program import judge_program as judge
    elif arguments.file in (None, STANDARD_OUTPUT):
        raise Misuse("name a FILE, or a program behind -- (see cuda-tma sanitize --help)")
    elif _is_recording(arguments.file):
        from .recording import judge_recording as judge
    else:
        from .one_kernel import judge_kernel as judge
    _check_outputs(arguments)
    with ExitStack() as stack:
        try:
            outcome, sources_of, show = judge(arguments, stack)
        except Misuse as error:
            if arguments.sarif:
                _write("--sarif", arguments.sarif, sarif.failure(str(error), error.status))
            raise
        return _deliver(arguments, outcome, sources_of, show)


def _is_recording(path: str) -> bool:
    from ..simulate.launches import is_recording

    try:
        return is_recording(path)
    except (OSError, ValueError):
        return False  # the file is read as C++ or PTX, with an error in those words


def _deliver(
    arguments: argparse.Namespace,
    outcome: Outcome,
    sources_of: Callable[[Launched], Sources],
    show: Callable[[Outcome], None],
) -> int:
    """Print, and then write, which may fail; return the exit status."""
    status = exit_status(outcome, arguments.require_judged)
    if arguments.json == STANDARD_OUTPUT:
        print_json(document(outcome, status))
    else:
        show(outcome)
    if arguments.json and arguments.json != STANDARD_OUTPUT:
        _write("--json", arguments.json, document(outcome, status))
    if arguments.sarif:
        _write("--sarif", arguments.sarif, sarif.log(outcome, status, sources_of))
    if arguments.record:
        record(arguments, outcome, sources_of)
    return status


def _check_outputs(arguments: argparse.Namespace) -> None:
    """Refuse a file that cannot be written, before a long run, and one that this command reads, links resolved."""
    for option in ("json", "sarif", "record"):
        path = getattr(arguments, option)
        if not path or path == STANDARD_OUTPUT:
            continue
        if not Path(path).absolute().parent.is_dir():
            raise Misuse(f"--{option} {path} cannot be written: there is no such folder")
        for given in filter(None, (arguments.file, *arguments.suppressions)):
            if os.path.exists(path) and os.path.exists(given) and os.path.samefile(given, path):
                raise Misuse(f"--{option} {path} is {given}, which this command reads; name another file")


def _write(option: str, path: str, values: dict[str, Any]) -> None:
    try:
        write(path, json.dumps(values, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise Misuse(f"{option} {path} cannot be written: {error.strerror or error}") from None
