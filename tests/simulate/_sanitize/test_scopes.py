"""Tests of the scopes of a release and an acquire, which order two threads if each scope includes the other thread."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/scope.cuh>
#include <cuda_tma/store_async.cuh>
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

__shared__ int part[32];
__shared__ Barrier ready;

// One block writes and sets a flag; another reads after that.
template <typename Set, typename Wait>
__device__ void flag(int* out, Set set, Wait wait) {
    unsigned* word = reinterpret_cast<unsigned*>(out + 512);
    if (blockIdx.x == 0) {
        out[threadIdx.x] = 1;
        __syncthreads();
        if (threadIdx.x == 0) set(word);
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0) wait(word);
        __syncthreads();
        out[threadIdx.x + 256] = out[threadIdx.x];
    }
}
template <Scope Where>
__device__ void spin(unsigned* word) { while (load_acquire<Where>(word) == 0) __nanosleep(100); }

extern "C" __global__ void gpu_flag(int* out) {
    flag(out, [](unsigned* word) { store_release(word, 1u); }, spin<Scope::gpu>);
}
extern "C" __global__ void __cluster_dims__(2) cluster_flag(int* out) {
    flag(out, [](unsigned* word) { store_release<Scope::cluster>(word, 1u); }, spin<Scope::cluster>);
}
extern "C" __global__ void cta_release(int* out) {
    flag(out, [](unsigned* word) { store_release<Scope::cta>(word, 1u); }, spin<Scope::gpu>);
}
extern "C" __global__ void cta_acquire(int* out) {
    flag(out, [](unsigned* word) { store_release(word, 1u); }, spin<Scope::cta>);
}
extern "C" __global__ void cluster_release(int* out) {   // the two are in different clusters
    flag(out, [](unsigned* word) { store_release<Scope::cluster>(word, 1u); }, spin<Scope::gpu>);
}
extern "C" __global__ void cta_fence(int* out) {
    flag(out, [](unsigned* word) { __threadfence_block(); atomicExch(word, 1u); }, spin<Scope::gpu>);
}
extern "C" __global__ void gpu_fence(int* out) {
    flag(out, [](unsigned* word) { __threadfence(); atomicExch(word, 1u); }, spin<Scope::gpu>);
}
extern "C" __global__ void cta_fence_in_a_cta(int* out) {
    if (threadIdx.x == 0) { out[0] = 1; __threadfence_block(); atomicExch(out + 512, 1); }
    if (threadIdx.x == 32) {
        while (atomicAdd(out + 512, 0) == 0) __nanosleep(100);
        __threadfence_block();
        out[1] = out[0];
    }
}

// A release to a second block, which releases to a third, is visible to the third.
extern "C" __global__ void passed_on(int* out) {
    unsigned *first = reinterpret_cast<unsigned*>(out + 512), *second = first + 1;
    if (threadIdx.x) return;
    if (blockIdx.x == 0) {
        out[0] = 1;
        store_release(first, 1u);
    } else if (blockIdx.x == 1) {
        spin<Scope::gpu>(first);
        store_release(second, 1u);
    } else {
        spin<Scope::gpu>(second);
        out[1] = out[0];
    }
}

// The last block adds the values of all blocks.
template <typename Count>
__device__ void last_block(int* out, Count count) {
    __shared__ bool is_last;
    out[blockIdx.x * 32 + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) is_last = count(reinterpret_cast<unsigned*>(out + 2000)) == gridDim.x - 1;
    __syncthreads();
    if (!is_last) return;
    int sum = 0;
    for (int b = 0; b < gridDim.x; ++b) sum += out[b * 32 + threadIdx.x];
    out[1536 + threadIdx.x] = sum;
}
extern "C" __global__ void last_by_fences(int* out) {
    last_block(out, [](unsigned* n) {
        __threadfence();
        const unsigned before = atomicAdd(n, 1u);
        __threadfence();
        return before;
    });
}
extern "C" __global__ void last_by_acq_rel(int* out) { last_block(out, [](unsigned* n) { return fetch_add(n, 1u); }); }
extern "C" __global__ void last_by_nothing(int* out) { last_block(out, [](unsigned* n) { return atomicAdd(n, 1u); }); }

// A CTA signals the other one of its cluster that it has written, or read.
enum { RIGHT, NARROW_ARRIVAL, NARROW_WAIT };
template <int Bug, bool Reads>
__device__ void tell_peer(int* out) {
    if (threadIdx.x == 0) { ready.init(32); fence_barrier_init(); }
    if (Reads) part[threadIdx.x] = 7;
    cluster_sync();
    if (cluster_cta_rank() == 1) {
        if (Reads) out[threadIdx.x] = part[threadIdx.x];
        else part[threadIdx.x] = threadIdx.x;
        if (Bug == NARROW_ARRIVAL) ready.in_cta(0).release_async_read();
        else ready.arrive_at(0);
    } else {
        if (Bug == NARROW_WAIT) ready.wait(0);
        else ready.wait_cluster(0);
        const unsigned there = cluster_address(&part[threadIdx.x], 1);
        int value = 0;
        if (Reads) asm volatile("st.shared::cluster.s32 [%0], %1;" :: "r"(there), "r"(value) : "memory");
        else asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(there) : "memory");
        out[64 + threadIdx.x] = value;
    }
    cluster_sync();
}
// A CTA sends values, by st.async, to the other one, or to itself.
template <int Bug>
__device__ void send_peer(int* out, unsigned to) {
    if (threadIdx.x == 0) {
        ready.init(1);
        fence_barrier_init();
        ready.arrive_expect_tx(cluster_cta_rank() == to ? sizeof(part) : 0);
    }
    cluster_sync();
    if (cluster_cta_rank() == 1) store_async(reinterpret_cast<unsigned*>(part) + threadIdx.x, to, threadIdx.x, ready);
    if (cluster_cta_rank() == to) {
        if (Bug == NARROW_WAIT) ready.wait(0);
        else ready.wait_cluster(0);
        out[threadIdx.x] = part[threadIdx.x];
    }
    cluster_sync();
}
extern "C" __global__ void __cluster_dims__(2) sent(int* out) { send_peer<RIGHT>(out, 0); }
extern "C" __global__ void __cluster_dims__(2) sent_waited(int* out) { send_peer<NARROW_WAIT>(out, 0); }
extern "C" __global__ void __cluster_dims__(2) sent_home(int* out) { send_peer<NARROW_WAIT>(out, 1); }
// A thread that has waited with the scope of the cluster releases the sent values to others.
extern "C" __global__ void __cluster_dims__(2) sent_on(int* out) {
    if (threadIdx.x == 0) {
        ready.init(1);
        fence_barrier_init();
        ready.arrive_expect_tx(cluster_cta_rank() == 0 ? sizeof(part) : 0);
    }
    cluster_sync();
    if (cluster_cta_rank() == 1 && threadIdx.x < 32)
        store_async(reinterpret_cast<unsigned*>(part) + threadIdx.x, 0, threadIdx.x, ready);
    if (threadIdx.x == 0) ready.wait_cluster(0);
    __syncthreads();
    if (cluster_cta_rank() == 0 && threadIdx.x >= 32) {
        ready.wait(0);
        out[threadIdx.x] = part[threadIdx.x - 32];
    }
    cluster_sync();
}
extern "C" __global__ void __cluster_dims__(2) peer_writes(int* out) { tell_peer<RIGHT, false>(out); }
extern "C" __global__ void __cluster_dims__(2) peer_writes_narrow(int* out) { tell_peer<NARROW_ARRIVAL, false>(out); }
extern "C" __global__ void __cluster_dims__(2) peer_writes_waited(int* out) { tell_peer<NARROW_WAIT, false>(out); }
extern "C" __global__ void __cluster_dims__(2) peer_reads(int* out) { tell_peer<RIGHT, true>(out); }
extern "C" __global__ void __cluster_dims__(2) peer_reads_narrow(int* out) { tell_peer<NARROW_ARRIVAL, true>(out); }
"""


