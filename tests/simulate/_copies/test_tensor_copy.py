"""Tests of boxes whose address in shared memory is not a multiple of the swizzle's period."""

from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma import TensorSpec, params_of
from cuda_tma.simulate._copies import tensor_copy

REPEATS = {"NONE": 1, "32B": 256, "64B": 512, "128B": 1024}


@pytest.mark.parametrize("swizzle", [*REPEATS])
@pytest.mark.parametrize("position", [0, 128, 256, 384, 640, 896, 1024])
def test_a_store_reverses_the_order_of_a_load(swizzle, position):
    columns = {"NONE": 32, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    params = params_of(TensorSpec((64, 128), "uint8"), box_dim=(16, columns), swizzle=swizzle)
    image = np.random.default_rng(1).permutation(16 * columns).astype(np.uint16)
    tile = SimpleNamespace(smem=image, written=np.arange(len(image)))
    shifted, written = tensor_copy._shifted(params, position, tile)
    assert np.array_equal(tensor_copy._unshifted(params, position, shifted), image)
    assert np.array_equal(image[written], shifted)
    assert np.array_equal(shifted, image) == (position % REPEATS[swizzle] == 0)
