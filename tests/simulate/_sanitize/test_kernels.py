"""Tests of small kernels. A complete kernel has no finding, and the same kernel without one statement has a finding."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/cluster.cuh>
#include <cuda_tma/warpgroup.cuh>
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;

__shared__ __align__(1024) int tile[4096];
__shared__ Barrier full, empty;
__shared__ __align__(128) TensorMap map;

__device__ void start(unsigned consumers) {
    if (threadIdx.x == 0) { full.init(1); empty.init(consumers); fence_barrier_init(); }
    __syncthreads();
}

extern "C" __global__ void warp(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = 1;
    if (RIGHT) __syncwarp();
    out[threadIdx.x] = tile[threadIdx.x ^ 1];  // HERE
}

extern "C" __global__ void named(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = 1;
    if (threadIdx.x < 64) {
        named_barrier_sync(RIGHT ? 1 : 1 + threadIdx.x / 32, RIGHT ? 64 : 32);
        out[threadIdx.x] = tile[threadIdx.x ^ 32];  // HERE
    }
}

extern "C" __global__ void ring(const __grid_constant__ TensorMap source, int* out) {  // arrives for its warp
    start(blockDim.x / 32 - 1);
    if (threadIdx.x >= blockDim.x - 32) {
        if (threadIdx.x % 32 == 0)
            for (int i = 0; i < 3; ++i) {
                empty.wait(i & 1 ^ 1);
                full.arrive_expect_tx(1024);
                load(tile, source, full, Coordinates{0});
            }
    } else {
        for (int i = 0; i < 3; ++i) {
            full.wait(i & 1);
            out[threadIdx.x] = tile[threadIdx.x];  // HERE
            fence_proxy_async();
            if (RIGHT) __syncwarp();
            if (threadIdx.x % 32 == 0) empty.arrive();
        }
    }
}

extern "C" __global__ void fence_of_readers(const __grid_constant__ TensorMap source, int* out) {
    start(blockDim.x);
    for (int i = 0; i < 3; ++i) {
        if (threadIdx.x == 0) {
            full.arrive_expect_tx(1024);
            load(tile, source, full, Coordinates{0});  // HERE
        }
        full.wait(i & 1);
        out[threadIdx.x] = tile[threadIdx.x];
        if (RIGHT) fence_proxy_async();
        __syncthreads();
    }
}

extern "C" __global__ void init_fence(const __grid_constant__ TensorMap source, int* out) {
    if (threadIdx.x == 0) {
        full.init(1);
        if (RIGHT) fence_barrier_init();
        full.arrive_expect_tx(1024);
        load(tile, source, full, Coordinates{0});  // HERE
    }
    __syncthreads();
    full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void old_copy(const __grid_constant__ TensorMap source, int* out) {
    const unsigned to = smem_address(tile + 4 * threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(out + 4 * threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (RIGHT) asm volatile("cp.async.wait_group 0;" ::: "memory");
    out[threadIdx.x + 512] = tile[4 * threadIdx.x];  // HERE
}

extern "C" __global__ void __cluster_dims__(2) remote(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = threadIdx.x;
    cluster_sync();
    unsigned place;
    int value;
    const unsigned other = cluster_cta_rank() ^ 1, here = smem_address(tile + threadIdx.x);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(place) : "r"(here), "r"(other));
    asm volatile("ld.shared::cluster.s32 %0, [%1];" : "=r"(value) : "r"(place) : "memory");  // HERE
    if (RIGHT) cluster_sync();
    out[32 * blockIdx.x + threadIdx.x] = value;
}

extern "C" __global__ void landing(const __grid_constant__ TensorMap source, int* out) {
    start(1);
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(1024);
        load(tile, source, full, Coordinates{0});  // HERE
        if (RIGHT) full.wait(0);
    }
}

extern "C" __global__ void changed_map(const __grid_constant__ TensorMap source, int* out) {
    start(1);
    TensorMap* made = reinterpret_cast<TensorMap*>(out + 1024);
    const unsigned at = smem_address(&map);
    if (threadIdx.x < 32) {
        reinterpret_cast<int*>(&map)[threadIdx.x] = reinterpret_cast<const int*>(&source)[threadIdx.x];
        __syncwarp();
        if (threadIdx.x == 0)
            asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "r"(at), "l"(out));
        // as in Triton, without __syncwarp(): the whole warp executes the copy
        asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                     "[%0], [%1], 128;" :: "l"(made), "r"(at) : "memory");
        if (threadIdx.x == 0) {
            if (RIGHT) fence_tensor_map_acquire(*made);
            full.arrive_expect_tx(1024);
            load(tile, *made, full, Coordinates{0});  // HERE
        }
    }
    full.wait(0);
    out[threadIdx.x + 512] = tile[threadIdx.x];
}

extern "C" __global__ void map_in_place(const __grid_constant__ TensorMap source, int* out) {
    start(1);
    TensorMap* made = reinterpret_cast<TensorMap*>(out + 1024);
    if (threadIdx.x < 32)
        reinterpret_cast<int*>(made)[threadIdx.x] = reinterpret_cast<const int*>(&source)[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;"
                     :: "l"(made), "l"(out) : "memory");
        if (RIGHT) fence_tensor_map_release();
        fence_tensor_map_acquire(*made);
        full.arrive_expect_tx(1024);
        load(tile, *made, full, Coordinates{0});  // HERE
    }
    full.wait(0);
    out[threadIdx.x + 512] = tile[threadIdx.x];
}

extern "C" __global__ void unwritten(const __grid_constant__ TensorMap source, int* out) {
    if (RIGHT || threadIdx.x != 5) tile[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];  // HERE
}

extern "C" __global__ void flags(const __grid_constant__ TensorMap source, int* out) {  // from block 0 to block 1
    if (blockIdx.x == 0) {
        out[threadIdx.x] = 1;
        __syncthreads();
        if (RIGHT) __threadfence();
        if (threadIdx.x == 0) atomicExch(out + 512, 1);
    } else {
        if (threadIdx.x == 0) while (atomicAdd(out + 512, 0) == 0) continue;
        __threadfence();
        __syncthreads();
        out[threadIdx.x + 256] = out[threadIdx.x];  // HERE
    }
}

extern "C" __global__ void written_then_loaded(const __grid_constant__ TensorMap source, int* out) {
    start(1);
    out[threadIdx.x] = 1;
    if (RIGHT) fence_proxy_async_global();
    __syncthreads();
    if (threadIdx.x == 0) {
        full.arrive_expect_tx(128);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"  // HERE
                     :: "r"(smem_address(tile)), "l"(out), "r"(full.address()) : "memory");
    }
    full.wait(0);
}

extern "C" __global__ void fenced_in_shared(const __grid_constant__ TensorMap source, int* out) {
    start(1);
    out[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (RIGHT) fence_proxy_async_all();   // the copying thread may execute the fence, too
        else fence_proxy_async();
        full.arrive_expect_tx(128);
        load_bulk(tile, out, 128, full);  // HERE
    }
    full.wait(0);
}

extern "C" __global__ void fenced_in_global(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = 1;
    if (RIGHT) fence_proxy_async();
    else fence_proxy_async_global();
    __syncthreads();
    if (threadIdx.x == 0) {
        store_bulk(out, tile, 128);  // HERE
        commit_group();
        wait_group_read<0>();
    }
}

extern "C" __global__ void reduced_then_read(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = 1;
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) reduce_bulk<Reduction::add, BulkType::u32>(out, tile, 128);
        commit_group();
        if (RIGHT) wait_group<0>();
        else wait_group_read<0>();
    }
    __syncthreads();
    atomicAdd(out + threadIdx.x + 256, 1);
    out[threadIdx.x + 512] = out[threadIdx.x];  // HERE
}

extern "C" __global__ void zeroed_then_reduced(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = 1;
    fence_proxy_async();
    __syncthreads();
    out[threadIdx.x] = 0;
    fence_proxy_async_global();
    if (RIGHT) __syncthreads();
    if (threadIdx.x == 0) {
        reduce_bulk<Reduction::add, BulkType::u32>(out, tile, 256);  // HERE
        commit_group();
        wait_group_read<0>();
    }
}

extern "C" __global__ void stored_then_read(const __grid_constant__ TensorMap source, int* out) {
    tile[threadIdx.x] = 1;
    fence_proxy_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 128;"
                     :: "l"(out), "r"(smem_address(tile)) : "memory");
        commit_group();
        if (RIGHT) wait_group<0>();
        else wait_group_read<0>();
    }
    __syncthreads();
    out[threadIdx.x + 512] = out[threadIdx.x];  // HERE
}

__device__ void multiply(int* out, bool fence, bool wait) {
    for (int i = threadIdx.x; i < 4096; i += blockDim.x) tile[i] = 0;
    fence_proxy_async();
    __syncthreads();
    float sums[32] = {};
    if (fence) wgmma_fence();
    const auto* a = reinterpret_cast<const char*>(tile);
    wgmma(sums, MatrixOf<Input::bf16>{k_major(a)}, MatrixOf<Input::bf16>{k_major(a + 8192)});
    wgmma_commit();
    if (wait) wgmma_wait<0>();
    __syncthreads();
    tile[threadIdx.x] = 1;  // AGAIN
    wgmma_wait<0>();
    out[threadIdx.x] = sums[0];
}
extern "C" __global__ void product_fence(const __grid_constant__ TensorMap source, int* out) {
    multiply(out, RIGHT, true);  // HERE
}
extern "C" __global__ void product_wait(const __grid_constant__ TensorMap source, int* out) {
    multiply(out, true, RIGHT);  // HERE
}
"""
# For each kernel, the table contains the number of CTAs and threads, and the finding if a statement is missing.
KERNELS = {
    "warp": (1, 32, "race", "error"),
    "named": (1, 64, "race", "error"),
    "ring": (1, 96, "race", "error"),
    "fence_of_readers": (1, 64, "missing-proxy-fence", "advice"),
    "init_fence": (1, 32, "missing-proxy-fence", "advice"),
    "old_copy": (1, 32, "race", "error"),
    "remote": (2, 32, "early-exit", "error"),
    "landing": (1, 32, "early-exit", "error"),
    "changed_map": (1, 64, "missing-tensor-map-fence", "error"),
    "map_in_place": (1, 64, "missing-tensor-map-fence", "error"),
    "flags": (2, 32, "race", "error"),
    "written_then_loaded": (1, 32, "missing-proxy-fence", "error"),
    "fenced_in_shared": (1, 32, "missing-proxy-fence", "error"),
    "fenced_in_global": (1, 32, "missing-proxy-fence", "error"),
    "reduced_then_read": (1, 32, "race", "error"),
    "zeroed_then_reduced": (1, 64, "race", "error"),
    "stored_then_read": (1, 32, "race", "error"),
    "unwritten": (1, 64, "uninitialized-read", "error"),
    "product_fence": (1, 128, "wgmma-order", "error"),
    "product_wait": (1, 128, "race", "error"),
}
LINES = SOURCE.split("\n")


