"""Tests of grids that overlap with the preceding grid (PDL), and of cooperative grids."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config
from tests.simulate._third_party import INCLUDES, TOOLKIT

CHAIN = r"""
__device__ int at() { return blockIdx.x * blockDim.x + threadIdx.x; }
extern "C" __global__ void first(int* a) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    for (int i = 0; i < 20; ++i) __nanosleep(1000);
    a[at()] += 1;
}
extern "C" __global__ void next(const int* a, int* b) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    const int before = b[at()];
    asm volatile("griddepcontrol.wait;" ::: "memory");
    b[at()] = 2 * a[at()] + before;
}
extern "C" __global__ void forgets(const int* a, int* b) { b[at()] = 2 * a[at()]; }
extern "C" __global__ void says_nothing(int* a) { a[at()] += 1; }
"""
BY_ONE = r"""
__device__ int at() { return blockIdx.x * blockDim.x + threadIdx.x; }
extern "C" __global__ void first(int* a) { a[at()] += 1; }
extern "C" __global__ void by_one(const int* a, int* b) {
    if (threadIdx.x == 0) asm volatile("griddepcontrol.wait;" ::: "memory");
    if (RIGHT) __syncthreads();
    b[at()] = a[at()];
}
extern "C" __global__ void reads(const int* a, int* b) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    for (int i = 0; i < 20; ++i) __nanosleep(1000);
    b[at()] = a[at()];
}
extern "C" __global__ void writes(int* a) { a[at()] = 1; }
"""
# The smallest device in these tests runs the grid in more than one wave.
CTAS, THREADS = 40, 64
EARLY = Config(CTAS, THREADS, programmatic_stream_serialization=True)
PLAIN = Config(CTAS, THREADS)


@pytest.fixture(scope="module")
def chain():
    gpu = simulate.Device(multiprocessor_count=1)
    names = ("first", "next", "forgets", "says_nothing")
    return gpu, {name: gpu.compile(CHAIN, name) for name in names}


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_a_waiting_kernel_sees_all_writes_of_the_preceding_one(chain, order):
    gpu, kernels = chain
    for seed in range(4):
        a, b, c = (np.zeros(CTAS * THREADS, np.int32) for _ in "abc")
        launches = [
            (PLAIN, kernels["first"], a), (EARLY, kernels["next"], a, b), (EARLY, kernels["next"], b, c),
            (PLAIN, kernels["first"], a), (EARLY, kernels["next"], a, b),
        ]  # fmt: skip
        reports = gpu.launch_all(launches, order=order, seed=seed)
        assert [report.findings for report in reports] == [()] * 5
        assert {*a} == {2} and {*b} == {2 + 4} and {*c} == {4}


def test_a_kernel_without_a_wait_reads_old_data(chain):
    gpu, kernels = chain
    left = {}
    for order, config in (("early", EARLY), ("late", EARLY), ("late", PLAIN)):
        a, b = (np.zeros(CTAS * THREADS, np.int32) for _ in "ab")
        gpu.launch_all([(PLAIN, kernels["first"], a), (config, kernels["forgets"], a, b)], order=order)
        left[order, config] = {*b.tolist()}
    # Only the CTAs of the first wave have ended and written their results.
    assert left["early", EARLY] == left["late", PLAIN] == {2} and 0 in left["late", EARLY]


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_a_missing_wait_is_a_race(chain, order):
    gpu, kernels = chain
    a, b = (np.zeros(CTAS * THREADS, np.int32) for _ in "ab")
    reports = gpu.launch_all([(PLAIN, kernels["first"], a), (EARLY, kernels["forgets"], a, b)], order=order)
    assert [report.findings for report in reports[:1]] == [()]
    (race,) = reports[1].findings
    lines = CHAIN.split("\n")
    assert race.kind == "race" and "no griddepcontrol.wait before this access" in race.message
    assert "forgets" in lines[race.source[-1].line - 1] and lines[race.other[-1].line - 1] == "    a[at()] += 1;"
    plain = gpu.launch_all([(PLAIN, kernels["first"], a), (PLAIN, kernels["forgets"], a, b)], order=order)
    assert [report.findings for report in plain] == [(), ()]


@pytest.mark.parametrize("order", ["early", "late"])
def test_one_thread_waits_for_its_block(order):
    """If one thread waits for the preceding grid, a barrier after the wait orders the accesses of the whole block."""
    gpu, found = simulate.Device(), {}
    for right in (1, 0):
        names = ("first", "by_one")
        first, by_one = (gpu.compile(BY_ONE, name, defines={"RIGHT": right}) for name in names)
        a, b = (np.zeros(4 * THREADS, np.int32) for _ in "ab")
        early = Config(4, THREADS, programmatic_stream_serialization=True)
        reports = gpu.launch_all([(Config(4, THREADS), first, a), (early, by_one, a, b)], order=order)
        found[right] = [finding.kind for report in reports for finding in report.findings]
    assert found == {1: [], 0: ["race"]}


def test_data_that_the_preceding_kernel_reads_is_not_overwritten(chain):
    """The sanitizer reports a write to data that the preceding kernel may still read."""
    gpu = simulate.Device()
    reads, writes = (gpu.compile(BY_ONE, name, defines={"RIGHT": 1}) for name in ("reads", "writes"))
    a, b = (np.zeros(4 * THREADS, np.int32) for _ in "ab")
    early = Config(4, THREADS, programmatic_stream_serialization=True)
    reports = gpu.launch_all([(Config(4, THREADS), reads, a, b), (early, writes, a)], order="late")
    assert reports[0].findings == ()
    (race,) = reports[1].findings
    assert "writes global memory" in race.message and "which the preceding grid reads" in race.message


def test_a_kernel_that_signals_nothing_ends_first(chain):
    gpu, kernels = chain
    a, b = (np.zeros(CTAS * THREADS, np.int32) for _ in "ab")
    gpu.launch_all([(PLAIN, kernels["says_nothing"], a), (EARLY, kernels["forgets"], a, b)], order="late")
    assert {*b.tolist()} == {2}


def test_an_error_ends_the_row(chain):
    gpu, kernels = chain
    a, b = (np.zeros(CTAS * THREADS, np.int32) for _ in "ab")
    launches = [(PLAIN, kernels["first"], a), (EARLY, kernels["next"], 0, b), (EARLY, kernels["next"], a, b)]
    reports = gpu.launch_all(launches, order="late")
    assert [len(report.errors) for report in reports] == [0, 1] and reports[1].errors[0].kind == "out-of-bounds"


COOPERATIVE = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void turn(int* o) {
    auto grid = cg::this_grid();
    const int me = grid.thread_rank(), count = grid.size();
    o[me] = me;
    grid.sync();
    const int seen = o[(me + 64) % count];
    grid.sync();
    o[me] = seen;
}
"""