@cache
def compiled(name: str) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE, name)


def launched(name: str, grid: int = 2, block: int = 32, **settings: object) -> simulate.Report:
    gpu = simulate.Device(**settings)
    return gpu.launch(simulate.Config(grid, block), compiled(name), np.zeros(2048, np.int32))


@pytest.mark.parametrize(
    "name", ["gpu_flag", "cluster_flag", "gpu_fence", "peer_writes", "peer_reads", "sent", "sent_home"]
)
def test_scopes_that_include_both_threads_are_right(name):
    assert launched(name, strict=True, schedules=4).findings == ()


def test_a_fence_of_the_cta_is_enough_in_a_cta():
    assert launched("cta_fence_in_a_cta", grid=1, block=64, strict=True, schedules=4).findings == ()


@pytest.mark.parametrize("name", ["cta_release", "cta_acquire", "cluster_release", "cta_fence"])
def test_scopes_without_the_other_thread_are_a_race(name):
    *of_flag, of_data = launched(name).errors
    assert of_data.kind == "race" and "nothing orders the two" in of_data.message
    # The accesses to the flag have a sufficient scope in the kernel cta_fence.
    assert len(of_flag) == (name != "cta_fence")
    assert all("does not include the other's thread" in finding.message for finding in of_flag)


@pytest.mark.parametrize("name", ["peer_writes_narrow", "peer_writes_waited"])
def test_an_mbarrier_of_another_cta_needs_the_scope_of_the_cluster(name):
    (finding,) = launched(name).errors
    assert finding.kind == "race" and "of scope .cta orders the two, but they are in different CTAs" in finding.message
    assert "mbarrier.arrive.release.cluster" in finding.message and "wait_cluster()" in finding.message


def test_sent_values_may_be_released_again():
    assert launched("sent_on", block=64, strict=True, schedules=4).findings == ()


def test_a_wait_for_values_of_another_cta_needs_the_scope_of_the_cluster():
    """The rule that a wait for another CTA's st.async needs cluster scope is disputed. For bytes of a copy, a wait of
    CTA scope is sufficient."""
    (finding,) = launched("sent_waited").findings
    assert (finding.kind, finding.severity) == ("race", "advice")
    assert "st.async at sent_waited.cu:" in finding.message and "wait_cluster()" in finding.message
    assert [finding.kind for finding in launched("sent_waited", strict=True).errors] == ["race"]


def test_reads_before_a_narrow_arrival_are_disputed():
    assert [finding.severity for finding in launched("peer_reads_narrow").findings] == ["advice"]
    assert [finding.kind for finding in launched("peer_reads_narrow", strict=True).errors] == ["race"]


def test_a_release_is_transitive():
    assert launched("passed_on", grid=3, strict=True, schedules=4).findings == ()


# With 1 multiprocessor, the CTAs run in waves. With 8 multiprocessors, all CTAs run at the same time.
@pytest.mark.parametrize("multiprocessors", [1, 8])
@pytest.mark.parametrize("name", ["last_by_fences", "last_by_acq_rel"])
def test_the_last_block_follows_all_others(name, multiprocessors):
    report = launched(name, grid=40, strict=True, schedules=3, multiprocessor_count=multiprocessors)
    assert report.findings == ()


def test_a_relaxed_counter_does_not_order_the_last_block():
    assert {finding.kind for finding in launched("last_by_nothing", grid=40).errors} == {"race"}
