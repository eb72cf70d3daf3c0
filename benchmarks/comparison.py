"""Comparisons of the times of short operations: those of this package, those of other packages, and a C baseline (the
floor), each with a goal.

A :class:`Work` prepares a timer, which is a function from a number of calls to the nanoseconds of one call. If an
operation cannot be prepared or run, for example because a library is not installed, its row contains the reason. The
other operations continue.

:func:`compare` runs each operation once per round, and rotates the order of the operations from round to round. If a
goal permits only a few percent, :func:`compare` also times two operations in pairs, one directly after the other, in
alternating order. Slow drifts do not affect the ratio of a pair.
"""

from __future__ import annotations

import gc
import statistics
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil, sqrt

Timer = Callable[[int], float]  # A timer makes a number of calls and returns the mean nanoseconds of a call.

UNIT_NS = {"ns": 1, "µs": 1e3, "ms": 1e6}  # The tables show times in ns, µs or ms.

WARM_UP_NS = 30e6
REPEAT_NS = 10e6
PAIRS = 400
PAIR_CALLS = 200


@dataclass(frozen=True)
class Goal:
    """A limit on a time, which is `times` x `floor` + `plus_ns`.

    Attributes
    ----------
    times : float
    plus_ns : float
        The constant part of the limit. If `times` is 0, the limit is absolute.
    floor : tuple of str
        The operations whose times add up to the floor. If the tuple is empty, the floor of the comparison applies.
    paired : bool
        Whether the ratio is measured in pairs. `floor` is then one work, and `plus_ns` is 0.
    """

    times: float = 0
    plus_ns: float = 0
    floor: tuple[str, ...] = ()
    paired: bool = False

    def limit_ns(self, floor_ns: float) -> float:
        """Return the longest time that the goal permits.

        >>> Goal(1.5, 250).limit_ns(1000)
        1750.0
        """
        return self.times * floor_ns + self.plus_ns

    def text(self, unit: str) -> str:
        """Return the text of the goal in the unit of a table.

        >>> Goal(0, 20_000).text("µs"), Goal(1.5, 250).text("ns")
        ('≤ 20 µs', '≤ 1.5 × floor + 250 ns')
        """
        factor = f"{self.times:g} × {' + '.join(self.floor) or 'floor'}" if self.times else ""
        plus = f"{three_digits(self.plus_ns / UNIT_NS[unit])} {unit}" if self.plus_ns else ""
        return "≤ " + " + ".join(filter(None, [factor, plus]))


@dataclass(frozen=True)
class Work:
    """An operation whose time is measured.

    Attributes
    ----------
    name : str
    prepare : callable
        The function that makes a :data:`Timer`, or raises an error.
    goal : Goal, optional
    is_ours : bool
        Whether the work belongs to this package, which determines its color in the chart.
    """

    name: str
    prepare: Callable[[], Timer]
    goal: Goal | None = None
    is_ours: bool = False


@dataclass(frozen=True)
class Row:
    """The measurement of one operation: the nanoseconds of one call in each round, or the error that prevented the
    measurement.

    `ratios` contains the ratios of the pairs, if the goal requires pairs.
    """

    name: str
    samples_ns: tuple[float, ...] = ()
    goal: Goal | None = None
    is_ours: bool = False
    ratios: tuple[float, ...] = ()
    error: str = ""

    @property
    def median_ns(self) -> float:
        return statistics.median(self.samples_ns)

    @property
    def quartiles_ns(self) -> tuple[float, float]:
        first, _, third = statistics.quantiles(self.samples_ns, n=4)
        return first, third


