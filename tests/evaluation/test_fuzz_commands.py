"""Tests of ``evaluation/fuzzing/fuzz_commands.py``, which runs random commands and checks their results."""

from __future__ import annotations

import pytest

from evaluation.fuzzing import fuzz_commands
from evaluation.fuzzing.hostile_inputs import FAMILIES, Input, made

# COUNT is the number of inputs, each of which takes about 10 ms.
COUNT = 400


def test_hostile_command_lines_have_an_outcome():
    outcomes = [*fuzz_commands.in_workers(seed=20_261, first=0, stop=COUNT)]
    assert [(found.index, found.fault) for found in outcomes if found.fault] == []
    assert len(outcomes) == COUNT and {found.status for found in outcomes} == {0, 1, 2, 3}
    assert len({found.family for found in outcomes}) == len(FAMILIES)


def test_separate_commands_have_an_outcome(tmp_path):
    outcomes = [fuzz_commands.separate(1, index, str(tmp_path)) for index in range(3)]
    assert [found.fault for found in outcomes] == [""] * 3


def test_an_input_is_the_same_again():
    assert made(1, 7) == made(1, 7) != made(1, 8)


@pytest.mark.parametrize(
    ("status", "raised", "out", "err", "strange", "fault"),
    [
        (0, "", "no errors", "", [], ""),
        (2, "", "", "cuda-tma: no\n", [], ""),
        (2, "", "", "", [], "status 2 without a sentence"),
        (7, "", "", "", [], "the status is 7"),
        ("raised", "Traceback: KeyError", "", "", [], "Traceback: KeyError"),
        (1, "", "Traceback (most recent call last)", "", [], "a traceback is printed"),
        (0, "", "", "k.py:3: RuntimeWarning: overflow", [], "a warning of Python is printed"),
        (3, "", "", "cuda-tma: an error of the simulator itself", [], "the simulator fails"),
        (0, "", "", "", ["/etc/passwd"], "it opens ['/etc/passwd']"),
        (0, "", "", "x" * 100_000, [], "it prints 0 and 100000 characters"),
        (0, "", "\x1b[31m", "", [], "an escape character reaches the terminal"),
    ],
)
def test_a_verdict(status, raised, out, err, strange, fault):
    assert fuzz_commands.fault_of(status, raised, out, err, strange).startswith(fault)
    assert bool(fault) == bool(fuzz_commands.fault_of(status, raised, out, err, strange))


def test_files_that_an_input_names():
    given = Input("maps", ("diff", "/etc/passwd", "--sarif=/work"))
    assert fuzz_commands._is_named("/etc/passwd", given, "/work/a")
    assert fuzz_commands._is_named("/work/a/k.ptx", given, "/work/a")
    assert not fuzz_commands._is_named("/etc/shadow", given, "/work/a")
