"""Tests of the cells in the sanitizer's shadow of memory, which equal the results of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate._sanitize.model._stamps import ClockRows, Stamps
from cuda_tma.simulate._sanitize.model.clocks import Known
from cuda_tma.simulate._sanitize.model.shadow import READERS, STRONG, WEAK, Shadow, stamps_of

COLUMNS, ACCESSES, EACH = 6, 9, 4


def drawn(seed: int) -> tuple[Stamps, Known, np.ndarray, np.ndarray]:
    """Return random stamps and clocks, and the lane and the first unit of each access."""
    rng = np.random.default_rng(seed)
    stamps = Stamps(np.zeros((3, 40), np.int64), np.zeros((3, 40), np.int32))
    epochs, columns = rng.integers(1, 4, (3, 40)), rng.integers(0, COLUMNS, (3, 40))
    stamps.values[:] = np.where(rng.random((3, 40)) < 0.4, 0, stamps_of(columns, epochs))
    stamps.values[rng.random(3) < 0.4] = 0
    stamps.notes[:] = rng.integers(0, 2, (3, 40))
    known = Known(*(rng.integers(1, 4 - seed % 2, (size, COLUMNS)).astype(np.int32) for size in (70, 3)))
    return stamps, known, rng.integers(0, 70, ACCESSES), rng.integers(0, 36, ACCESSES)


@pytest.mark.parametrize("strong", [WEAK, STRONG])
@pytest.mark.parametrize("is_one", [False, True])
def test_late(strong, is_one):
    seen = set()
    for seed in range(60):
        stamps, known, lanes, first = drawn(seed)
        lanes = lanes[:1] if is_one else lanes
        units = first[:, None] + np.arange(EACH)
        known_epochs = known.at(np.broadcast_to(lanes, ACCESSES)[:, None], stamps.values[:, units] & 0xFFFFF)
        late = known_epochs < stamps.values[:, units] >> 20
        if strong:
            late &= stamps.notes[:, units] & 1 == WEAK
        places = late.any(axis=(1, 2))
        for chosen in (0b111, 0b101, 0b010):
            expected = sum(1 << place for place in range(3) if places[place] and chosen >> place & 1)
            assert stamps.late(chosen, first, EACH, *known, lanes, strong) == expected
            seen.add(expected)
    assert len(seen) == 8


def test_put_and_clear():
    """After several accesses to one unit of the shadow, the unit contains the last access, as in NumPy's assignment."""
    stamps, *_, first = drawn(1)
    values, notes = stamps.values.copy(), stamps.notes.copy()
    units, own = first[:, None] + np.arange(EACH), np.arange(ACCESSES) + 100
    values[(own % 2)[:, None], units], notes[(own % 2)[:, None], units] = own[:, None], 7
    stamps.put(own % 2, first, EACH, own, 7)
    assert np.array_equal(stamps.values, values) and np.array_equal(stamps.notes, notes)
    values[2, units], notes[2, units] = 5, 6
    stamps.put(np.array([2]), first, EACH, np.array([5]), 6)
    values[[[0]], [units]] = 0
    values[[[2]], [units]] = 0
    stamps.clear(0b101, first, EACH)
    assert np.array_equal(stamps.values, values) and np.array_equal(stamps.notes, notes)


def test_a_conflict_contains_units_columns_and_epochs():
    """In the test, two accesses have three units each, and the second clock does not cover a write by column 3 in epoch
    2."""
    shadow = Shadow(64, 2)
    shadow.write(shadow.range(20, 8), stamps_of(3, [2]), site=11)
    known = Known(np.array([[0, 0, 0, 2], [9, 9, 9, 1]], np.int32), np.zeros((1, 4), np.int32))
    units = shadow.units(np.array([18, 22]), 6)
    assert shadow.after_write(units, known, np.array([0])) is None
    found = shadow.after_write(units, known, np.array([0, 1]))
    assert [each.tolist() for each in found[:5]] == [[11, 12, 13], [1, 1, 1], [3, 3, 3], [2, 2, 2], [11, 11, 11]]
    assert found.before == "write"
    assert shadow.unwritten(units).tolist() == [[True, False, False], [False, False, False]]
    shadow.read(units, np.array([READERS - 1]), stamps_of(2, [5]), site=12)
    (found,) = shadow.after_reads(units, known, np.array([0, 1]))
    assert (found.before, found.units.tolist(), found.which.tolist()) == ("read", [9, 10, 11], [0, 0, 0])
    shadow.write(units, stamps_of(2, [6]), site=13)
    assert shadow.after_reads(units, known, np.array([0, 1])) == []


