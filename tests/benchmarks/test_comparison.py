"""Tests of benchmark comparisons, which time functions in turn, and print tables of the measurements."""

import pytest

from benchmarks import comparison
from benchmarks.comparison import Comparison, Goal, Row, Work


def fixed(*ns):
    """Return a timer that returns the given times in turn."""
    values = iter(ns)
    return lambda calls: next(values)


def test_a_goal_is_a_factor_and_an_addition():
    assert Goal(1.3, 250).limit_ns(100) == 380
    assert [goal.text("ns") for goal in (Goal(3), Goal(0, 60), Goal(1.3, 250), Goal(1, floor=("a", "b")))] == [
        "≤ 3 × floor",
        "≤ 60 ns",
        "≤ 1.3 × floor + 250 ns",
        "≤ 1 × a + b",
    ]


def test_a_comparison_as_markdown():
    rows = [
        Row("C", (10, 20, 30)),
        Row("export", (1, 2, 3)),
        Row("fast", (33, 44, 66), Goal(2, 1)),
        Row("slow", (60, 70, 80), Goal(0, 60)),
        Row("close", (22, 22, 22), Goal(1.05, floor=("C",), paired=True), ratios=(1.0, 1.04, 1.08)),
        Row("unpaired", (22, 22, 22), Goal(1.05, paired=True)),
        Row("absent", error="No module | named cupy"),
    ]
    lines = comparison.markdown(Comparison("Title", rows, ("C", "export"), ("A note.",))).splitlines()
    assert lines[2] == "|  | median, ns | middle half, ns | × floor | goal | met |"
    assert lines[4] == "| C | 20 | 10 to 30 | 0.909 |  |  |"
    assert lines[6] == "| fast | 44 | 33 to 66 | 2 | ≤ 2 × floor + 1 ns | yes: limit 45 ns |"
    assert lines[7] == "| slow | 70 | 60 to 80 | 3.18 | ≤ 60 ns | **no**: limit 60 ns |"
    assert lines[8] == "| close | 22 | 22 to 22 | 1 | ≤ 1.05 × C | yes: 1.040 (1.000 to 1.080) |"
    assert lines[9].endswith("| no floor |")
    floor = 'The floor is the sum of the rows "C" and "export".'
    assert lines[10:] == ["| absent | No module \\| named cupy |  |  |  |  |", "", floor, "", "A note."]


def test_a_table_without_a_floor():
    rows = [
        Row("`f`", (1000.0, 2000.0, 3000.0, 1234500.0), Goal(0, 20_000)),
        Row("`g`", (125.0,) * 3),
        Row("h", error="no"),
    ]
    lines = comparison.markdown(Comparison("Title", rows, notes=("A note.",), unit="µs")).splitlines()
    assert lines[:4] == [
        "## Title",
        "",
        "|  | median, µs | middle half, µs | goal | met |",
        "| --- | ---: | ---: | --- | --- |",
    ]
    assert lines[4] == "| `f` | 2.5 | 1.25 to 927 | ≤ 20 µs | yes: limit 20 µs |"
    assert lines[5:] == ["| `g` | 0.125 | 0.125 to 0.125 |  |  |", "| h | no |  |  |  |", "", "A note."]


def test_a_table_in_milliseconds():
    row = Row("`f`", (1e6, 2.5e6, 3e6, 1566e6), Goal(0, 2e6))
    lines = comparison.markdown(Comparison("Title", [row], unit="ms")).splitlines()
    assert lines[2] == "|  | median, ms | middle half, ms | goal | met |"
    assert lines[4] == "| `f` | 2.75 | 1.38 to 1180 | ≤ 2 ms | **no**: limit 2 ms |"
    assert comparison.markdown(Comparison("Title", [Row("g", (1e6,) * 3)], unit="ms")).splitlines()[2:] == [
        "|  | median, ms | middle half, ms |",
        "| --- | ---: | ---: |",
        "| g | 1 | 1 to 1 |",
    ]