@dataclass(frozen=True)
class Comparison:
    """A comparison of several operations that do the same task.

    Attributes
    ----------
    title : str
    rows : sequence of Row
    floor : tuple of str
        The names of the rows whose times add up to the floor. The sequence is empty without a floor.
    notes : sequence of str
    unit : str
        The unit of the times, which is "ns", "µs" or "ms".
    """

    title: str
    rows: Sequence[Row]
    floor: tuple[str, ...] = ()
    notes: Sequence[str] = field(default=())
    unit: str = "ns"

    def floor_samples_ns(self, names: tuple[str, ...] = ()) -> tuple[float, ...] | None:
        """Return the floor in each round, or None if one of the floor's rows was not measured."""
        found = {row.name: row.samples_ns for row in self.rows}
        parts = [found.get(name, ()) for name in names or self.floor]
        return tuple(map(sum, zip(*parts, strict=True))) if all(parts) else None

    def ratio(self, row: Row) -> float | None:
        """Return the time of a row divided by the floor, as the median of the rounds' ratios."""
        floor = self.floor_samples_ns()
        return statistics.median(_quotients(row.samples_ns, floor)) if floor and not row.error else None

    def limit_ns(self, row: Row) -> float | None:
        """Return the time that the goal of a row permits, or None if the row has no goal or its floor was not
        measured."""
        if row.goal is None:
            return None
        floor = self.floor_samples_ns(row.goal.floor) if row.goal.times else (0.0,)
        return row.goal.limit_ns(statistics.median(floor)) if floor else None

    def verdict(self, row: Row) -> str:
        """Return whether the goal of a row is met, with the limit, or an empty string without a goal or a
        measurement."""
        if row.goal is None or row.error:
            return ""
        if row.ratios:
            ratio, low, high = median_interval(row.ratios)
            return f"{_yes(ratio <= row.goal.times)}: {ratio:.3f} ({low:.3f} to {high:.3f})"
        limit_ns = self.limit_ns(row)
        if row.goal.paired or limit_ns is None:
            return "no floor"
        return f"{_yes(row.median_ns <= limit_ns)}: limit {self.shown(limit_ns)} {self.unit}"

    def shown(self, ns: float) -> str:
        """Return the text of a time in the unit of the table."""
        return three_digits(ns / UNIT_NS[self.unit])