@pytest.mark.skipif(not (INCLUDES and TOOLKIT), reason="the CUDA toolkit's headers are not here")
@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_a_grid_meets(order):
    gpu, o = simulate.Device(multiprocessor_count=2), np.zeros(48 * 64, np.int32)
    kernel = gpu.compile(COOPERATIVE, "turn", options=[f"-I{path}" for path in (*INCLUDES, *TOOLKIT)])
    report = gpu.launch(Config(48, 64, is_cooperative=True), kernel, o, order=order)
    assert report.findings == () and np.array_equal(o, np.roll(np.arange(48 * 64), -64))
    # The device cannot run all CTAs of the grid at the same time.
    (finding,) = gpu.launch(Config(48, 64), kernel, o, order=order).findings
    assert finding.kind == "fault"
    with pytest.raises(ValueError, match="is_cooperative=True: all 80 CTAs must run at the same time, but 2 multiproc"):
        gpu.launch(Config(80, 64, is_cooperative=True), kernel, o)


@pytest.mark.parametrize(("name", "kinds"), [("next", []), ("forgets", ["race"])])
def test_a_sequence_under_several_schedules(name, kinds):
    """After a sequence of launches, memory contains the results of the first schedule, in which each kernel begins
    after the preceding kernel has ended."""
    gpu = simulate.Device(multiprocessor_count=2, schedules=4)
    first, then, last = (gpu.compile(CHAIN, each) for each in ("first", name, "says_nothing"))
    a, b = (np.zeros(4 * THREADS, np.int32) for _ in "ab")
    plain, early = Config(4, THREADS), Config(4, THREADS, programmatic_stream_serialization=True)
    reports = gpu.launch_all([(plain, first, a), (early, then, a, b), (plain, last, a)])
    assert [[finding.kind for finding in report.findings] for report in reports] == [[], kinds, []][: 3 - len(kinds)]
    assert len(reports[1].schedules) == 4
    np.testing.assert_array_equal(a, 2 - len(kinds))
    np.testing.assert_array_equal(b, 2)


WIDE = r"""
extern "C" __global__ void first(int4* a) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    for (int i = 0; i < 20; ++i) __nanosleep(1000);
    a[threadIdx.x] = {1, 2, 3, 4};
}
extern "C" __global__ void last_of_each(int* a, int* b) {
#ifdef RIGHT
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
    b[threadIdx.x] = a[4 * threadIdx.x + 3];
}
"""


@pytest.mark.parametrize("defines", [{}, {"RIGHT": 1}])
def test_all_bytes_of_a_wide_store_count(defines):
    gpu = simulate.Device()
    first, then = (gpu.compile(WIDE, name, defines=defines) for name in ("first", "last_of_each"))
    a, b = np.zeros(128, np.int32), np.zeros(32, np.int32)
    early = Config(1, 32, programmatic_stream_serialization=True)
    reports = gpu.launch_all([(Config(1, 32), first, a), (early, then, a, b)])
    kinds = {finding.kind for report in reports for finding in report.findings}
    assert kinds == (set() if defines else {"race"})
