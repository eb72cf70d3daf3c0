"""Tests of prefetch instructions, which copy no byte, but obey the rules of copies."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void of_bytes(const char* from, int start, int size) { prefetch_bulk(from + start, size); }
extern "C" __global__ void of_row(const __grid_constant__ TensorMap map, int x) { prefetch(map, Coordinates{x}); }
extern "C" __global__ void of_box(const __grid_constant__ TensorMap map, int x, int y) {
    prefetch(map, Coordinates{x, y});
}
"""


def kinds(kernel: str, box_dim: tuple[int, ...], *arguments: int) -> list[str]:
    """Return the kinds of errors for a prefetch from 16 rows of 64 floats. If `box_dim` is empty, the kernel prefetches
    bytes instead of a box."""
    gpu, tensor = simulate.Device(), np.zeros((16, 64), np.float32)
    where = gpu.create_tensor_map(tensor, box_dim=box_dim) if box_dim else tensor
    report = gpu.launch(simulate.Config(1, 1), gpu.compile(SOURCE, kernel), where, *arguments)
    return [finding.kind for finding in report.errors]


@pytest.mark.parametrize(("start", "size"), [(0, 64), (16, 16), (0, 0), (4080, 4096)])
def test_a_prefetch_of_whole_chunks_is_right(start, size):
    assert kinds("of_bytes", (), start, size) == []


@pytest.mark.parametrize(("start", "size"), [(4, 64), (0, 100)])
def test_a_prefetch_of_parts_of_chunks_is_misaligned(start, size):
    assert kinds("of_bytes", (), start, size) == ["misaligned"]


def test_a_prefetch_of_a_box_is_right_beyond_the_tensor_too():
    assert kinds("of_box", (4, 32), 32, 4) == kinds("of_box", (4, 32), -4, 100) == []


def test_a_prefetch_with_one_coordinate_of_two_does_not_fit_the_map():
    assert kinds("of_row", (4, 32), 0) == ["map-mismatch"]


def test_a_prefetch_between_chunks_is_misaligned():
    assert kinds("of_box", (4, 32), 1, 0) == ["misaligned"]
