"""Tests of the faults that ``evaluation/mutation`` inserts into modules, and of the selected test files."""

from __future__ import annotations

import json

import pytest

from evaluation.mutation import draw, mutate_modules, trials
from evaluation.mutation.operators import mutants_of

SOURCE = b'''def f(a, most):
    """Return at most 7."""
    try:
        with lock:
            g(a, most)
    finally:
        h.close()
    if a > most:
        raise ValueError(f"{a + 1}")
    return min(a, 3)
'''
FAULTS = [
    ("finally only without an error", True, "'try' -> 'if True'; 'finally' -> 'if True'"),
    ("dropped with", True, "'with lock:' -> 'if True:'"),
    ("dropped call", False, "'g(a, most)' -> 'pass'"),
    ("argument", False, "'a, most' -> 'most, a'"),
    ("dropped call", True, "'h.close()' -> 'pass'"),
    ("dropped finally", True, "'h.close()' -> 'pass'"),
    ("dropped early exit", True, "'a > most' -> 'False'"),
    ("negated condition", True, "'a > most' -> 'not (a > most)'"),
    ("limit", True, "'>' -> '>='"),
    ("dropped raise", True, "'raise ValueError(f\"{a + 1}\")' -> 'pass'"),
    ("limit", True, "'min' -> 'max'"),
    ("dropped result", False, "'min(a, 3)' -> 'None'"),
    ("constant", False, "'3' -> '4'"),
]


def test_the_faults_of_a_module():
    mutants = [*mutants_of("cuda_tma/f.py", SOURCE)]
    assert [(mutant.kind, mutant.guard, mutant.after) for mutant in mutants] == FAULTS
    assert all(mutant.is_python(SOURCE) and mutant.applied(SOURCE) != SOURCE for mutant in mutants)
    assert [mutant.line for mutant in mutants] == [3, 4, 5, 5, 7, 7, 8, 8, 8, 9, 10, 10, 10]
    assert {mutant.function for mutant in mutants} == {"f"}


def test_a_fault_after_other_letters():
    (mutant,) = mutants_of("cuda_tma/f.py", "a = 'ü' < x\n".encode())
    assert mutant.applied("a = 'ü' < x\n".encode()).decode() == "a = 'ü' <= x\n"


def test_a_draw_is_the_same_again_and_prefers_guards():
    root = mutate_modules.ROOT
    mutants = draw.drawn(root, 40, 1, "cuda_tma/_compile/*")
    assert mutants == draw.drawn(root, 40, 1, "cuda_tma/_compile/*") != draw.drawn(root, 40, 2, "cuda_tma/_compile/*")
    assert len({*mutants}) == 40 and sum(mutant.guard for mutant in mutants) > 12


@pytest.mark.parametrize(("path", "area"), [("_intercept/leaks.py", "left out"), ("smem/_kept.py", "maps and pictures"),
                                            ("simulate/_sanitize/replays.py", "sanitizer")])  # fmt: skip
def test_an_area(path, area):
    assert draw.area_of(f"cuda_tma/{path}") == area


def measured(seconds, *lines, path="cuda_tma/a/_f.py"):
    return seconds, {path: f"{sum(1 << line for line in lines):x}", "other": "2"}


KNOWN = {
    "tests/test_slow.py": {"test_a": measured(60, 8), "test_b": measured(2, 7), "test_c": measured(2, 7, 8)},
    "tests/test_quick.py": {"test_a": measured(1, 8)},
    "tests/a/test_other.py": {"test_a": measured(5, 8), "test_b": measured(5, 3, path="cuda_tma/g.py")},
    "tests/a/test_f.py": {"test_a": measured(9, 1), "test_b": measured(8, 8)},
    "tests/a/test_failing.py": {"test_a": measured(1, 8)},
}


def selected(line, seconds=50):
    known = {file: {"failed": [f"{file}::test_a"] if "failing" in file else [],
                    "tests": {f"{file}::{name}": values for name, values in tests.items()}}
             for file, tests in KNOWN.items()}  # fmt: skip
    mutant = next(mutant for mutant in mutants_of("cuda_tma/a/_f.py", SOURCE) if mutant.line == line)
    return [test.removeprefix("tests/") for test in trials.tests_of(mutant, known, seconds)]


def test_the_tests_of_a_mutant():
    """For a mutant, the tool runs the tests that execute its line: the tests of the module and of the folder, and the
    fastest tests. The other tests of the module follow."""
    own = ["a/test_f.py::test_b", "a/test_other.py::test_a"]
    assert selected(8) == [*own, "test_quick.py::test_a", "test_slow.py::test_c", "a/test_f.py::test_a"]
    assert selected(8, 15) == [*own, "test_quick.py::test_a"]


def test_the_tests_of_a_line_that_no_test_executes():
    """The tests of the module, the tests that execute a line of it, and the tests of the folder run."""
    assert selected(9, 30) == ["a/test_f.py::test_b", "a/test_f.py::test_a", "a/test_other.py::test_a",
                               "test_quick.py::test_a", "test_slow.py::test_b", "test_slow.py::test_c"]  # fmt: skip
    assert "a/test_other.py::test_b" in selected(9)


def test_survivors_are_found_again(tmp_path):
    (tmp_path / "cuda_tma").mkdir()
    (tmp_path / "cuda_tma" / "f.py").write_bytes(SOURCE)
    mutants = [*mutants_of("cuda_tma/f.py", SOURCE)]
    ends = ["survived", "killed", *["killed"] * 11]
    rows = [mutate_modules.row_of(trials.Trial(*each, "", 0, 1.0), {}) for each in zip(mutants, ends, strict=True)]
    (tmp_path / "results.json").write_text(json.dumps({"mutants": rows}))
    (tmp_path / "cuda_tma" / "f.py").write_bytes(b"import os\n" + SOURCE)
    (found,) = mutate_modules.again(tmp_path, tmp_path / "results.json")
    assert (found.kind, found.line) == (mutants[0].kind, 4)
    assert "1 of     2 killed" not in mutate_modules.summary(rows) and "12 of    13" in mutate_modules.summary(rows)


def test_a_diff_of_a_mutant(tmp_path):
    (tmp_path / "f.py").write_bytes(SOURCE)
    mutant = next(mutant for mutant in mutants_of("f.py", SOURCE) if mutant.kind == "dropped with")
    assert "-        with lock:\n+        if True:\n" in mutate_modules.diff_of(tmp_path, mutant)
