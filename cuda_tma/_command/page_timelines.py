"""The timelines of a page, which are drawn from a second run, with a trace, of each launch with findings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from .judgement import TIME_LIMIT_SECONDS
from .outcome import Cause

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from ..simulate import Finding, Timeline

__all__ = ["timelines"]

_MOST_LAUNCHES = 12
_WIDTH = 1100


def timelines(causes: Sequence[Cause]) -> dict[int, str]:
    """Return the pictures of timelines; the key of each picture is the number of a cause."""
    launches: dict[int, list[int]] = {}
    for number, cause in enumerate(causes):
        if cause.launch.recorded is not None:
            launches.setdefault(id(cause.launch), []).append(number)
    drawn: dict[int, str] = {}
    for numbers in [*launches.values()][:_MOST_LAUNCHES]:
        drawn.update(_of_launch(causes[numbers[0]].launch, {number: causes[number] for number in numbers}))
    return drawn


def _of_launch(launch: Launched, causes: dict[int, Cause]) -> Iterator[tuple[int, str]]:
    """Run a launch under one schedule after another, until each finding of the launch has occurred."""
    left = dict(causes)
    for findings, timeline in _traced(launch):
        seen = {_key(finding): finding for finding in findings}
        for number, cause in [*left.items()]:
            if (found := seen.get(_key(cause.finding))) is not None:
                del left[number]
                yield number, _picture(timeline, found)
        if not left:
            return


def _key(finding: Finding) -> object:
    """Return a key that is equal for the same finding in two runs, even if the files have different names."""
    return finding.kind, finding.severity, finding.ptx_line, finding.other_ptx_line


def _traced(launch: Launched) -> Iterator[tuple[Sequence[Finding], Timeline]]:
    from .._intercept.launches import LaunchesError, replayed
    from ..simulate import ParseError, TimeLimitReached, UnsupportedInstruction

    report = launch.report
    if report is None or launch.recorded is None:
        return
    try:
        recorded = launch.recorded()
        for order, seed in report.schedules or (("early", 0),):
            traced = replayed(recorded, order=order, seed=seed, trace=True, time_limit=TIME_LIMIT_SECONDS)
            if traced.traced is not None:
                yield traced.findings, traced.traced
    except (LaunchesError, OSError, ParseError, TimeLimitReached, UnsupportedInstruction):
        return  # If the simulator cannot run a launch, the page contains no timeline of the launch.


def _picture(timeline: Timeline, finding: Finding) -> str:
    marked = frozenset(_sources(finding))
    part = timeline.around(marked, finding.blocks[0] if finding.blocks else None)
    return part.svg(blocks=1, width=_WIDTH, marked=marked, has_styles=False)


def _sources(finding: Finding) -> Iterator[str]:
    """Yield the statements of a finding in the format in which the spans of a timeline contain statements."""
    for places in (finding.source, finding.other, *(places for _, places in finding.related)):
        yield from (f"{PurePath(place.file).name}:{place.line}" for place in places)
