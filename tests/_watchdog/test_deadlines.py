"""Tests of the intervals at which the host reads the places of warps at hardware barriers."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma._watchdog import deadlines, memory

SLACK = deadlines._SLACK_SECONDS
DEADLINE = 0.5


class Watch:
    """A fake memory of a context with one armed kernel, whose notes the tests write."""

    def __init__(self):
        self.armed, self.modules = [(4096, 7, DEADLINE)], {7: "gemm"}
        self.notes, self.reads = np.zeros(memory.NOTES, memory.NOTE), []

    def read(self, address, size_bytes):
        self.reads.append((address, size_bytes))
        return self.notes.view(np.uint8)

    def text_at(self, address):
        return "text"


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=100.0)
    monkeypatch.setattr(deadlines, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(
        deadlines.memory, "stuck", lambda notes, watched, text_at, limits: (len(notes), watched, limits)
    )
    return made


def test_the_host_reads_the_notes_four_times_in_the_slack(clock):
    watch = Watch()
    notes = deadlines._Notes(watch)
    for now, reads in ((100, 0), (100 + SLACK / 8, 0), (100 + SLACK / 4, 1), (100 + SLACK / 3, 1), (100 + SLACK, 2)):
        clock.now = now
        assert notes.stuck() == () and len(watch.reads) == reads
    assert watch.reads[0] == (4096 + memory.NOTES_OFFSET, memory.NOTES * memory.NOTE.itemsize)


def test_only_a_place_that_stays_beyond_the_deadline_is_stuck(clock):
    watch = Watch()
    notes = deadlines._Notes(watch)
    watch.notes["place"][3] = watch.notes["place"][9] = 64
    clock.now = begun = 200.0
    assert notes.stuck() == ()
    clock.now = begun + 0.25 + SLACK
    watch.notes["place"][9] = 65  # A warp that goes on has a new deadline.
    assert notes.stuck() == ()
    clock.now = begun + DEADLINE + SLACK
    assert notes.stuck() == ()
    clock.now += SLACK / 4
    assert notes.stuck() == ((1, "gemm", (deadlines._RUNS_ON,)),)
    watch.notes["place"] = 0
    clock.now += SLACK
    assert notes.stuck() == ()
