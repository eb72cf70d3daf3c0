"""Tests of the related statements in a finding, because the fix may be next to a related statement instead of an
access."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

__shared__ __align__(1024) int tile[2048];
__shared__ Barrier full, empty;

extern "C" __global__ void not_initialised(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(1);  // ANOTHER
        fence_barrier_init();  // FENCE
    }
    __syncthreads();  // MET
    if (threadIdx.x == 0) {
        full.arrive();
        full.wait(0);  // WAIT
        empty.arrive();  // USE
    }
}

// Two uses that no barrier precedes, of a thread and of a copy.
extern "C" __global__ void not_met(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(2);  // INIT
        fence_barrier_init();  // FENCE
        out[0] = 1;
        full.arrive();
    }
    if (threadIdx.x == 32) full.arrive();  // USE
}
extern "C" __global__ void not_met_by_a_copy(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(1);  // INIT
        fence_barrier_init();  // FENCE
        full.arrive_expect_tx(1024);
    }
    if (threadIdx.x == 32) load(tile, map, full, Coordinates{0});  // LOAD
    if (threadIdx.x == 0) full.wait(0);
}

// The stage is released before it is read.
extern "C" __global__ void released(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(1);
        empty.init(32);
        fence_barrier_init();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            empty.wait(i % 2 ^ 1);  // WAIT
            full.arrive_expect_tx(1024);
            load(tile, map, full, Coordinates{0});  // LOAD
        }
    } else if (threadIdx.x >= 32) {
        for (int i = 0; i < 2; ++i) {
            full.wait(i % 2);
            empty.arrive();  // RELEASE
            out[threadIdx.x] = tile[threadIdx.x];  // READ
        }
    }
}

extern "C" __global__ void met_before(const __grid_constant__ TensorMap map, int* out) {
    tile[threadIdx.x] = 1;
    __syncthreads();  // MET
    out[threadIdx.x] = tile[threadIdx.x];
    tile[threadIdx.x] = 2;  // WRITE
    out[threadIdx.x] += tile[threadIdx.x ^ 32];  // READ
}

extern "C" __global__ void arrives_twice(const __grid_constant__ TensorMap map, int* out) {
    cluster_arrive();  // FIRST
    out[threadIdx.x + 64 * blockIdx.x] = 1;
    cluster_arrive();  // SECOND
    cluster_wait();
}

extern "C" __global__ void multicast(const __grid_constant__ TensorMap map, int* out) {
    const unsigned short mask = (1 << cluster_cta_count()) - 2;  // MASK
    if (threadIdx.x == 0) {
        full.init(1);  // INIT
        fence_barrier_init();
        full.arrive_expect_tx(1024);  // EXPECT
    }
    cluster_sync();
    out[threadIdx.x + 64 * blockIdx.x] = 1;
    if (threadIdx.x == 0 && cluster_cta_rank() == 0) load_multicast(tile, map, full, Coordinates{0}, mask);  // LOAD
    full.wait(0);  // WAIT
    cluster_sync();  // END
}

extern "C" __global__ void nobody_arrives(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();  // MET
    if (threadIdx.x >= 32) return;
    tile[threadIdx.x] = 1;  // WRITE
    full.wait(0);  // WAIT
}

extern "C" __global__ void written_in_part(const __grid_constant__ TensorMap map, int* out) {
    auto& a = *reinterpret_cast<Tile<BFLOAT16, Box<64, 64>, SWIZZLE_128B>*>(tile);
    for (int i = threadIdx.x; i < 2047; i += 128) tile[i] = 0;  // WRITE
    fence_proxy_async();
    __syncthreads();  // MET
    float sums[32];
    wgmma_fence(sums);
    wgmma(sums, k_major(a), k_major(a), false);  // PRODUCT
    wgmma_commit();
    wgmma_wait<0>(sums);
    out[threadIdx.x] = int(sums[0]);
}

extern "C" __global__ void stored_in_part(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x < 31) tile[threadIdx.x] = 0;  // WRITE
    fence_proxy_async();
    __syncthreads();  // MET
    if (threadIdx.x == 0) {
        store_bulk(out, tile, 128);  // STORE
        commit_group();
        wait_group_read();
    }
}

__device__ __noinline__ void wait_for(Barrier& barrier) {
    barrier.wait(0);  // WAIT
}
__device__ __noinline__ void write(int* at, int value) {
    *at = value;  // HERE
}

extern "C" __global__ void not_inlined(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x != 0) return;
    full.init(1);  // INIT
    out[0] = 1;
    wait_for(full);  // CALL
}

extern "C" __global__ void not_inlined_race(const __grid_constant__ TensorMap map, int* out) {
    __syncthreads();  // MET
    tile[threadIdx.x ^ 32] = 1;
    write(tile + threadIdx.x, int(threadIdx.x));  // CALL
}

extern "C" __global__ void two_counts(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x < 32) {
        named_barrier_sync(1, 64);  // FIRST
        out[0] = 1;
    } else {
        out[1] = 1;
        named_barrier_sync(1, 96);  // SECOND
    }
}

extern "C" __global__ void too_few(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x < 32) named_barrier_arrive(1, 96);  // ARRIVE
    else named_barrier_sync(1, 96);  // WAIT
}

extern "C" __global__ void group_left(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x != 0) return;
    full.init(1);
    fence_barrier_init();
    full.arrive_expect_tx(1024);  // ARRIVE
    load(tile, map, full, Coordinates{0});
    full.wait(0);  // WAIT
    store_bulk(out, tile, 1024);
    commit_group();  // COMMIT
    out[512] = 1;
    load(tile, map, full, Coordinates{0});  // AGAIN
    full.arrive_expect_tx(1024);
    full.wait(1);
    wait_group_read();
}

extern "C" __global__ void acquired(const __grid_constant__ TensorMap map, int* out, const TensorMap* maps) {
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        fence_tensor_map_acquire(maps[0]);  // ACQUIRE
        full.arrive_expect_tx(2048);
        load(tile, maps[0], full, Coordinates{0});
        load(tile + 256, maps[1], full, Coordinates{0});  // LOAD
        full.wait(0);
    }
}
"""
LINES = SOURCE.split("\n")
BARRIER, ARRIVED = "last barrier or wait before it", "last arrival there"
WAITER, ENDED = "last access, copy or fence of the waiting threads", "last barrier or wait of threads that have ended"