def test_without_the_floor_there_is_no_ratio():
    rows = [Row("C", error="no gcc"), Row("ours", (1, 2, 3), Goal(3))]
    assert (
        comparison.markdown(Comparison("Title", rows, ("C",))).splitlines()[5].endswith("|  | ≤ 3 × floor | no floor |")
    )


def test_each_work_is_timed_in_each_round(monkeypatch):
    order = []
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 2)
    works = [
        Work(name, lambda name=name: lambda calls: order.append((name, calls)) or 7.0, goal)
        for name, goal in (("a", Goal(0, 1)), ("b", None), ("c", None))
    ]
    found = comparison.compare("Title", works, 3, notes=("A note.",), unit="µs")
    assert order == [(name, 2) for name in "abcbcacab"]
    assert found == Comparison("Title", [Row(w.name, (7.0,) * 3, w.goal) for w in works], (), ("A note.",), "µs")


def test_a_repeat_is_nanoseconds_a_call(monkeypatch):
    clock = iter((1_000_000, 1_600_000))
    monkeypatch.setattr(comparison.time, "perf_counter_ns", lambda: next(clock))
    assert comparison.python("x", x=1)(100) == 6000


def test_one_failure_does_not_stop_the_others(monkeypatch):
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 5)

    def absent():
        raise ImportError("No module named 'peer'\nand more")

    works = [
        Work("ours", lambda: fixed(1.0, 2.0, 3.0), is_ours=True),
        Work("absent", absent),
        Work("breaks", lambda: fixed(1.0)),  # The function raises StopIteration in the second round.
        Work("silent", lambda: 1 / 0),
    ]
    rows = comparison.compare("Title", works, 3, ("ours",)).rows
    assert [(r.samples_ns, r.error) for r in rows] == [
        ((1.0, 2.0, 3.0), ""),
        ((), "No module named 'peer'"),
        ((), "StopIteration"),
        ((), "division by zero"),
    ]


def test_pairs_alternate():
    order = []
    ratios = comparison.paired(lambda calls: order.append("a") or 3.0, lambda calls: order.append("b") or 2.0, 3)
    assert (order, ratios) == (["a", "b", "b", "a", "a", "b"], (1.5, 1.5, 1.5))


def test_pairs_are_measured_if_the_goal_needs_them(monkeypatch):
    monkeypatch.setattr(comparison, "calls_for", lambda timer: 5)
    works = [
        Work("C", lambda: lambda calls: 2.0),
        Work("ours", lambda: lambda calls: 3.0, Goal(1.6, paired=True)),
        Work("other", lambda: lambda calls: 3.0, Goal(1, floor=("ours",), paired=True)),
        Work("alone", lambda: lambda calls: 3.0, Goal(1, floor=("absent",), paired=True)),
    ]
    rows = comparison.compare("Title", works, 15, ("C",)).rows
    assert [set(row.ratios) for row in rows] == [set(), {1.5}, {1.0}, set()]


@pytest.mark.parametrize("count", [15, 101, 400])
def test_the_interval_holds_the_median(count):
    median, low, high = comparison.median_interval(range(count))
    assert median == (count - 1) / 2
    assert median - low == pytest.approx(high - median, abs=1)
    assert (high - low) / 2 == pytest.approx(1.96 * count**0.5 / 2, abs=1.5)


def test_queued_calls_are_waited_for_in_batches():
    calls = []
    timer = comparison.queued(lambda n: calls.append(n) or float(n), lambda: calls.append("wait"), batch=200)
    assert timer(500) == (200 * 200 * 2 + 100 * 100) / 500
    assert calls == [200, "wait", 200, "wait", 100, "wait"]


def test_a_statement_is_timed_the_requested_number_of_times():
    found = []
    assert comparison.python("found.append(x)", found=found, x=7)(5) > 0 and found == [7] * 5
    assert comparison.each(lambda calls: 3000.0, 1000)(1) == 3.0
