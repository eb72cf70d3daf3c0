"""Tests of verdicts on tiny programs: the oracle's are compared with results by hand, the sanitizer's with the
oracle's."""

from __future__ import annotations

import pytest

from evaluation.fuzzing.fuzz_races import compared
from evaluation.fuzzing.race_programs import Operation, Program, Verdict, judged

READ, WRITE, ADD, BARRIER = Operation("read"), Operation("write"), Operation("add"), Operation("barrier")
RELEASE, ACQUIRE, ARRIVE, WAIT = Operation("release"), Operation("acquire"), Operation("arrive"), Operation("wait")

# An atomic operation of a thread hides an earlier atomic operation of another thread, so that a later write of the
# first thread does not race with it. A read of global memory hides an earlier read in the same way.
KNOWN_MISSES = [102]


def pair(at: int, there: int) -> frozenset[tuple[int, int]]:
    return frozenset({(0, at), (1, there)})


@pytest.mark.parametrize(
    ("one", "other", "races", "blocks"),
    [
        ((WRITE,), (READ,), {pair(0, 0)}, False),
        ((READ,), (READ,), set(), False),
        ((ADD,), (ADD,), set(), False),
        ((ADD,), (READ,), {pair(0, 0)}, False),
        ((WRITE, BARRIER), (BARRIER, READ), set(), False),
        ((WRITE, BARRIER), (READ, BARRIER), {pair(0, 0)}, False),
        ((WRITE, RELEASE), (ACQUIRE, READ), set(), False),
        ((RELEASE, WRITE), (ACQUIRE, READ), {pair(1, 1)}, False),
        ((WRITE, ARRIVE), (WAIT, READ), set(), False),
        ((ARRIVE, WRITE), (WAIT, READ), {pair(1, 1)}, False),
        ((WAIT,), (WRITE,), set(), True),
        ((BARRIER,), (), set(), True),
    ],
)
def test_the_oracle(one, other, races, blocks):
    assert judged(Program((one, other))) == Verdict(frozenset(races), blocks)


def test_the_sanitizer_agrees_with_an_exhaustive_search():
    results = [compared(seed) for seed in range(150)]
    assert [each for each in results if each.faults] == []
    assert {each.outcome for each in results} >= {"clean", "found"}
    assert [each.seed for each in results if each.outcome == "missed"] == KNOWN_MISSES