def findings_of(name: str) -> tuple[simulate.Finding, ...]:
    gpu = simulate.Device()
    source, out = np.arange(256, dtype=np.int32), np.zeros(1024, np.int32)
    arguments = [gpu.create_tensor_map(source, box_dim=(256,)), out]
    if name == "acquired":
        arguments.append(np.frombuffer(2 * bytes(arguments[0]), np.uint8).copy())
    cluster = 2 if name in ("multicast", "arrives_twice") else None
    block = 128 if name == "written_in_part" else 64
    kernel = gpu.compile(SOURCE, name)
    return gpu.launch(simulate.Config(1, block, cluster), kernel, *arguments, max_steps=50_000).findings


def mark_of(name: str, places: tuple) -> str:
    """Return the mark in the source line of a place in the kernel."""
    line = next(place.line for place in reversed(places) if place.file.endswith(f"{name}.cu"))
    return LINES[line - 1].partition("// ")[2]


@pytest.mark.parametrize(
    ("name", "kind", "at", "related"),
    [
        ("not_initialised", "barrier-use", "USE", {("another is initialized", "ANOTHER"), (BARRIER, "WAIT"),
                                                   ("last arrival there", ""), ("fence of initializations", "FENCE")}),
        ("not_met", "barrier-use", "USE", {("fence of initializations", "FENCE")}),
        ("not_met_by_a_copy", "barrier-use", "LOAD", {("fence of initializations", "FENCE")}),
        ("released", "race", "LOAD", {(BARRIER, "WAIT"), (ARRIVED, "RELEASE")}),
        ("met_before", "race", "READ", {(BARRIER, "MET")}),
        ("arrives_twice", "barrier-use", "SECOND", {("arrived before", "FIRST")}),
        ("multicast", "transaction-count", "WAIT", {
            ("initialized", "INIT"), ("bytes last expected", "EXPECT"), ("last arrival", "EXPECT"),
            ("a copy arrived at the same mbarrier of another CTA", "LOAD"),
            ("the CTAs of that copy are chosen", "MASK"),
            ("also waits", "END"), (WAITER, "LOAD")}),
        ("nobody_arrives", "deadlock", "WAIT", {("initialized", ""), (WAITER, "WRITE"), (ENDED, "MET")}),
        ("written_in_part", "uninitialized-read", "PRODUCT", {("written next to it", "WRITE"), (BARRIER, "MET")}),
        ("stored_in_part", "uninitialized-read", "STORE", {("written next to it", "WRITE"), (BARRIER, "MET")}),
        ("acquired", "missing-tensor-map-fence", "LOAD", {("another acquire of a map", "ACQUIRE")}),
        ("not_inlined", "deadlock", "WAIT", {("called", "CALL"), ("initialized", "INIT")}),
        ("not_inlined_race", "race", "HERE", {(BARRIER, "MET"), ("called", "CALL")}),
        ("two_counts", "barrier-divergence", "SECOND", {("arrived before", "FIRST")}),
        ("too_few", "deadlock", "WAIT", {("arrived before", "ARRIVE")}),
        ("group_left", "race", "AGAIN", {(BARRIER, "WAIT"), (ARRIVED, "ARRIVE"), ("its group is closed", "COMMIT")}),
    ],
)  # fmt: skip
def test_a_finding_names_related_statements(name, kind, at, related):
    findings = findings_of(name)
    finding = findings[0]
    assert (finding.kind, mark_of(name, finding.source)) == (kind, at), findings
    assert {(what, mark_of(name, places)) for what, places in finding.related} == related
    assert len(findings) == 1
