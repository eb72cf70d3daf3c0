"""Tests of unordered stores of several threads to one word. The stores are a race if the values differ, and otherwise
advice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._device.schedules import _merged
from cuda_tma.simulate._findings import Finding

SOURCE = r"""
__shared__ int word, other;
__device__ void read_back(int* out) { __syncthreads(); out[8 + threadIdx.x] = word + other; }

extern "C" __global__ void blocks(int* out, int k) { out[0] = k * blockIdx.x; }
extern "C" __global__ void warps(int* out, int k) { out[0] = k * threadIdx.x; }
extern "C" __global__ void waves(int* out, int k) { if (threadIdx.x == 0) out[0] = k * blockIdx.x; }
extern "C" __global__ void pairs(int* out, int k) { reinterpret_cast<int2*>(out)[0] = {1, k * int(threadIdx.x)}; }
extern "C" __global__ void floats(float* out, int k) { out[0] = k ? threadIdx.x : __int_as_float(0x7fc00000); }
extern "C" __global__ void later(int* out, int k) {
    if (threadIdx.x < 32) { out[0] = 1; out[1] = out[2] + 1; }
    else out[0] = 1 + k;
}
extern "C" __global__ void shared(int* out, int k) { other = 0; word = k * threadIdx.x; read_back(out); }
extern "C" __global__ void shared_later(int* out, int k) {
    if (threadIdx.x < 32) { word = 1; other = out[2]; }
    else word = 1 + k;
    read_back(out);
}
__shared__ __align__(16) int rows[32];
__device__ void store_rows(int value) {
    unsigned row = static_cast<unsigned>(__cvta_generic_to_shared(rows + 4 * (threadIdx.x % 8)));
    asm volatile("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%0], {%1};" ::"r"(row), "r"(value) : "memory");
}
extern "C" __global__ void matrices(int* out, int k) {
    store_rows(k * (threadIdx.x / 32));
    __syncthreads();
    out[8 + threadIdx.x] = rows[threadIdx.x % 32];
}
extern "C" __global__ void matrices_later(int* out, int k) {
    if (threadIdx.x < 32) { store_rows(1); out[1] = out[2] + 1; }
    else store_rows(1 + k);
    __syncthreads();
    out[8 + threadIdx.x] = rows[threadIdx.x % 32];
}
extern "C" __global__ void plain_and_atomic(int* out, int k) {
    if (threadIdx.x < 32) word = k;
    else atomicAdd(&word, 1);
    other = 0;
    read_back(out);
}
// Right for each k.
extern "C" __global__ void lanes(int* out, int k) { if (threadIdx.x < 32) out[0] = k * threadIdx.x; }
extern "C" __global__ void shared_lanes(int* out, int k) {
    if (threadIdx.x < 32) word = k * threadIdx.x;
    if (threadIdx.x == 0) other = 0;
    read_back(out);
}
extern "C" __global__ void volatiles(int* out, int k) { *(volatile int*)out = k * threadIdx.x; }
extern "C" __global__ void atomics(int* out, int k) { atomicExch(out, k * threadIdx.x + blockIdx.x); }
extern "C" __global__ void in_order(int* out, int k) {
    if (threadIdx.x < 32) out[0] = 1;
    __syncthreads();
    if (threadIdx.x >= 32) out[0] = 1 + k;
}
"""
GPU = simulate.Device(multiprocessor_count=1)
STRICT = simulate.Device(multiprocessor_count=1, strict=True, schedules=3)
WRONG = ["blocks", "warps", "waves", "pairs", "floats", "later", "shared", "shared_later", "matrices", "matrices_later"]


def found(name: str, k: int, gpu: simulate.Device = GPU) -> list[tuple[str, str]]:
    kernel, out = gpu.compile(SOURCE, name), np.zeros(128, np.float32 if name == "floats" else np.int32)
    grid = {"blocks": 4, "atomics": 4, "waves": 40}.get(name, 1)
    report = gpu.launch(simulate.Config(grid, 64), kernel, out, k)
    return [(finding.kind, finding.severity) for finding in report.findings]


@pytest.mark.parametrize("name", WRONG)
def test_different_values_are_a_race(name):
    assert ("race", "error") in found(name, 1)


@pytest.mark.parametrize("name", [name for name in WRONG if name != "shared"])
def test_the_same_value_is_advice_and_an_error_if_strict(name):
    assert set(found(name, 0)) == {("race", "advice")}
    assert set(found(name, 0, STRICT)) == {("race", "error")}


@pytest.mark.parametrize("name", ["lanes", "shared_lanes", "volatiles", "atomics", "in_order"])
def test_one_warp_strong_stores_and_ordered_stores_have_no_finding(name):
    assert found(name, 1, STRICT) == found(name, 0, STRICT) == []


def test_the_message_names_the_other_block_and_the_remedy():
    kernel, out = GPU.compile(SOURCE, "blocks"), np.zeros(8, np.int32)
    (finding,) = GPU.launch(simulate.Config(2, 1), kernel, out, 0).findings
    assert "a thread of another block at blocks.cu" in finding.message and "the same value there" in finding.message
    assert "write the value in one thread only" in finding.message


def test_an_atomic_races_with_a_plain_store():
    assert ("race", "error") in found("plain_and_atomic", 1)


IN_ROUNDS = r"""
extern "C" __global__ void shared(int* out, const int* values) {  // round 0 writes equal values, round 1 may not
    __shared__ int last;
    for (int i = 0; i < 2; ++i) {
        if (threadIdx.x % 32 == 0) last = values[i * 2 + threadIdx.x / 32];
        __syncthreads();
        out[threadIdx.x] += last;
        __syncthreads();
    }
}
extern "C" __global__ void blocks(int* out, const int* values) {
    for (int i = 0; i < 2; ++i) out[i] = values[i * 2 + blockIdx.x];
}
extern "C" __global__ void unrolled(int* out, const int* values) {
    #pragma unroll
    for (int i = 0; i < 2; ++i) out[i] = values[i * 2 + blockIdx.x];
}
"""


@pytest.mark.parametrize("name", ["shared", "blocks", "unrolled"])
@pytest.mark.parametrize(
    ("values", "severities"),
    [([1, 1, 2, 2], {"advice"}), ([1, 1, 2, 3], {"error"}), ([2, 3, 1, 1], {"error"})],
)
def test_an_error_replaces_advice_on_the_same_statements(name: str, values: list[int], severities: set[str]) -> None:
    kernel = GPU.compile(IN_ROUNDS, name)
    config = simulate.Config(1 if name == "shared" else 2, 64 if name == "shared" else 1)
    report = GPU.launch(config, kernel, np.zeros(64, np.int32), np.array(values, np.int32))
    races = [finding for finding in report.findings if finding.kind == "race"]
    assert {finding.severity for finding in races} == severities
    assert [finding.count for finding in races] == [2 if severities == {"advice"} else 1]


def test_an_error_of_a_later_schedule_replaces_advice() -> None:
    advice = Finding("race", "advice", "", (), (), (), 7)
    error = replace(advice, severity="error", message="another")
    assert _merged([(advice,), (error,)]) == (error,)
    assert _merged([(error,), (advice,)]) == (error,)
