"""Settings that each form of ``cuda-tma sanitize`` takes: schedules, suppressions; its exit statuses in words."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .exit_status import Misuse

if TYPE_CHECKING:
    from ..simulate import Suppression

__all__ = ["EXIT_STATUS", "SCHEDULES", "STANDARD_OUTPUT", "schedules_of", "suppression", "suppressions_of"]

STANDARD_OUTPUT = "-"
SCHEDULES = 4
EXIT_STATUS = (
    "exit status: 2 if the command line is wrong or a file cannot be read, compiled or written; else 1 if there are "
    "errors; else 3 if no launch could be judged (an instruction that the simulator does not know, say), if a launch "
    "reached the time limit, or, with --require-judged, if any launch was skipped; else that of the program, or 0 "
    "(advice and suppressed findings do not count)"
)


def suppression(text: str) -> Suppression:
    """What ``--suppress`` says."""
    from ..simulate import Suppression

    try:
        return Suppression.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def suppressions_of(arguments: argparse.Namespace) -> tuple[Suppression, ...]:
    """The suppressions of the command line and of its files."""
    from ..simulate import read_suppressions

    given = list(arguments.suppress)
    for path in arguments.suppressions:
        try:
            given += read_suppressions(path)
        except OSError as error:
            raise Misuse(f"--suppressions {path} cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise Misuse(str(error)) from None
    return tuple(given)


def schedules_of(arguments: argparse.Namespace) -> int:
    """The number of schedules, if it was given, else the usual one."""
    return SCHEDULES if arguments.schedules is None else arguments.schedules
