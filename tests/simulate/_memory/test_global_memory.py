"""Tests of the segments of global memory, which the simulator finds by their addresses."""

from __future__ import annotations

import contextlib

import numpy as np

from cuda_tma.simulate._memory.global_memory import Former, GlobalMemory, Segment
from tests.simulate._memory._guarded import CountedLock


def segment(start: int, size: int = 64) -> Segment:
    return Segment(start, np.zeros(size, np.uint8), f"at {start}")


def test_a_memory_takes_over_segments_in_any_order():
    memory = GlobalMemory()
    memory.add(segment(5000))
    memory.restore([segment(9000), segment(1000)], [Former(100, 200, "gone", "")], 10_000)
    assert [each.start for each in memory] == [1000, 5000, 9000]
    assert [memory.find(address) is not None for address in (999, 1000, 1063, 1064, 9063)] == [
        False,
        True,
        True,
        False,
        True,
    ]
    assert (memory.former(150).name, memory.next_address) == ("gone", 10_000)


def test_a_memory_takes_over_many_segments_in_one_step():
    """The test adds all segments at once, because each single addition would copy the list."""
    memory, starts = GlobalMemory(), range(0, 256 * 200_000, 256)
    data = np.zeros(64, np.uint8)
    memory.restore([Segment(start, data, "") for start in starts], [], starts.stop)
    assert memory.find(starts[150_000] + 63).start == starts[150_000]
    assert memory.find(starts[150_000] + 64) is None


def test_each_change_of_the_table_holds_the_lock():
    """A change of the table takes several steps. Without a lock, a concurrent change would lose a segment."""
    memory, one = GlobalMemory(), segment(1000)
    memory._lock = lock = CountedLock()
    uses = []
    for change in (
        lambda: memory.add(one),
        lambda: memory.remove(one, "freed"),
        lambda: memory.restore([one], [], 5000),
        lambda: memory.allocate(np.zeros(8, np.uint8), "new"),
        lambda: memory.formers,
        lambda: memory.former(1000),
    ):
        before = lock.uses
        change()
        uses.append(lock.uses - before)
    assert uses == [1, 1, 1, 2, 1, 1]
    assert memory.former(1000).name == "at 1000" and memory.find(5000).name == "new"


def test_segments_are_held_until_an_error():
    memory = GlobalMemory()
    with contextlib.suppress(KeyError), memory.holding(segment(1000), segment(2000)):
        assert memory.find(1000) is not None and memory.find(2063) is not None
        raise KeyError
    assert [*memory] == []
