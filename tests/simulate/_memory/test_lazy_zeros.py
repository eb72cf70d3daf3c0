"""A test of arrays of zeros whose untouched pages take no memory."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from cuda_tma.simulate._memory.lazy_zeros import lazy_zeros


@pytest.mark.parametrize("shape", [(3, 5), (0, 4), (1,)])
def test_zeros_of_a_shape(shape):
    made = lazy_zeros(shape, np.int32)
    assert (made.shape, made.dtype, made.flags.writeable) == (shape, np.int32, True)
    assert not made.any()


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_one_element_takes_one_page():
    def resident_bytes() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) << 12

    made = lazy_zeros((1 << 14, 1 << 12), np.uint8)
    before = resident_bytes()
    made[::64, 0] = 1
    assert resident_bytes() - before < 8 << 20
    assert made.sum() == 256
