"""The command ``cuda-tma sanitize LAUNCHES``, which checks the launches in a file of ``--record`` again."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .exit_status import Misuse
from .judgement import SCHEDULES, SEED, check_filters, suppressions_of
from .outcome import Outcome
from .program import show_launches, sources_of
from .sources import Sources

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from .._intercept.launches import RecordedLaunch, Recording

__all__ = ["judge_recording"]


def judge_recording(
    arguments: argparse.Namespace, stack: ExitStack
) -> tuple[Outcome, Callable[[Launched], Sources], Callable[[Outcome], None]]:
    """Read the file of launches, and run each launch again."""
    from .._intercept.launches import LaunchesError, read_recording

    check_filters(arguments, "recorded launches")
    begun = time.perf_counter()
    try:
        recording = read_recording(arguments.file)
        settings = _settings(arguments, recording)
        seed = recording.settings.get("seed", SEED) if arguments.seed is None else arguments.seed
        launches = tuple(_judged(arguments, recording, seed, settings))
    except OSError as error:
        raise Misuse(f"{arguments.file} cannot be read: {error.strerror or error}") from None
    except LaunchesError as error:
        raise Misuse(str(error)) from None
    seconds = time.perf_counter() - begun
    outcome = Outcome(launches, suppressions=settings["suppressions"], seconds=seconds)
    return outcome, sources_of, show_launches


def _settings(arguments: argparse.Namespace, recording: Recording) -> dict[str, Any]:
    """Return the settings on the command line, or otherwise the settings in the file."""
    from ..simulate import Device

    recorded = recording.settings
    schedules = recorded.get("schedules", SCHEDULES) if arguments.schedules is None else arguments.schedules
    strict = arguments.strict or recorded.get("strict") is True
    settings = {"schedules": schedules, "strict": strict, "suppressions": suppressions_of(arguments)}
    settings["time_limit"] = arguments.time_limit
    try:
        Device(**settings)
    except (TypeError, ValueError) as error:
        raise Misuse(str(error)) from None
    return settings


def _judged(
    arguments: argparse.Namespace, recording: Recording, seed: Any, settings: dict[str, Any]
) -> Iterator[Launched]:
    pattern, matched = re.compile(arguments.kernel or ""), 0
    for number, launch in enumerate(recording):
        before, is_match = matched - arguments.launch_skip, pattern.search(launch.kernel) is not None
        matched += is_match
        count = arguments.launch_count
        is_judged = is_match and before >= 0 and (count is None or before < count)
        yield _judged_launch(number, launch, is_judged, arguments.html is not None, seed, settings)


def _judged_launch(
    number: int, launch: RecordedLaunch, is_judged: bool, keeps: bool, seed: Any, settings: dict[str, Any]
) -> Launched:
    from .._intercept.launched import Launched, with_report
    from .._intercept.launches import compared_replay
    from .._intercept.lines import Lines
    from ..simulate import ParseError, TimeLimitReached, UnsupportedInstruction

    place, begun = launch.launched_at, time.perf_counter()
    known = Launched(number, launch.kernel, launch.runtime, launch.config, is_judged=is_judged, launched_at=place)
    if not is_judged:
        return known
    try:
        report, comparison = compared_replay(launch, seed=seed, **{**settings, "suppressions": ()})
    except (ParseError, TimeLimitReached, UnsupportedInstruction, TypeError, ValueError) as error:
        return known.with_skipped(f"{type(error).__name__}: {error}")
    lines = Lines(launch.sources, launch.generated, launch.embedded)
    seconds, suppressions = time.perf_counter() - begun, settings["suppressions"]
    ended = with_report(known, report, seconds, launch.ptx, lines, suppressions)
    ended = replace(ended, hardware=str(comparison) if comparison is not None else "")
    return replace(ended, recorded=lambda: launch) if keeps and report.findings else ended
