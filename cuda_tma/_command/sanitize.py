"""The command ``cuda-tma sanitize``, which finds errors in a kernel, or in every launch of a program.

The output of the command is text for users, JSON for programs, or SARIF for code scanning.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from .baseline import read_baseline, without_known
from .console import print_json
from .document import document
from .exit_status import Misuse
from .judgement import STANDARD_OUTPUT
from .outcome import Outcome, exit_status
from .reports import check_outputs, write_failure, write_outputs
from .sources import Sources

if TYPE_CHECKING:
    from .._intercept.launched import Launched

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Check a program, recorded launches, or one kernel."""
    if arguments.file is None and arguments.program is None and arguments.json:
        # If --json precedes the kernel file, argparse treats the file as the value of --json.
        arguments.file, arguments.json = arguments.json, STANDARD_OUTPUT
    if arguments.program is not None:
        from .program import judge_program as judge
    elif arguments.file in (None, STANDARD_OUTPUT):
        raise Misuse("name a FILE, or a program after -- (see cuda-tma sanitize --help)")
    elif _is_recording(arguments.file):
        from .recording import judge_recording as judge
    else:
        from .one_kernel import judge_kernel as judge
    check_outputs(arguments)
    known = read_baseline(arguments.baseline) if arguments.baseline else frozenset()
    with ExitStack() as stack:
        try:
            outcome, sources_of, show = judge(arguments, stack)
        except Misuse as error:
            write_failure(arguments, error)
            raise
        if known:
            outcome = without_known(outcome, known, sources_of)
        return _deliver(arguments, outcome, sources_of, show)


def _is_recording(path: str) -> bool:
    from .._intercept.launches import is_recording

    try:
        return is_recording(path)
    except (OSError, ValueError):
        return False  # The command reads an unrecognized file as C++ or PTX, so that the parser reports the error.


def _deliver(
    arguments: argparse.Namespace,
    outcome: Outcome,
    sources_of: Callable[[Launched], Sources],
    show: Callable[[Outcome], None],
) -> int:
    """Print the outcome, write the output files (which may fail), and return the exit status."""
    status = exit_status(outcome, arguments.require_judged)
    if arguments.json == STANDARD_OUTPUT:
        print_json(document(outcome, status, sources_of))
    else:
        show(outcome)
    write_outputs(arguments, outcome, status, sources_of)
    return status