def test_the_neighboring_writer_is_at_a_lower_unit_if_any():
    shadow = Shadow(64, 4)
    for unit, site in ((2, 7), (4, 8), (6, 9)):
        shadow.write(shadow.range(4 * unit, 4), stamps_of(0, [1]), site)
    assert [shadow.writer_beside(unit) for unit in (0, 3, 5, 9)] == [7, 7, 8, 9]


def test_timed_cells_compare_clusters_by_time():
    """In the test, there are two clusters of 4 threads, and a thread of the first cluster has written in epoch 2 at
    time 7."""
    threads, started, here = 4, np.array([5, 0]), (np.array([2]), 2)
    for lane, column, value, taken in (
        # The reading thread is in the same cluster, and its clock contains an epoch of the writing thread.
        (0, 1, 1, 0),
        (0, 1, 2, 1),
        # The reading thread is in the other cluster, and its clock contains a time of the first cluster.
        (4, 1, 9, 0),
        (4, 4, 6, 0),
        (4, 4, 7, 1),
    ):
        cells = Stamps(*(np.zeros((3, 8), dtype) for dtype in (np.int64, np.int32, np.int64)))
        clocks, warps = np.zeros((1, 8, 6), np.int32), np.zeros((1, 1, 6), np.int32)
        clocks[0, 1, 1], clocks[0, [0, 4], 0] = 2, 1
        rows = ClockRows(clocks, warps, started, 0, threads)
        assert cells.touch(*here, rows, np.array([1]), False, True, False, 0, 6, 7) == 1
        clocks[0, lane, column] = value
        read = np.array([lane]), False, False, False, 0, 10, 9
        assert cells.touch(*here, rows, *read) == taken
        assert cells.values[0].any() == bool(taken)
    started[:] = 8, 0
    assert cells.touch(*here, rows, np.array([0]), False, False, False, 0, 10, 9) == 0


def test_touch_refuses_units_outside_the_memory():
    cells = Stamps(np.zeros((3, 8), np.int64), np.zeros((3, 8), np.int32))
    clock = ClockRows(np.ones((1, 1, 1), np.int32), np.ones((1, 1, 1), np.int32), np.zeros(1, np.int64), 0, 1)
    for first, done in ((-1, 0), (7, 0), (6, 1)):
        assert cells.touch(np.array([first]), 2, clock, np.array([0]), False, True, False, -1, 6) == done
    cells = Stamps(np.zeros((3, 8), np.int64), np.zeros((3, 8), np.int32))
    assert cells.touch(np.array([17]), 2, clock, np.array([0]), False, True, False, -1, 6, 0, 7, 3) == 1
    # The bytes from offset 24 on are in the area that the cells cover.
    assert np.flatnonzero(cells.values[2]).tolist() == [3, 4]


def test_releases_limit_the_order_between_clusters():
    """In the test, there are two clusters of 4 threads. A write of the first cluster at time 7 precedes the second
    cluster only without releases."""
    cells = Stamps(*(np.zeros((3, 8), dtype) for dtype in (np.int64, np.int32, np.int64)))
    clocks, warps, started = np.zeros((1, 8, 6), np.int32), np.zeros((1, 1, 6), np.int32), np.zeros(2, np.int64)
    clocks[0, 1, 1], clocks[0, [0, 4], 0], clocks[0, 4, 4], clocks[0, 0, 1] = 2, 1, 7, 2
    rows, here = ClockRows(clocks, warps, started, 0, 4), (np.array([16]), 2)
    assert cells.touch(*here, rows, np.array([1]), False, True, False, 0, 6, 7, 0, 3) == 1
    for lane, released, follows in ((4, False, True), (4, True, False), (0, True, True), (2, False, False)):
        who = np.array([lane])
        assert cells.follow(1 << 2, *here, rows, who, released, 0, 3) == follows
        assert (cells.touch(*here, rows, who, False, False, False, 0, 10, 9, 0, 3, released) == 1) == follows
    # The two positions are outside the memory.
    for position in (-8, 56):
        assert not cells.follow(1 << 2, np.array([position]), 2, rows, np.array([4]), False, 0, 3)
