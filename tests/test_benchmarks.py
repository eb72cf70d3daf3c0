"""The benchmarks measure what they say, and print it."""

import json

import pytest

from benchmarks import __main__ as command
from benchmarks import host, timing


def test_each_case_is_timed_in_each_round(monkeypatch):
    order = []
    monkeypatch.setattr(timing, "calls_for", lambda run: 2)
    cases = [timing.Case(name, lambda name=name: order.append(name), goal) for name, goal in (("a", 1.0), ("b", None))]
    measured = timing.measure(cases, repeats=3)
    assert order == ["a", "a", "b", "b", "b", "b", "a", "a", "a", "a", "b", "b"]
    assert [(t.name, len(t.samples_us), t.goal_us) for t in measured] == [("a", 3, 1.0), ("b", 3, None)]


def test_a_repeat_is_microseconds_a_call(monkeypatch):
    clock = iter((1_000_000, 1_600_000))
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: next(clock))
    assert timing.one_repeat(lambda: None, calls=100) == 6.0


def test_markdown():
    timings = [timing.Timing("`f`", (1.0, 2.0, 3.0, 1234.5), 20), timing.Timing("`g`", (0.125,) * 3)]
    lines = timing.markdown(timing.Table("Title", timings, ("A note.",))).splitlines()
    assert lines[:3] == ["## Title", "", "|  | median, µs | middle half, µs | goal, µs |"]
    assert lines[4:] == ["| `f` | 2.5 | 1.25 to 927 | < 20 |", "| `g` | 0.125 | 0.125 to 0.125 |  |", "", "A note."]


def test_the_host_suite_measures_what_runs():
    assert host.unavailable() == ""
    cases = [*host.knowledge_cases(2), *host.knowledge_cases(5), *host.reading_cases(), host.emulator_case()]
    assert len({case.name for case in cases}) == len(cases) >= 12
    results = {case.name: case.run() for case in cases}
    assert results["`check`, rank 2"] == () and len(results["`encode`, rank 5"]) == 128
    assert results["`decode`, rank 2"] == host.contiguous(2)
    assert [d.field for d in results["`diff`, rank 5"]] == ["swizzle", "swizzle_repeat_bytes"]


def test_the_command_prints_and_writes(monkeypatch, tmp_path, capsys):
    table = timing.Table("Title", [timing.Timing("`f`", (1.0, 2.0, 4.0))])
    monkeypatch.setattr(host, "tables", lambda repeats: [table] if repeats == 16 else [])
    command.main(["host", "--repeats", "16", "--output", str(tmp_path)])
    out = capsys.readouterr().out
    assert timing.machine() in out and "| `f` | 2 | 1 to 4 |" in out
    assert (tmp_path / "host.md").read_text().startswith(timing.machine())
    assert json.loads((tmp_path / "host.json").read_text())["tables"][0]["timings"][0]["samples_us"] == [1.0, 2.0, 4.0]


def test_a_suite_that_cannot_run_says_why(monkeypatch, capsys):
    monkeypatch.setattr(host, "unavailable", lambda: "no reason")
    command.main(["host"])
    assert "`host` was not run: no reason" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["no_such_suite"], ["--repeats", "14"]])
def test_mistakes_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert "suites are " in capsys.readouterr().err