def _quotients(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    return [a / b for a, b in zip(numerators, denominators, strict=True)]


def _yes(is_met: bool) -> str:
    return "yes" if is_met else "**no**"


def three_digits(number: float) -> str:
    """
    >>> three_digits(1234.5), three_digits(0.125)
    ('1230', '0.125')
    """
    return f"{float(f'{number:.3g}'):.10g}"


# ---- timers ----


def python(statement: str, **names: object) -> Timer:
    """Return a timer of a Python statement. The statement is compiled into the loop, so that the time includes no
    additional call.
    """
    timer = timeit.Timer(statement, timer=time.perf_counter_ns, globals=names)
    return lambda calls: timer.timeit(calls) / calls


def queued(timer: Timer, settle: Callable[[], object], batch: int = PAIR_CALLS) -> Timer:
    """Return a timer of calls that queue work. After every `batch` calls, `settle` waits for the work outside the timed
    part.
    """

    def time_batches(calls: int) -> float:
        total_ns = 0.0
        for first in range(0, calls, batch):
            size = min(batch, calls - first)
            total_ns += timer(size) * size
            settle()
        return total_ns / calls

    return time_batches


def each(timer: Timer, count: int) -> Timer:
    """Return a timer for one of the `count` equal parts of a call."""
    return lambda calls: timer(calls) / count


# ---- measuring ----


def compare(
    title: str,
    works: Sequence[Work],
    repeats: int,
    floor: tuple[str, ...] = (),
    notes: Sequence[str] = (),
    unit: str = "ns",
) -> Comparison:
    """Time all operations in rounds. Also time in pairs the operations whose goals require pairs."""
    running = [_Running(work) for work in works]
    with _no_collection():
        for first in range(repeats):
            for at in range(len(running)):
                running[(first + at) % len(running)].repeat()
            gc.collect()
        for one in running:
            one.pair({other.work.name: other for other in running}, floor)
    return Comparison(title, [one.row() for one in running], floor, notes, unit)


class _Running:
    """An operation during the measurement, with its warm timer and its results.

    The operation does not run again after an error."""

    def __init__(self, work: Work):
        self.work = work
        self.samples_ns: list[float] = []
        self.ratios: tuple[float, ...] = ()
        self.error = ""
        with self.noting_errors():
            self.timer = work.prepare()
            self.calls = calls_for(self.timer)

    @contextmanager
    def noting_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.error = (str(error).strip().splitlines() or [type(error).__name__])[0]

    def repeat(self) -> None:
        if not self.error:
            with self.noting_errors():
                self.samples_ns.append(self.timer(self.calls))

    def pair(self, all_running: Mapping[str, _Running], floor: tuple[str, ...]) -> None:
        """Time the operation in pairs with its floor, if the goal of the operation requires pairs."""
        if self.error or self.work.goal is None or not self.work.goal.paired:
            return
        (name,) = self.work.goal.floor or floor
        if name in all_running and not all_running[name].error:
            with self.noting_errors():
                self.ratios = paired(self.timer, all_running[name].timer)

    def row(self) -> Row:
        samples_ns = () if self.error else tuple(self.samples_ns)
        return Row(self.work.name, samples_ns, self.work.goal, self.work.is_ours, self.ratios, self.error)


@contextmanager
def _no_collection() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def calls_for(timer: Timer) -> int:
    """Return the number of calls that take about :data:`REPEAT_NS`.

    The search for this number warms up the operation.
    """
    calls, spent_ns, ns = 1, 0.0, 0.0
    while spent_ns < WARM_UP_NS:
        start_ns = time.perf_counter_ns()
        timer(calls)  # The time of a whole call is measured, because a timer may exclude a part of each call.
        took_ns = time.perf_counter_ns() - start_ns
        spent_ns += took_ns
        ns = max(took_ns / calls, 0.1)
        calls = min(2 * calls, ceil(WARM_UP_NS / 3 / ns))
    return max(1, round(REPEAT_NS / ns))


def paired(timer: Timer, other: Timer, pairs: int = PAIRS, calls: int = PAIR_CALLS) -> tuple[float, ...]:
    """Return the ratio of two timers in each of many short pairs, in alternating order."""
    ratios = []
    for pair in range(pairs):
        if pair % 2:
            denominator, numerator = other(calls), timer(calls)
        else:
            numerator, denominator = timer(calls), other(calls)
        ratios.append(numerator / denominator)
    return tuple(ratios)


def median_interval(samples: Sequence[float]) -> tuple[float, float, float]:
    """Return the median and its 95 % interval, which follow from the order of the samples (normal approximation of the
    binomial distribution).

    >>> median_interval(range(1, 101))
    (50.5, 40, 61)
    """
    ordered = sorted(samples)
    reach = 1.96 * sqrt(len(ordered)) / 2
    low = max(0, int(len(ordered) / 2 - reach) - 1)
    high = min(len(ordered) - 1, ceil(len(ordered) / 2 + reach))
    return statistics.median(ordered), ordered[low], ordered[high]


# ---- the tables ----


def markdown(comparison: Comparison) -> str:
    """Return a comparison as a Markdown table. The table has columns for the floor and for goals if a row has one."""
    unit, floor = comparison.unit, comparison.floor
    goals = any(row.goal is not None for row in comparison.rows)
    head = [
        "",
        f"median, {unit}",
        f"middle half, {unit}",
        *["× floor"][: len(floor)],
        *(["goal", "met"] if goals else []),
    ]
    rows = [head, ["---" if name in ("", "goal", "met") else "---:" for name in head]]
    for row in comparison.rows:
        goal = [row.goal.text(unit) if row.goal else "", comparison.verdict(row)] if goals else []
        rows.append([row.name, *_figures(comparison, row), *goal])
    lines = [f"## {comparison.title}", "", *("| " + " | ".join(cells) + " |" for cells in rows)]
    notes = [*([_floor_note(floor)] if floor else []), *comparison.notes]
    return "\n".join([*lines, *(f"\n{note}" for note in notes)]) + "\n"


def _floor_note(floor: Sequence[str]) -> str:
    """Return the definition of the floor by its rows.

    >>> _floor_note(["C"]), _floor_note(["C", "export", "encode"])
    ('The floor is the time of the row "C".', 'The floor is the sum of the rows "C", "export" and "encode".')
    """
    *rest, last = (f'"{row}"' for row in floor)
    return (
        f"The floor is the sum of the rows {', '.join(rest)} and {last}."
        if rest
        else (f"The floor is the time of the row {last}.")
    )


def _figures(comparison: Comparison, row: Row) -> list[str]:
    """Return the cells of the times, and of the ratio if the comparison has a floor."""
    if row.error:
        cells = [row.error.replace("|", "\\|"), "", ""]
    else:
        low, high = row.quartiles_ns
        ratio = comparison.ratio(row)
        times = [comparison.shown(row.median_ns), f"{comparison.shown(low)} to {comparison.shown(high)}"]
        cells = [*times, "" if ratio is None else f"{ratio:.3g}"]
    return cells if comparison.floor else cells[:2]
