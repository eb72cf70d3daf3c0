"""Tests of the sanitizer's records of asynchronous operations that several lanes of a warp issue together."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma.simulate._ptx import Instruction
from cuda_tma.simulate._sanitize.model.operations import Operations
from cuda_tma.simulate._warps.events import CommitGroup, IssuedTogether, WaitGroup

THREADS = 64  # of a cluster
COPY = Instruction(("cp", "async", "bulk"))


@pytest.fixture
def completed():
    """Return the completed operations, each with its lanes, its key and its number."""
    return []


@pytest.fixture
def operations(completed):
    clocks = SimpleNamespace(
        threads=THREADS,
        slot_of=lambda lane: lane // THREADS,
        known_to=lambda lanes: np.zeros((2, THREADS), np.int32),
        column=lambda slot, key: key,
        complete=lambda lanes, column, done, fenced: completed.append((lanes.start, column, done)),
    )
    return Operations(SimpleNamespace(cluster_of_slot=[0, 1]), clocks)


def wait(operations, lane, most, reads_only=True):
    operations.wait(WaitGroup(slice(lane, lane + 1), COPY, "bulk", most, reads_only))


def test_unfinished_copies_of_some_lanes(operations):
    operations.groups_of("cp.async", np.arange(THREADS), COPY)
    found = [lane for lane, number, by in operations.unfinished("cp.async", slice(8, 32)) if (number, by) == (1, COPY)]
    assert found == [*range(8, 32)]


def test_the_place_of_a_cluster_that_has_ended(operations):
    for lane in (3, THREADS + 3):
        operations.issue(slice(lane, lane + 1), COPY, "bulk")
    operations.forget(0)
    left = [[lane for lane, *_ in operations.unfinished("bulk", slice(at, at + THREADS))] for at in (0, THREADS)]
    assert left == [[], [THREADS + 3]]
    assert [lane for lane, _ in operations.owned("bulk", slice(0, 2 * THREADS))] == [THREADS + 3]


def test_each_lane_of_a_warp_waits_for_a_shared_copy(operations, completed):
    operations.issue(slice(0, 1), COPY, "bulk")
    operations.issue_together(IssuedTogether(np.array([0, 1]), COPY, "bulk"))
    operations.commit(CommitGroup(slice(0, 2), COPY, "bulk"))
    wait(operations, 1, most=1)
    assert ("bulk", 0, "read") not in [key for _, key, _ in completed]
    wait(operations, 1, most=0)
    assert (1, ("bulk", 0, "read"), 1) in completed


def test_a_wait_for_reads_completes_no_writes(operations, completed):
    operations.issue(slice(5, 6), COPY, "bulk")
    operations.commit(CommitGroup(slice(5, 6), COPY, "bulk"))
    wait(operations, 5, most=0)
    assert completed == [(5, ("bulk", 5, "read"), 1)]
    wait(operations, 5, most=0, reads_only=False)
    assert completed[1:] == [(5, ("bulk", 5, "read"), 1), (5, ("bulk", 5, "write"), 1)]


def test_copies_of_many_lanes_in_the_place_of_a_cluster_that_has_ended(operations):
    lanes = np.arange(THREADS - 4, THREADS + 4)
    assert operations.groups_of("cp.async", lanes, COPY).tolist() == [1] * 8
    operations.commit(CommitGroup(lanes, COPY, "cp.async"))
    assert operations.groups_of("cp.async", lanes, COPY).tolist() == [2] * 8
    operations.forget(0)
    every = slice(0, 2 * THREADS)
    assert [lane for lane, *_ in operations.unfinished("cp.async", every)] == [*range(THREADS, THREADS + 4)]
    assert operations.groups_of("cp.async", lanes, COPY).tolist() == [1] * 4 + [2] * 4


def test_a_copy_is_finished_if_a_wait_has_covered_its_group(operations):
    operations.groups_of("bulk", np.array([7]), COPY)
    operations.commit(CommitGroup(slice(7, 8), COPY, "bulk"))
    assert len([*operations.unfinished("bulk", slice(0, THREADS))]) == 1
    wait(operations, 7, most=0)
    assert [*operations.unfinished("bulk", slice(0, THREADS))] == []


@pytest.mark.parametrize("kind", [None, "bulk"])
def test_a_shared_operation_without_a_group_is_not_recorded(operations, kind):
    operations.issue(slice(0, 1), COPY, None)
    operations.groups_of("bulk", np.array([0]), COPY)
    operations.issue_together(IssuedTogether(np.array([0, 1]), COPY, kind))
    assert [lane for lane, _ in operations.owned("bulk", slice(0, THREADS))] == [0]
