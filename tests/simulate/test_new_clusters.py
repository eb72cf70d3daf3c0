"""Tests that a new CTA has no records of the ended CTA whose memory it uses."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma.simulate._sanitize.checks.exits import ExitChecker
from cuda_tma.simulate._sanitize.checks.inits import InitChecker
from cuda_tma.simulate._sanitize.checks.tensor_maps import TensorMaps
from cuda_tma.simulate._sanitize.model import releases
from cuda_tma.simulate._sanitize.model.barriers import Barriers
from cuda_tma.simulate._sanitize.model.clocks import FENCED, ORDERED
from cuda_tma.simulate._sanitize.model.fences import Fences
from cuda_tma.simulate._sanitize.model.operations import Operations
from cuda_tma.simulate._tensor_memory.pairs import Pairs
from cuda_tma.simulate._tensor_memory.pipe import Pipes
from cuda_tma.simulate._warps.events import BarrierArrive, BarrierComplete
from cuda_tma.simulate._warps.flights import Flights

PITCH, ENDED = 1024, range(1, 2)
OF_ENDED, OF_OTHER = PITCH + 8, 2 * PITCH


class Clocks(SimpleNamespace):
    """Clocks of two clusters with 32 threads each."""

    threads = 32

    def slot_of(self, lane):
        return lane // 32


def test_a_pipe_has_no_operation_of_an_ended_cta():
    pipes, done = Pipes(), []
    for cta in (1, 2):
        pipes.issue(cta, cta, lambda cta=cta: done.append(cta))
    pipes.forget(ENDED)
    assert (pipes.pending_of(1), pipes.pending_of(2)) == (None, 2)
    for cta in (1, 2):
        pipes.run_until(cta, 9)
    assert done == [2]


def test_a_warp_does_not_meet_a_warp_of_an_ended_pair():
    pairs, cta_of_lane = Pairs(SimpleNamespace()), np.array([2, 3])
    first, second = (SimpleNamespace(lanes=np.array([lane])) for lane in (0, 1))
    assert pairs.meet(2, "alloc", first, cta_of_lane) is None
    pairs.forget(range(1, 2))
    assert pairs.meet(2, "alloc", second, cta_of_lane) is first
    assert pairs.meet(2, "alloc", first, cta_of_lane) is None
    pairs.forget(range(2, 4))
    assert pairs.meet(2, "alloc", second, cta_of_lane) is None


def test_registers_have_no_flights_of_ended_warpgroups():
    flights = Flights(of={0: {1: "a"}, 128: {1: "b"}}, wrote={(3, 0): 5, (4, 0): 6, (3, 128): 7})
    flights.forget(np.arange(128))
    assert (flights.of, flights.wrote) == ({128: {1: "b"}}, {(3, 128): 7})


def test_the_last_loads_of_an_ended_cta_are_not_reported():
    checker = ExitChecker(*[None] * 6)
    checker.landing = {OF_ENDED: "a", OF_OTHER: "b", OF_ENDED + 8: "c", PITCH - 8: "d"}
    checker.forget(ENDED, PITCH)
    assert checker.landing == {OF_OTHER: "b", PITCH - 8: "d"}


@pytest.mark.parametrize(("position", "reported"), [(OF_ENDED, 0), (OF_OTHER, 1)])
def test_the_mbarriers_of_an_ended_cta_need_no_order(position, reported):
    found = []
    collector = SimpleNamespace(report=found.append, instruction=lambda site: site)
    clocks = Clocks(own=lambda lanes: np.array([5]))
    checker = InitChecker(clocks, collector, SimpleNamespace(fence_of_inits=None), strict=True)
    checker.made(np.array([3]), np.array([position]), 7)
    checker.forget(ENDED, PITCH)
    clock = np.zeros((max(ORDERED, FENCED) + 1, 32), int)
    checker.check(position, SimpleNamespace(clock=clock, lane=4, after=(), instruction=None))
    assert len(found) == reported


def test_the_acquires_of_an_ended_cluster_are_removed():
    parts = SimpleNamespace(memory=SimpleNamespace(all_global=None), geometry=SimpleNamespace(lanes_of_cta=32))
    maps = TensorMaps(parts, Clocks(), None, None, None, None, True)
    maps._acquired[64] |= {3: "a", 40: "b"}
    maps._acquired[128] |= {31: "c"}
    maps.forget(0)
    assert maps._acquired == {64: {40: "b"}, 128: {}}


def test_the_arrivals_of_an_ended_cta_release_no_clock():
    acquired = []
    clocks = Clocks(
        released=lambda lanes: np.full(4, lanes.start),
        fitting=lambda clock: clock,
        acquire=lambda lanes, clock: acquired.append(clock.tolist()),
        noticed=lambda lanes: lanes.tolist(),
        notice_together=lambda lanes, noticed: acquired.append(noticed),
    )
    barriers = Barriers(clocks, 32, PITCH)
    for position in (OF_ENDED, OF_OTHER, PITCH - 8):
        barriers.mbarriers[position].completions = 1
    barriers.event(BarrierArrive(slice(40, 41), (1, 0)))
    barriers.event(BarrierArrive(slice(90, 91), (2, 0)))
    barriers.forget(0, ENDED)
    assert {*barriers.mbarriers} == {OF_OTHER, PITCH - 8}
    for cta in (1, 2):
        barriers.event(BarrierArrive(slice(32 * cta, 32 * cta + 1), (cta, 0)))
        barriers.event(BarrierComplete(slice(32 * cta, 32 * cta + 1), (cta, 0), ()))
    assert acquired == [[32] * 4, [32], [90] * 4, [90, 64]]


def test_the_fences_of_an_ended_cluster_are_removed():
    fences = Fences(32, 2, lambda clock: clock)
    for lane in (0, 5, 31, 32):
        fences.fence(lane, 1, np.array([[lane]]), 3, 9)
    assert fences.executed(range(64)) == [0, 5, 31, 32]
    fences.start(0)
    assert fences.executed(range(64)) == [32] and fences.any
    assert fences.met(31, np.full(32, 9), 1) is None and fences.met(33, np.full(32, 9), 1).tolist() == [[32]]
    fences.start(1)
    assert not fences.any and fences.met(32, np.full(32, 9), 1) is None


def test_the_operations_of_an_ended_cluster_are_not_pending():
    operations, lanes = Operations(SimpleNamespace(), Clocks()), np.array([2, 3, 34])
    assert operations.groups_of("async", lanes, "copy").tolist() == [1, 1, 1]
    assert [each[:2] for each in operations.unfinished("async", slice(0, 64))] == [(2, 1), (3, 1), (34, 1)]
    operations.forget(0)
    assert [lane for lane, _ in operations.owned("async", np.arange(64))] == [34]
    assert [*operations.unfinished("async", slice(0, 64))] == [(34, 1, "copy")]
    assert operations.groups_of("async", lanes, "copy").tolist() == [1, 1, 1]


def test_the_oldest_releases_are_removed_and_cover_every_access(monkeypatch):
    monkeypatch.setattr(releases, "_MOST", 4)
    of, one = releases.Releases(1), np.zeros(1, int)

    def covered(known):
        return of.cover(0, known, one, one, np.array([9])).tolist()

    for until in range(1, 5):
        of.add(0, 0, until, one)
    assert [covered(known) for known in (0, 1, 4)] == [[True], [False], [False]]
    of.add(0, 0, 5, one)
    assert [covered(known) for known in (1, 2, 3, 5)] == [[True], [True], [False], [False]]
