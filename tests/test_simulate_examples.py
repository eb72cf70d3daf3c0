"""The examples' kernels on the simulator, at sizes that reach their edges, in every order of asynchronous copies."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config

EXAMPLES = Path(__file__).parent.parent / "examples"
ORDERS = ({"order": "early"}, {"order": "late"}, {"order": "random", "seed": 1}, {"order": "random", "seed": 2})


@pytest.fixture(params=ORDERS, ids=lambda order: " ".join(map(str, order.values())))
def order(request) -> dict:
    return request.param


@pytest.fixture
def gpu() -> simulate.Device:
    return simulate.Device(multiprocessor_count=2)


def example(name: str) -> ModuleType:
    sys.path.insert(0, str(EXAMPLES))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(EXAMPLES))


def run(gpu, order, config, kernel, *arguments):
    report = gpu.launch(config, kernel, *arguments, **order)
    report.raise_for_errors()
    return report


def random_matrix(shape, dtype=np.float32):
    return np.random.default_rng(1).integers(-(2**15), 2**15, shape).astype(dtype)


def test_tiled_load(gpu, order):
    kernel = gpu.compile(example("tiled_load").SOURCE, "load_tile")
    matrix, out = random_matrix((100, 500)), np.full((32, 64), np.nan, np.float32)
    run(gpu, order, Config(1, 128), kernel, gpu.create_tensor_map(matrix, box_dim=(32, 64)), 68, 448, out)
    assert np.array_equal(out, np.pad(matrix[68:, 448:], ((0, 0), (0, 12))))


def test_copy_2d(gpu, order):
    copy = example("copy_2d")
    source = random_matrix((61, 700))
    target, taken = np.full_like(source, np.nan), np.zeros(1, np.int32)
    maps = [gpu.create_tensor_map(array, box_dim=(copy.ROWS, copy.COLUMNS)) for array in (source, target)]
    run(gpu, order, Config(6, 1), gpu.compile(copy.SOURCE, "copy"), *maps, 3, 3 * 4, taken)
    assert np.array_equal(target, source)
    assert taken[0] == 12 + 6  # each CTA looks one tile beyond the last


def test_transpose(gpu, order):
    transpose = example("transpose")
    source = random_matrix((132, 72))
    target = np.full((72, 132), np.nan, np.float32)
    maps = (
        gpu.create_tensor_map(source, box_dim=(64, 32), swizzle="128B"),
        gpu.create_tensor_map(target, box_dim=(64, 64)),
    )
    run(gpu, order, Config((3, 2), transpose.THREADS), gpu.compile(transpose.SOURCE, "transpose"), *maps)
    assert np.array_equal(target, source.T)


def test_replace_address(gpu, order):
    kernel = gpu.compile(example("replace_address").SOURCE, "sum")
    batch, total = random_matrix((96, 64), np.int32), np.zeros(2, np.int64)
    run(gpu, order, Config((2, 3), 32), kernel, gpu.create_tensor_map(batch, box_dim=(32, 32)), total[1:])
    assert total.tolist() == [0, batch.sum()]


def test_fp8_tiles(gpu, order):
    kernel = gpu.compile(example("fp8_tiles").SOURCE, "copy_tiles")
    weights = np.random.default_rng(2).integers(256, size=(128, 256)).astype(np.uint8)
    out = np.zeros_like(weights)
    descriptor = gpu.create_tensor_map(weights, box_dim=(64, 128), swizzle="128B")
    run(gpu, order, Config((2, 2), 128), kernel, descriptor, out, 256)
    assert np.array_equal(out, weights)
