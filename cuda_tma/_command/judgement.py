"""The settings that all forms of ``cuda-tma sanitize`` share, which are schedules, suppressions and exit statuses."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from .._given import shown
from .exit_status import Misuse

if TYPE_CHECKING:
    from ..simulate import Suppression

__all__ = [
    "EXIT_STATUS",
    "SCHEDULES",
    "STANDARD_OUTPUT",
    "TIME_LIMIT_SECONDS",
    "check_filters",
    "schedules_of",
    "seconds",
    "suppression",
    "suppressions_of",
]

STANDARD_OUTPUT = "-"
SCHEDULES = 4
SEED = 0
TIME_LIMIT_SECONDS = 60.0
EXIT_STATUS = (
    "exit status: 2 if the command line is wrong, or if a file cannot be read, compiled or written; 1 if there are "
    "errors; 3 if no launch could be judged (for example because of an unknown instruction), if a launch reached the "
    "time limit, or if a launch was skipped under --require-judged; otherwise the program's own status, or 0. Advice "
    "and suppressed findings do not count."
)


def seconds(text: str) -> float:
    """Return the number in the option ``--time-limit``."""
    from ..simulate import Device

    try:
        found = Device(time_limit=float(text)).time_limit
    except ValueError:
        found = None
    if found is None:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a time; write seconds as 60 or 0.5")
    return found


def suppression(text: str) -> Suppression:
    """Return the suppression in the option ``--suppress``."""
    from ..simulate import Suppression

    try:
        return Suppression.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def suppressions_of(arguments: argparse.Namespace) -> tuple[Suppression, ...]:
    """Return the suppressions on the command line and in the files that it names."""
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
    """Return the number of schedules on the command line, or the default number."""
    return SCHEDULES if arguments.schedules is None else arguments.schedules


def seed_of(arguments: argparse.Namespace) -> int:
    """Return the seed of random schedules on the command line, or the default seed."""
    return SEED if arguments.seed is None else arguments.seed


def check_filters(arguments: argparse.Namespace, subject: str) -> None:
    """Refuse a filter that selects no launch, and options that apply only to a single kernel."""
    unfit = [name for name in ("grid", "block", "cluster") if getattr(arguments, name) is not None]
    if unfit or arguments.arg:
        raise Misuse(f"--{(*unfit, 'arg')[0]} is only for a single kernel, not for {subject}; leave it out")
    if arguments.launch_skip < 0 or (arguments.launch_count is not None and arguments.launch_count < 1):
        raise Misuse("--launch-skip must be 0 or more, and --launch-count 1 or more")
    try:
        re.compile(arguments.kernel or "")
    except re.error as error:
        raise Misuse(f"--kernel {arguments.kernel} is not a regular expression: {error}") from None
