"""Tests of the segments of global memory, which are found by their addresses."""

from __future__ import annotations

import numpy as np

from cuda_tma.simulate._memory.global_memory import Former, GlobalMemory, Segment


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
    """Single additions would each copy the list, and take minutes."""
    memory, starts = GlobalMemory(), range(0, 256 * 200_000, 256)
    data = np.zeros(64, np.uint8)
    memory.restore([Segment(start, data, "") for start in starts], [], starts.stop)
    assert memory.find(starts[150_000] + 63).start == starts[150_000]
    assert memory.find(starts[150_000] + 64) is None
