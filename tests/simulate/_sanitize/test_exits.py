"""Tests of cp.async copies that are pending when their block ends."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

HEAD = r"""
__shared__ int tile[2][256];
__shared__ unsigned long long ready;
__device__ unsigned at(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }
__device__ void copy(int stage, const int* from) {
    const unsigned to = at(&tile[stage][threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Most> __device__ void wait() { asm volatile("cp.async.wait_group %0;" :: "n"(Most) : "memory"); }
__device__ void wait_all() { asm volatile("cp.async.wait_all;" ::: "memory"); }
__device__ void init() {
    if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 64;" :: "r"(at(&ready)) : "memory");
    __syncthreads();
}
__device__ void arrive() {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(at(&ready)) : "memory");
}
__device__ void wait_for_barrier() {
    asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra L; }"
                 :: "r"(at(&ready)) : "memory");
}
extern "C" __global__ void kernel(const int* in, int* out) {
    in += threadIdx.x;
"""
WRONG = {
    "one_group_too_many": "copy(0, in); commit(); copy(1, in); commit(); wait<1>(); *out = tile[0][threadIdx.x] * 0;",
    "never_waited_for": "copy(0, in); commit();",
    "group_not_closed": "copy(0, in); wait<0>();",
    "behind_the_last_wait": "copy(0, in); commit(); wait<0>(); if (threadIdx.x == 3) copy(1, in);",
    "barrier_not_waited_for": "init(); copy(0, in); arrive();",
    "behind_the_arrival": "init(); copy(0, in); arrive(); copy(1, in); wait_for_barrier();",
}
RIGHT = {
    "all_groups": "copy(0, in); commit(); copy(1, in); commit(); wait<0>();",
    "empty_groups_stay": "copy(0, in); commit(); commit(); commit(); wait<2>();",
    "without_a_group": "copy(0, in); wait_all();",
    "one_thread_waits_for_the_barrier": "init(); copy(0, in); arrive(); if (threadIdx.x == 5) wait_for_barrier();",
    "all_wait_for_the_barrier": "init(); copy(0, in); copy(1, in); arrive(); wait_for_barrier();",
}


def launched(body: str, threads: int = 64) -> simulate.Report:
    gpu = simulate.Device(schedules=4)
    kernel = gpu.compile(HEAD + body + "\n}", "kernel")
    return gpu.launch(simulate.Config(2, threads), kernel, np.arange(256, dtype=np.int32), np.zeros(256, np.int32))


@pytest.mark.parametrize("name", WRONG)
def test_a_pending_copy_is_an_early_exit(name: str) -> None:
    (finding,) = [each for each in launched(WRONG[name]).errors if each.kind == "early-exit"]
    assert "no thread has waited for it" in finding.message
    assert "cp.async.wait_all" in finding.remedy


@pytest.mark.parametrize("name", RIGHT)
def test_a_copy_that_a_thread_waits_for_has_no_error(name: str) -> None:
    assert [each for each in launched(RIGHT[name]).errors if each.kind == "early-exit"] == []


def test_each_thread_of_a_large_block_leaves_a_copy_pending() -> None:
    """Each thread with a pending copy adds a column to the sanitizer's clocks. The test's 256 columns exceed the
    reserved columns."""
    (finding,) = [each for each in launched("copy(0, in);", 256).errors if each.kind == "early-exit"]
    assert "no thread has waited for it" in finding.message
