"""Tests of the exit status of a run, and of the line with its counts."""

from types import SimpleNamespace

import pytest

from cuda_tma._command.outcome import Outcome, coverage, exit_status

CLEAN = {"errors": (), "findings": (), "unfinished": False, "schedules": ("early", "late")}


def launched(config="config", skipped="", is_checked=True, **changes):
    report = SimpleNamespace(**CLEAN | changes) if is_checked else None
    return SimpleNamespace(kernel="k", config=config, report=report, skipped=skipped)


RIGHT, WRONG = launched(), launched(errors=("error",))
SKIPPED, EXCLUDED = launched(is_checked=False, skipped="no PTX"), launched(is_checked=False)
OF_CALL, SLOW = launched(config=None), launched(unfinished=True)
ENDS = [
    ("nothing", (), {}, 3, 3),
    ("right", (RIGHT,), {}, 0, 0),
    ("the program failed", (RIGHT,), {"program_status": 7}, 7, 7),
    ("the program ended well", (RIGHT,), {"program_status": 0}, 0, 0),
    ("wrong", (RIGHT, WRONG), {"program_status": 7}, 1, 1),
    ("wrong and lost", (RIGHT,), {"lost": 2, "lost_errors": 1}, 1, 1),
    ("lost", (RIGHT,), {"lost": 2}, 0, 3),
    ("skipped", (RIGHT, SKIPPED), {"program_status": 7}, 7, 3),
    ("only skipped", (SKIPPED,), {}, 3, 3),
    ("excluded", (RIGHT, EXCLUDED), {}, 0, 0),
    ("only excluded", (EXCLUDED,), {}, 3, 3),
    ("only a finding about a call", (OF_CALL,), {}, 3, 3),
    ("at the time limit", (RIGHT, SLOW), {"program_status": 7}, 3, 3),
    ("an error at the time limit", (SLOW, WRONG), {}, 1, 1),
]


@pytest.mark.parametrize(("launches", "values", "status", "required"), [each[1:] for each in ENDS],
                         ids=[each[0] for each in ENDS])  # fmt: skip
def test_the_status(launches, values, status, required):
    outcome = Outcome(launches, **values)
    assert (exit_status(outcome), exit_status(outcome, require_judged=True)) == (status, required)


@pytest.mark.parametrize(
    ("launches", "values", "line"),
    [
        ((), {}, "0 launches judged; 0.0 s"),
        ((RIGHT,), {"seconds": 1.25}, "1 launch judged under 2 schedules, no errors; 1.2 s"),
        ((RIGHT, launched(schedules=())), {}, "2 launches judged under 2 schedules, no errors; 0.0 s"),
        ((launched(schedules=()),), {}, "1 launch judged under 1 schedule, no errors; 0.0 s"),
        ((RIGHT, SLOW), {"known": 3}, "2 launches judged under 2 schedules, no errors, 3 known from the baseline, "
         "1 at the time limit; 0.0 s"),
        ((RIGHT, EXCLUDED, SKIPPED, SKIPPED), {"lost": 4, "cause": "the disk is full"},
         "1 launch judged under 2 schedules, no errors, 2 skipped (2 times: no PTX), 1 left out by filters, "
         "4 lost (the disk is full); 0.0 s"),
    ],
)  # fmt: skip
def test_the_line_with_counts(launches, values, line):
    assert coverage(Outcome(launches, **values)) == line