def launched(name: str, right: bool, **settings: object) -> simulate.Report:
    gpu = simulate.Device(**settings)
    grid, block, *_ = KERNELS[name]
    source, out = np.arange(256, dtype=np.int32), np.zeros(2048, np.int32)
    kernel = compiled(name, right)
    return gpu.launch(simulate.Config(grid, block), kernel, gpu.create_tensor_map(source, box_dim=(256,)), out)


@cache
def compiled(name: str, right: bool) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE, name, defines={"RIGHT": int(right)})


def marked(name: str) -> int:
    first = next(number for number, text in enumerate(LINES) if f" {name}(" in text and "__global__" in text)
    return next(number for number, text in enumerate(LINES[first:], first + 1) if "// HERE" in text)


@pytest.mark.parametrize("name", KERNELS)
def test_a_right_kernel_has_no_finding(name):
    assert launched(name, True, schedules=4, strict=True).findings == ()


@pytest.mark.parametrize("name", KERNELS)
def test_a_missing_statement_is_found(name):
    *_, kind, severity = KERNELS[name]
    finding = launched(name, False).findings[0]
    assert (finding.kind, finding.severity) == (kind, severity)
    lines = {place.line for place in (*finding.source, *finding.other) if place.file.endswith(f"{name}.cu")}
    assert marked(name) in lines
    assert "PTX ISA" in finding.message and "Remedy: " in finding.message


@pytest.mark.parametrize("order", ["late", "random"])
def test_a_load_without_a_wait_is_found_when_it_completes(order):
    gpu, out = simulate.Device(), np.zeros(2048, np.int32)
    source = gpu.create_tensor_map(np.arange(256, dtype=np.int32), box_dim=(256,))
    report = gpu.launch(simulate.Config(1, 32), compiled("landing", False), source, out, order=order)
    assert [finding.kind for finding in report.findings] == ["early-exit"]


@pytest.mark.parametrize("name", ["fence_of_readers", "init_fence"])
def test_a_disputed_finding_is_an_error_if_strict(name):
    assert {finding.severity for finding in launched(name, False, strict=True).findings} == {"error"}
