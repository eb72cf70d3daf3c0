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


def measured(seconds, *lines, tests=2):
    return {"tests": tests, "failed": [], "seconds": seconds, "lines": {"cuda_tma/a/_f.py": [*lines], "other": [1]}}


def test_the_tests_of_a_mutant():
    """For a mutant, the tool runs the tests of the module first, then the tests of the folder, and then the fastest
    tests. The tool omits test files that do not execute the changed line."""
    known = {
        "tests/test_slow.py": measured(60, 8),
        "tests/test_quick.py": measured(1, 8),
        "tests/a/test_other.py": measured(5, 8),
        "tests/a/test_f.py": measured(9, 1),
        "tests/a/test_g.py": measured(1, 9),
        "tests/a/test_failing.py": measured(1, 8, tests=0),
    }
    mutant = next(mutant for mutant in mutants_of("cuda_tma/a/_f.py", SOURCE) if mutant.line == 8)
    assert trials.tests_of(mutant, known, 50) == ["tests/a/test_f.py", "tests/a/test_other.py", "tests/test_quick.py"]


def test_survivors_are_found_again(tmp_path):
    (tmp_path / "cuda_tma").mkdir()
    (tmp_path / "cuda_tma" / "f.py").write_bytes(SOURCE)
    mutants = [*mutants_of("cuda_tma/f.py", SOURCE)]
    ends = ["survived", "killed", *["killed"] * 11]
    rows = [mutate_modules.row_of(trials.Trial(*each, "", (), 1.0), {}) for each in zip(mutants, ends, strict=True)]
    (tmp_path / "results.json").write_text(json.dumps({"mutants": rows}))
    (tmp_path / "cuda_tma" / "f.py").write_bytes(b"import os\n" + SOURCE)
    (found,) = mutate_modules.again(tmp_path, tmp_path / "results.json")
    assert (found.kind, found.line) == (mutants[0].kind, 4)
    assert "1 of     2 killed" not in mutate_modules.summary(rows) and "12 of    13" in mutate_modules.summary(rows)


def test_a_diff_of_a_mutant(tmp_path):
    (tmp_path / "f.py").write_bytes(SOURCE)
    mutant = next(mutant for mutant in mutants_of("f.py", SOURCE) if mutant.kind == "dropped with")
    assert "-        with lock:\n+        if True:\n" in mutate_modules.diff_of(tmp_path, mutant)
