"""Tests that clocks with shared rows for the threads of a warp equal plain clocks with a row for each thread."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma.simulate._sanitize.model.clocks import FENCED, ORDERED, Clocks

CTAS, LANES_OF_CTA, SLOTS = 2, 96, 2
THREADS, LANES = CTAS * LANES_OF_CTA, CTAS * LANES_OF_CTA * SLOTS
GEOMETRY = SimpleNamespace(cluster_ctas=CTAS, lanes_of_cta=LANES_OF_CTA, slots=SLOTS, lanes=LANES)


class Plain:
    """The reference implementation of clocks, without shared rows."""

    def __init__(self, shape):
        self.rows = np.zeros(shape, np.int32)

    def tick(self, lanes):
        self.rows[::2, lanes, lanes % THREADS] += 1

    def start(self, lanes):
        self.rows[:, lanes] = 0
        self.tick(lanes)

    def acquire(self, lanes, clock):
        self.rows[:, lanes] = np.maximum(self.rows[:, lanes], clock[:, None])

    def released(self, lanes):
        clock = self.rows[:, lanes].max(axis=1)
        self.tick(lanes)
        return clock

    def fence_shared(self, lanes):
        columns = np.r_[:THREADS, THREADS + SLOTS : self.rows.shape[2]]
        known = self.rows[:, lanes]
        known[FENCED][:, columns] = np.maximum(known[FENCED], known[ORDERED])[:, columns]
        self.rows[:, lanes] = known
        self.tick(lanes)

    def fence_global(self, lanes, now):
        self.rows[FENCED, lanes, THREADS + lanes // THREADS] = now
        self.rows[FENCED, lanes, THREADS : THREADS + SLOTS] = self.rows[:, lanes, THREADS : THREADS + SLOTS].max(axis=0)

    def meet(self, lanes, width):
        for number in np.unique(lanes // width):
            some = lanes[lanes // width == number]
            self.rows[:, some] = self.rows[:, some].max(axis=1, keepdims=True)
        self.tick(lanes)

    def complete(self, lanes, column, value, fenced):
        for row in range(len(self.rows)) if fenced else range(0, len(self.rows), 2):
            self.rows[row, lanes, column] = np.maximum(self.rows[row, lanes, column], value)


def some_lanes(rng: np.random.Generator) -> np.ndarray:
    """Return random lanes of one cluster, which are one lane, some lanes of a warp, or whole warps."""
    first = rng.integers(SLOTS) * THREADS
    warps = rng.choice(THREADS // 32, rng.integers(1, 5), replace=False)
    lanes = (warps[:, None] * 32 + np.arange(32)).ravel()
    kind = rng.integers(4)
    if kind == 0:
        lanes = lanes[:1]
    elif kind == 1:
        lanes = np.concatenate([lanes[32:], lanes[:32][rng.random(32) < 0.5]])
    return first + np.sort(lanes if len(lanes) else warps[:1] * 32)


@pytest.mark.parametrize("scopes", [False, True])
def test_shared_clocks_equal_plain_clocks(scopes):
    rng = np.random.default_rng(3)
    clocks = Clocks(GEOMETRY, scopes)
    plain = Plain(clocks.rows.shape)
    for slot in range(SLOTS):
        for each in (clocks, plain):
            each.start(np.arange(slot * THREADS, (slot + 1) * THREADS))
    released = [np.zeros_like(plain.rows[:, 0])] * SLOTS
    for step in range(600):
        clocks.now += 1
        lanes = some_lanes(rng)
        slot, what = int(lanes[0]) // THREADS, rng.integers(8)
        if what == 0:
            released[slot], expected = clocks.released(lanes), plain.released(lanes)
            assert np.array_equal(released[slot], expected)
        elif what == 1:
            clocks.acquire(lanes, released[slot]), plain.acquire(lanes, released[slot])
        elif what == 2:
            clocks.fence_shared(lanes), plain.fence_shared(lanes)
        elif what == 3:
            clocks.fence_global(lanes), plain.fence_global(lanes, clocks.now)
        elif what == 4:
            width = 32 if step % 2 else LANES_OF_CTA
            clocks.meet(lanes, width), plain.meet(lanes, width)
        elif what == 5:
            column, value, fenced = THREADS + SLOTS + int(rng.integers(9)), step, bool(step % 2)
            clocks.complete(lanes, column, value, fenced), plain.complete(lanes, column, value, fenced)
        elif what == 6 and step % 5 == 0:
            cluster = np.arange(slot * THREADS, (slot + 1) * THREADS)
            clocks.start(cluster), plain.start(cluster)
            released[slot] = np.zeros_like(released[slot])
        first, last = sorted(rng.integers(0, THREADS, 2))
        span = slice(slot * THREADS + first, slot * THREADS + last + 1)
        assert np.array_equal(clocks.known_to(span), plain.rows[:, span].max(axis=1))
        which, columns = np.repeat(np.arange(LANES), 3), rng.integers(0, plain.rows.shape[2], 3 * LANES)
        for row in range(len(plain.rows)):
            assert np.array_equal(clocks.known(row).at(which, columns), plain.rows[row, which, columns]), (step, what)


def test_the_union_of_lanes_has_a_value_for_columns_added_later():
    clocks = Clocks(GEOMETRY)
    before = clocks.known_to(slice(0, 32)).shape[1]
    columns = [clocks.column(0, number) for number in range(before)]
    assert clocks.known_to(slice(0, 32)).shape[1] == clocks.rows.shape[2] > max(columns)
