"""Tests of the lane masks of warp-wide instructions."""

import numpy as np
import pytest

from cuda_tma.simulate._sync.warp_sync import check_named
from cuda_tma.simulate._warps.faults import Fault


@pytest.mark.parametrize("mask", [0xFFFFFFFF, np.uint32(0xF0), np.full(4, 0xF0, np.uint32)])
def test_a_lane_in_its_own_mask(mask):
    check_named(np.arange(36, 40), mask)


@pytest.mark.parametrize("mask", [0, 0xE0, np.uint32(0x0F), np.full(4, 0x10, np.uint32)])
def test_a_lane_outside_of_its_own_mask(mask):
    with pytest.raises(Fault):
        check_named(np.arange(36, 40), mask)
