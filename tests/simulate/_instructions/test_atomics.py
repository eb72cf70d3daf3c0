"""Tests of atomics by many threads at few addresses. The simulator's vectorized results equal the results in
sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma import simulate
from cuda_tma.simulate import Config
from cuda_tma.simulate._instructions._in_turn import in_turn
from cuda_tma.simulate._instructions.atomics import _OPS

INTEGERS = ("add", "and", "or", "xor", "min", "max", "exch", "cas", "inc", "dec")


def one_after_the_other(view, items, sources, combine):
    """Compute the results of atomic operations in sequence, one element after another."""
    old = np.empty(len(items), view.dtype)
    for lane, item in enumerate(items):
        old[lane] = view[item]
        view[item : item + 1] = combine(view[item : item + 1], *(source[lane : lane + 1] for source in sources))
    return old


@pytest.mark.parametrize("op", INTEGERS)
@settings(deadline=None, max_examples=30)
@given(st.data())
def test_integers_are_combined_one_after_the_other(op, data):
    dtype = data.draw(st.sampled_from([np.uint32, np.int32, np.uint64]))
    lanes, places = data.draw(st.integers(1, 60)), data.draw(st.integers(1, 5))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    low = np.array(int(draw.integers(2)) * (int(np.iinfo(dtype).max) - 2), dtype)
    numbers = lambda count: low + draw.integers(0, 4, count).astype(dtype)  # noqa: E731
    sources = [numbers(lanes) for _ in range(2 if op == "cas" else 1)]
    view, items = numbers(places), draw.integers(0, places, lanes)
    expected, combine = view.copy(), _OPS[op]
    with np.errstate(all="ignore"):
        found = one_after_the_other(expected, items, sources, combine)
        assert in_turn(view, items, sources, combine, op).tolist() == found.tolist()
    assert view.tolist() == expected.tolist()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("special", [1.0, np.nan, np.inf, 1e-42])
def test_floats_are_added_one_after_the_other(dtype, special):
    """For atomic additions of floats, the simulator rounds after each addition."""
    draw = np.random.default_rng(5)
    values = (draw.standard_normal(500) * 10.0 ** draw.integers(-6, 6, 500)).astype(dtype)
    values[250] = special
    flushed = lambda a, b: np.where(np.abs(b) < 1e-38, 0, b).astype(dtype) + a  # noqa: E731
    view, expected, items = np.zeros(2, dtype), np.zeros(2, dtype), draw.integers(0, 2, 500)
    found = one_after_the_other(expected, items, [values], flushed)
    assert in_turn(view, items, [values], flushed, "add").tobytes() == found.tobytes()
    assert view.tobytes() == expected.tobytes()


SOURCE = r"""
// A lock for each thread, also of a warp, because its threads are scheduled one by one.
extern "C" __global__ void locked(int* o) {
    while (atomicCAS(o, 0, 1)) {}
    __threadfence();
    o[1] += 1;
    __threadfence();
    atomicExch(o, 0);
}
extern "C" __global__ void handed(volatile int* o) {  // from thread to thread of a warp
    while (o[0] != threadIdx.x) {}
    o[1] = o[1] * 3 + threadIdx.x;
    __threadfence();
    o[0] = threadIdx.x + 1;
}
extern "C" __global__ void counted(unsigned* o, float* sum) {
    atomicAdd(o + blockIdx.x % 2, 1u);
    atomicAdd(sum, 0.5f);
}
"""


def test_threads_of_a_warp_take_a_lock_in_turn():
    gpu = simulate.Device(sanitize=False)
    o = np.zeros(2, np.int32)
    report = gpu.launch(Config(2, 64), gpu.compile(SOURCE, "locked"), o, max_steps=100_000)
    assert report.findings == () and o.tolist() == [0, 128]
    o[:] = 0
    report = gpu.launch(Config(1, 32), gpu.compile(SOURCE, "handed"), o, max_steps=100_000)
    expected = 0
    for thread in range(32):
        expected = expected * 3 + thread
    assert report.findings == () and o.tolist() == [32, (expected + 2**31) % 2**32 - 2**31]


def test_a_counter_of_all_threads():
    gpu, o, total = simulate.Device(), np.zeros(2, np.uint32), np.zeros(1, np.float32)
    gpu.launch(Config(200, 1024), gpu.compile(SOURCE, "counted"), o, total).raise_for_errors()
    assert o.tolist() == [102400, 102400] and total[0] == 102400
