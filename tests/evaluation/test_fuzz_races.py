"""Tests of race verdicts on tiny programs. The tests compare the oracle with manual results, and the sanitizer with the
oracle."""

from __future__ import annotations

import pytest

from evaluation.fuzzing.fuzz_races import compared
from evaluation.fuzzing.race_programs import Operation, Program, Verdict, judged

READ, WRITE, ADD, BARRIER = Operation("read"), Operation("write"), Operation("add"), Operation("barrier")
RELEASE, ACQUIRE, ARRIVE, WAIT = Operation("release"), Operation("acquire"), Operation("arrive"), Operation("wait")


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
    assert [each.seed for each in results if each.outcome.startswith("missed")] == [102]
    assert results[102].outcome == "missed after an atomic"


# Two warps read a word of global memory. The write of a third warp is unordered only with the earlier read.
@pytest.mark.parametrize("seed", [1_000_001, 1_000_158, 1_000_481, 1_000_567, 1_000_800])
def test_a_read_of_another_warp_hides_no_earlier_read(seed):
    assert compared(seed).outcome == "found"
