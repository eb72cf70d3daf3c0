"""Tests of the simulator's copies of a GPU's allocations. The total size of the copies is limited."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma.simulate._memory import allocations
from cuda_tma.simulate._memory.copied_memory import CopiedMemory

PAGE = 4096


@pytest.fixture
def two_pages(monkeypatch) -> CopiedMemory:
    """Return a memory for copies of at most two allocations of one page each."""
    monkeypatch.setattr(allocations, "allocation", lambda address: (address // PAGE * PAGE, PAGE))
    monkeypatch.setattr(allocations, "copied", lambda address, size: np.full(size, address // PAGE, np.uint8))
    return CopiedMemory(2 * PAGE)


def test_an_allocation_is_copied_once(two_pages):
    found = two_pages.find(7 * PAGE + 5)
    assert (found.start, len(found.bytes), int(found.bytes[5])) == (7 * PAGE, PAGE, 7)
    assert two_pages.find(7 * PAGE) is found and two_pages.find(8 * PAGE - 1) is found


def test_the_limit_holds_for_the_sum_of_all_allocations(two_pages):
    assert [two_pages.find(page * PAGE).start for page in (3, 5)] == [3 * PAGE, 5 * PAGE]
    with pytest.raises(ValueError, match="it can access 12288 bytes, more than most_bytes=8192"):
        two_pages.find(9 * PAGE)
    assert two_pages.find(5 * PAGE + 1).start == 5 * PAGE
