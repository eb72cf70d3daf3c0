"""Tests of operations that race with a later access or with the exit of their CTA, and of the remedies."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

TWO_ACTORS = r"""
#include <cuda_tma/bulk.cuh>
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

// A tile is loaded, changed in place and stored, repeatedly.
extern "C" __global__ void changed_in_place(const __grid_constant__ TensorMap map) {
    __shared__ __align__(128) int tile[256];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();
    for (int i = blockIdx.x; i < 8; i += 2) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(1024);
            load(tile, map, full, Coordinates{256 * i});
        }
        full.wait(i >> 1 & 1);
        tile[threadIdx.x] += 1;  // CHANGE
        fence_proxy_async();
        __syncthreads();
        if (threadIdx.x == 0) {
            store(map, Coordinates{256 * i}, tile);
            commit_group();
            wait_group_read<KEPT>();
        }
    }
    if (threadIdx.x == 0) wait_group_read<0>();
}

// Each CTA sends its values to the next one, and ends.
extern "C" __global__ void sent_to_the_next(int* out) {
    __shared__ __align__(16) int mine[32], got[32];
    __shared__ Barrier full;
    const unsigned rank = cluster_cta_rank();
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(128);
    }
    mine[threadIdx.x] = rank;
    fence_proxy_async();
    cluster_sync();
    if (threadIdx.x == 0) send_bulk(got, (rank + 1) % 4, mine, 128, full);  // SEND
    full.wait_cluster(0);
    out[32 * rank + threadIdx.x] = got[threadIdx.x];
    if (KEPT == 0) cluster_sync();
}  // END
"""

LINES = TWO_ACTORS.split("\n")


@cache
def compiled(name: str, kept: int) -> simulate.Kernel:
    return simulate.Device().compile(TWO_ACTORS, name, defines={"KEPT": kept})


def launched(name: str, kept: int, **settings: object) -> simulate.Report:
    gpu, out = simulate.Device(schedules=4, **settings), np.zeros(2048, np.int32)
    if name == "sent_to_the_next":
        return gpu.launch(simulate.Config(1, 32, 4), compiled(name, kept), out)
    return gpu.launch(simulate.Config(2, 256), compiled(name, kept), gpu.create_tensor_map(out, box_dim=(256,)))


@pytest.mark.parametrize("name", ["changed_in_place", "sent_to_the_next"])
def test_a_right_kernel_has_no_error(name):
    assert launched(name, 0).errors == ()


def test_a_write_during_the_threads_own_store_needs_a_wait():
    found = launched("changed_in_place", 1).findings
    (own,) = [each for each in found if "the same thread at" in each.message and each.kind == "race"]
    assert own.message.startswith("the TMA copy that thread 0 (warp 0) issued reads 1024 bytes at `tile`")
    assert LINES[own.other[-1].line - 1].endswith("// CHANGE")
    assert "execute wait_group_read<0>()" in own.remedy


def test_a_cta_that_ends_before_its_copy_has_read_is_an_error():
    (finding,) = launched("sent_to_the_next", 1).findings
    assert (finding.kind, finding.severity) == ("early-exit", "error")
    assert "ends while the bulk copy may still read its shared memory: nothing orders its end after" in finding.message
    assert finding.remedy.startswith("execute a cluster barrier (cluster_sync()) at the end")
    assert LINES[finding.source[-1].line - 1].endswith("// SEND")
