"""Measuring short calls beside each other: the median of many repeats, in an order that rotates.

A repeat times `calls` calls in a row, enough for the clock. In each round every case gets one repeat, and the round
begins with another case each time, so that a drift of the clock rate, or what one case leaves in the caches, does not
always favour the same case.
"""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WARM_UP_SECONDS = 0.05
REPEAT_SECONDS = 0.01
_UNIT_US = {"µs": 1, "ms": 1000}


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes
    ----------
    name : str
    run : callable
        Without arguments; what it returns is dropped.
    goal_us : float, optional
        The time that it should stay below, in microseconds.
    """

    name: str
    run: Callable[[], object]
    goal_us: float | None = None


@dataclass(frozen=True)
class Timing:
    """The times of one case: microseconds for one call, one value a repeat."""

    name: str
    samples_us: tuple[float, ...]
    goal_us: float | None = None

    @property
    def median_us(self) -> float:
        return statistics.median(self.samples_us)

    @property
    def quartiles_us(self) -> tuple[float, float]:
        first, _, third = statistics.quantiles(self.samples_us, n=4)
        return first, third


@dataclass(frozen=True)
class Table:
    """What a suite shows together: a heading, the timings, what the reader should know, and the unit that is shown."""

    title: str
    timings: Sequence[Timing]
    notes: Sequence[str] = field(default=())
    unit: str = "µs"


def calls_for(run: Callable[[], object], seconds: float = REPEAT_SECONDS) -> int:
    """How many calls take about `seconds`; they are made while finding out, and so warm up the case."""
    calls, begin, end = 0, time.perf_counter(), 0.0
    while end < begin + WARM_UP_SECONDS:
        run()
        calls += 1
        end = time.perf_counter()
    return max(1, round(calls * seconds / (end - begin)))


def one_repeat(run: Callable[[], object], calls: int) -> float:
    """Microseconds for one call, as the mean of `calls` calls."""
    numbers = range(calls)
    begin = time.perf_counter_ns()
    for _ in numbers:
        run()
    return (time.perf_counter_ns() - begin) / calls / 1000


def measure(cases: Sequence[Case], repeats: int = 15) -> list[Timing]:
    """Time all cases beside each other.

    Parameters
    ----------
    cases : sequence of Case
    repeats : int
        Rounds; each case gets one repeat in each.

    Returns
    -------
    list of Timing
        In the order of `cases`.
    """
    calls = [calls_for(case.run) for case in cases]
    samples: list[list[float]] = [[] for _ in cases]
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        for first in range(repeats):
            for i in rotated(len(cases), first):
                samples[i].append(one_repeat(cases[i].run, calls[i]))
            gc.collect()
    finally:
        if was_enabled:
            gc.enable()
    return [Timing(case.name, tuple(times), case.goal_us) for case, times in zip(cases, samples, strict=True)]


def rotated(count: int, first: int) -> list[int]:
    """The numbers below `count`, beginning with `first`.

    >>> rotated(4, 1), rotated(4, 6)
    ([1, 2, 3, 0], [2, 3, 0, 1])
    """
    return [(first + i) % count for i in range(count)]


def markdown(table: Table) -> str:
    """A table as Markdown; the column of goals is there if any timing has one."""
    goals, unit = any(t.goal_us is not None for t in table.timings), table.unit
    head = ["", f"median, {unit}", f"middle half, {unit}", *([f"goal, {unit}"] if goals else [])]
    rows = [head, ["---", *["---:"] * (len(head) - 1)]]
    for t in table.timings:
        median, low, high = (value / _UNIT_US[unit] for value in (t.median_us, *t.quartiles_us))
        goal = [f"< {t.goal_us / _UNIT_US[unit]:g}" if t.goal_us is not None else ""] if goals else []
        rows.append([t.name, three_digits(median), f"{three_digits(low)} to {three_digits(high)}", *goal])
    lines = [f"## {table.title}", "", *("| " + " | ".join(row) + " |" for row in rows)]
    return "\n".join([*lines, *(f"\n{note}" for note in table.notes)]) + "\n"


def three_digits(number: float) -> str:
    """
    >>> three_digits(1234.5), three_digits(0.125)
    ('1230', '0.125')
    """
    return f"{float(f'{number:.3g}'):.10g}"


def machine() -> str:
    """The processor, the operating system and the Python that measure, in one line."""
    cpu = Path("/proc/cpuinfo")
    names = (
        [line.split(":", 1)[1].strip() for line in cpu.read_text().splitlines() if line.startswith("model name")]
        if cpu.exists()
        else []
    )
    processor = f"{names[0]}, {len(names)} cores" if names else platform.processor() or platform.machine()
    return f"{processor}; {platform.system()} {platform.release()}; Python {platform.python_version()}"
