"""Tests of the records that the waits of watchdog.cuh write on the simulator."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._watchdog.memory import HEAD, RECORD

SOURCE = r"""
#include <cuda_tma/barrier.cuh>
#include <cuda_tma/fence.cuh>
using namespace cuda_tma;

__device__ void begin(Barrier& bar, unsigned char* buffer) {
    if (threadIdx.x == 0) {
        cuda_tma_watchdog.buffer = reinterpret_cast<WatchdogBuffer*>(buffer);
        bar.init(1);
        fence_barrier_init();
    }
    __syncthreads();
}
__device__ unsigned address_of(const Barrier& bar) { return static_cast<unsigned>(__cvta_generic_to_shared(&bar)); }

extern "C" __global__ void writes(unsigned char* buffer, unsigned other) {
    __shared__ Barrier bar;
    begin(bar, buffer);
    const unsigned address = address_of(bar), key = watchdog_key(address, linear_block());
    if (threadIdx.x == 0) cuda_tma_watchdog.expected[key % (1 << 13)] = {key + other, 99};
    __syncthreads();
    if (threadIdx.x % 32 == 0) watchdog_write(address, key, 0, 1, Site{NAME, 7});
}

// A thread that waits after another one of the grid has timed out; its last look is the time of its end.
extern "C" __global__ void looks(unsigned char* buffer, unsigned* last, int hung) {
    __shared__ Barrier bar;
    begin(bar, buffer);
    if (hung && threadIdx.x == 0) *const_cast<volatile unsigned*>(&cuda_tma_watchdog.hung_grid) = grid_id();
    __syncwarp();
    const unsigned since = milliseconds();
    if (threadIdx.x == 0)
        for (Deadline deadline;; __nanosleep(1 << 20)) {
            *last = milliseconds() - since;
            deadline.check(&bar, 0, Site::here());
        }
}
"""
GUARD = 0xAB


def buffer_of(capacity: int) -> np.ndarray:
    """Return memory for several watchdog records, followed by one record of guard bytes."""
    memory = np.full(HEAD.itemsize + (capacity + 1) * RECORD.itemsize, GUARD, np.uint8)
    memory[: -RECORD.itemsize] = 0
    memory[: HEAD.itemsize].view(HEAD)["capacity"] = capacity
    return memory


def launched(name: str, memory: np.ndarray, *arguments: object, file: str = "/a/gemm.cu", warps: int = 4) -> np.ndarray:
    gpu = simulate.Device(sanitize=False)
    defines = {"CUDA_TMA_WATCHDOG_MS": 500, "NAME": f'"{file}"'}
    gpu.launch(simulate.Config(1, 32 * warps), gpu.compile(SOURCE, name, defines=defines), memory, *arguments)
    assert (memory[-RECORD.itemsize :] == GUARD).all()
    return memory[HEAD.itemsize : -RECORD.itemsize].view(RECORD)


@pytest.mark.parametrize("capacity", [0, 1, 3, 4])
def test_a_full_buffer_counts_further_records_and_does_not_write_them(capacity):
    memory = buffer_of(capacity)
    records = launched("writes", memory, 0)
    assert memory[: HEAD.itemsize].view(HEAD)["count"] == 4
    assert records["is_whole"].tolist() == [1] * capacity and {*records["line"].tolist()} <= {7}


@pytest.mark.parametrize("length", [1, 58, 59, 60, 90])
def test_a_long_name_of_a_file_is_cut_within_its_record(length):
    memory = buffer_of(2)
    first, second = launched("writes", memory, 0, file="/folder/" + "n" * length, warps=2)
    assert first["file"] == second["file"] == b"n" * min(length, 59)
    assert first["module"] == second["module"] == 0 and first.tobytes()[-1] == 0


@pytest.mark.parametrize(("other", "bytes_"), [(0, 99), (1 << 13, 0)])
def test_the_bytes_of_another_barrier_are_not_reported(other, bytes_):
    (record,) = launched("writes", buffer_of(1), other, warps=1)
    assert record["expected_bytes"] == bytes_


@pytest.mark.parametrize(("hung", "first", "stop"), [(0, 500, 510), (1, 0, 10)])
def test_a_wait_ends_at_its_deadline_or_soon_after_another_one(hung, first, stop):
    last = np.zeros(1, np.uint32)
    (record,) = launched("looks", buffer_of(1), last, hung, warps=1)
    assert (record["is_whole"], record["lanes"]) == (1, 1)
    # The bounds are numbers of milliseconds.
    assert first <= last[0] < stop
