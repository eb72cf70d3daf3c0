"""Runs of one launch under several legal schedules; an error may appear under only some of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, count, islice, zip_longest
from typing import Any

import numpy as np

from .._config import Config
from .._findings import Finding
from .._machine.progress import Progress
from .._memory.global_memory import GlobalMemory
from .._memory.scratch_memory import ScratchMemory
from .._report import Report
from .processes import cores, results_of

__all__ = ["MOST_SCHEDULES", "Schedule", "begin_early", "explored", "rows", "schedules_of", "until_error"]

MOST_SCHEDULES = 1000
# In a random schedule, a dependent grid begins before the end of the primary grid with a probability of one half.
_OVERLAPS = 0.5
# Schedules run in forked processes if one schedule takes at least 0.1 seconds, because a fork takes 0.01 seconds.
_WORTH_SECONDS = 0.1
# A schedule consists of the name of an order of asynchronous operations, and of the seed of the order.
Schedule = tuple[str, int]


def schedules_of(order: str, seed: int, number: int) -> list[Schedule]:
    """Return the schedules: the given schedule, then early, late, and random schedules with ascending seeds."""
    others = chain([("early", 0), ("late", 0)], (("random", each) for each in count(seed)))
    first = (order, seed if order == "random" else 0)
    return [first, *islice((each for each in others if each != first), number - 1)]


def rows(launches: Iterable[Sequence[Any]]) -> Iterator[list[Sequence[Any]]]:
    """Yield groups of launches; each launch of a group may begin before the end of the preceding launch."""
    together: list[Sequence[Any]] = []
    for each in launches:
        if together and not Config.of(each[0]).programmatic_stream_serialization:
            yield together
            together = []
        together.append(each)
    if together:
        yield together


def begin_early(number: int, schedule: Schedule) -> list[bool]:
    """Return, for each of `number` launches in sequence, whether it begins before the end of the preceding launch."""
    order, seed = schedule
    chances = np.random.default_rng(seed).random(number - 1)
    return [False, *(order == "late" or (order == "random" and bool(chance < _OVERLAPS)) for chance in chances)]


def explored(
    run: Callable[[Schedule, GlobalMemory], tuple[Report, ...]], memory: GlobalMemory, schedules: list[Schedule]
) -> tuple[Report, ...]:
    """Run each schedule on the same initial memory. Only the first schedule changes the memory.

    Parameters
    ----------
    run : callable
        A function that runs launches under a schedule on a memory, and returns their reports up to the first report
        with an error.
    """
    if len(schedules) == 1:
        return tuple(replace(report, findings=_merged([report.findings])) for report in run(schedules[0], memory))
    started = time.monotonic()
    with memory.keeping_initial_bytes() as initial:
        found = [run(schedules[0], memory)]
    processes = _processes(len(schedules) - 1, time.monotonic() - started)

    def again(schedule: Schedule) -> tuple[Report, ...]:
        return run(schedule, ScratchMemory(memory, initial))

    if not any(report.unfinished for report in found[0]):
        found += _up_to_unfinished(results_of(again, schedules[1:], processes), len(schedules))
    merged = (_together(reports, schedules[: len(found)]) for reports in zip_longest(*found))
    return tuple(until_error(merged))


def _processes(schedules: int, seconds: float) -> int:
    """Return the number of processes for schedules of `seconds` seconds each; 0 means this process only."""
    most = cores()
    if most == 1 or seconds < _WORTH_SECONDS:
        return 0
    # Each schedule has its own process, because the system distributes a few processes evenly over the cores.
    return schedules if schedules <= 2 * most else most


def _up_to_unfinished(
    reports: Generator[tuple[Report, ...], None, None], schedules: int
) -> Iterator[tuple[Report, ...]]:
    """Yield the reports of schedules up to the first report that the time limit ended, and show the progress."""
    progress = Progress()
    try:
        for number in range(1, schedules):
            if progress.is_due:
                progress.show(f"simulated: {number} of {schedules} schedules")
            each = next(reports)
            yield each
            if any(report.unfinished for report in each):
                return
    finally:
        progress.clear()
        reports.close()


def until_error(reports: Iterable[Report]) -> Iterator[Report]:
    """Yield reports up to the first report with an error."""
    for report in reports:
        yield report
        if report.errors or report.unfinished:
            return


def _together(reports: tuple[Report | None, ...], schedules: list[Schedule]) -> Report:
    """Merge the reports of one launch under several schedules."""
    given = [report for report in reports if report is not None]
    return replace(
        given[0],
        findings=_merged([report.findings for report in given]),
        thread_instructions=sum(report.thread_instructions for report in given),
        schedules=tuple(schedules),
        unfinished=next((report.unfinished for report in given if report.unfinished), ""),
    )


def _merged(found: list[tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """Return the first finding of each cause; an error replaces advice with the same cause.

    An early load from tensor memory may precede the first write under some schedules, and then reads unwritten columns.
    The result contains only the race, without advice about the unwritten columns.
    """
    known: dict[object, Finding] = {}
    for finding in chain.from_iterable(found):
        held = known.setdefault(_cause(finding), finding)
        if held.severity == "advice" and finding.severity == "error":
            known[_cause(finding)] = finding
    named = [one for one in known.values() if (one.kind, one.severity) == ("tcgen05-order", "error")]
    unordered = frozenset[object]().union(*map(_statements, named))
    return tuple(one for one in known.values() if not (_is_unwritten(one) and _statements(one) & unordered))


def _is_unwritten(finding: Finding) -> bool:
    return (finding.kind, finding.severity) == ("tensor-memory", "advice")


def _cause(finding: Finding) -> object:
    return finding.kind, _statements(finding)


def _statements(finding: Finding) -> frozenset[object]:
    """Return the statements of a finding, or their PTX lines if the PTX has no source places."""
    here = finding.source or finding.ptx_line
    other = finding.other or finding.other_ptx_line
    return frozenset({here, other} if other else {here})
