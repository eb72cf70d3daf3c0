"""Launches that are watched. Here an array stands for the GPU's memory, and a function for its kernel."""

from __future__ import annotations

import numpy as np
import pytest

import cuda_tma
from cuda_tma import simulate
from cuda_tma._launch.nvrtc import compile_source
from cuda_tma.simulate import Config, _watch

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<4, 8>>;
extern "C" __global__ void twice(const __grid_constant__ TiledMap<Window> map, float* out) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, map, full, Coordinates{0, 0});
    }
    __syncthreads();
    full.wait(0);
    out[threadIdx.x] = 2 * tile(threadIdx.x / 8, threadIdx.x % 8);
}
"""


class Memory:
    """The allocations of a GPU, as `_allocations` gives them."""

    arrays: tuple[np.ndarray, ...] = ()

    def __init__(self):
        self.found: dict[int, np.ndarray] = {}

    def add(self, address):
        for array in self.arrays:
            if array.ctypes.data <= address < array.ctypes.data + array.nbytes:
                self.found[array.ctypes.data] = array

    @property
    def size(self):
        return sum(array.nbytes for array in self.found.values())

    def copies(self):
        return {address: array.reshape(-1).view(np.uint8).copy() for address, array in self.found.items()}


@pytest.fixture
def gpu(monkeypatch):
    """A kernel, its input and output, and what a launch on the GPU calls."""
    compiled = compile_source(SOURCE, "twice", target="compute_90a")
    kernel = simulate.Device().compile(SOURCE, "twice")
    given = np.zeros(32 + 4, np.float32)
    given = given[-given.ctypes.data % 16 // 4 :][:32].reshape(4, 8)  # a map's tensor begins at a multiple of 16
    given += np.arange(32).reshape(4, 8)
    out = np.zeros(32, np.float32)
    monkeypatch.setattr(Memory, "arrays", (given, out))
    monkeypatch.setattr(_watch, "Allocations", Memory)
    monkeypatch.setattr(_watch, "compiled_of", lambda of: compiled if of is kernel else None)
    launches = []
    monkeypatch.setattr(cuda_tma, "launch", lambda *arguments: launches.append(arguments) or launch())

    def launch():
        out[:] = 2 * given.ravel()
        out[3] += error[0]

    error = [0]
    params = cuda_tma.params_of(given, kernel.parameters["map"].map_type.options)
    return kernel, cuda_tma.encode(params), out, launches, error


def test_both_leave_the_same(gpu):
    kernel, tensor_map, out, launches, _ = gpu
    before = cuda_tma.launch
    with simulate.watch() as found:
        cuda_tma.launch("stream", {"grid": 1, "block": 32}, kernel, tensor_map, out.ctypes.data)
    assert cuda_tma.launch is before and len(launches) == 1
    (watched,) = found
    assert (watched.kernel, watched.skipped, watched.differences, watched.report.findings) == ("twice", "", (), ())
    assert out[:4].tolist() == [0, 2, 4, 6]


def test_a_difference_is_named(gpu):
    kernel, tensor_map, out, _, error = gpu
    error[0] = 1
    with simulate.watch() as found:
        cuda_tma.launch("stream", Config(1, 32), kernel, tensor_map, out.ctypes.data)
    ((difference,),) = [watched.differences for watched in found]
    at = out.ctypes.data + 12
    assert (difference.count, difference.address, difference.allocation) == (1, at + 2, out.ctypes.data)
    assert str(difference).startswith(
        f"1 bytes differ in the allocation at 0x{out.ctypes.data:x}, the first at 0x{at + 2:x}"
    )


def test_what_is_not_watched_says_why(gpu):
    kernel, tensor_map, out, launches, _ = gpu
    with simulate.watch(most_bytes=100) as found:
        cuda_tma.launch("stream", Config(1, 32), kernel, tensor_map, out.ctypes.data)
        cuda_tma.launch("stream", Config(1, 32), object())
    assert [watched.report for watched in found] == [None, None] and len(launches) == 2
    assert found[0].skipped == "its arguments name 256 bytes, more than most_bytes=100"
    assert "compile it by cuda_tma.compile" in found[1].skipped
