"""Tests of TMA kernels without this package's header: CCCL's ``cuda::ptx``, ``cuda::barrier`` and cooperative groups,
as in the CUDA C++ Programming Guide, and plain inline PTX."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config
from tests.simulate._third_party import INCLUDES, TOOLKIT

ORDERS = ({"order": "early"}, {"order": "late"}, {"order": "random", "seed": 7})

SOURCE = r"""
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace ptx = cuda::ptx;
using barrier = cuda::barrier<cuda::thread_scope_block>;
#pragma nv_diag_suppress static_var_with_dynamic_init

struct alignas(64) Map { char bytes[128]; };

extern "C" __global__ void add_one(int* data, size_t offset) {
    __shared__ alignas(16) int tile[1024];
    __shared__ barrier bar;
    if (threadIdx.x == 0) { init(&bar, blockDim.x); ptx::fence_proxy_async(ptx::space_shared); }
    __syncthreads();
    if (threadIdx.x == 0) cuda::memcpy_async(tile, data + offset, cuda::aligned_size_t<16>(sizeof tile), bar);
    bar.wait(bar.arrive());
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) tile[i] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, data + offset, tile, sizeof tile);
        ptx::cp_async_bulk_commit_group();
        ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
}

extern "C" __global__ void add_numbers(const __grid_constant__ Map map, int x, int y) {
    __shared__ alignas(128) int tile[32][16];
    __shared__ barrier bar;
    if (threadIdx.x == 0) { init(&bar, blockDim.x); ptx::fence_proxy_async(ptx::space_shared); }
    __syncthreads();
    const int32_t at[2] = {x, y};
    barrier::arrival_token token;
    if (threadIdx.x == 0) {
        ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &map, at,
                                  cuda::device::barrier_native_handle(bar));
        token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
    } else {
        token = bar.arrive();
    }
    bar.wait(std::move(token));
    for (int i = threadIdx.x; i < 32 * 16; i += blockDim.x) tile[i / 16][i % 16] += i;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x) return;
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &map, at, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
}

extern "C" __global__ void sums(float* out) {
    __shared__ alignas(16) float tile[64];
    for (int i = threadIdx.x; i < 64; i += blockDim.x) tile[i] = i;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x) return;
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, out, tile, sizeof tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

extern "C" __global__ void groups(int* out) {
    const auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    const int sum = cg::reduce(tile, int(threadIdx.x), cg::plus<int>());
    auto cluster = cg::this_cluster();
    __shared__ int mine;
    if (threadIdx.x == 0) mine = 100 * blockIdx.x;
    cluster.sync();
    const int theirs = *cluster.map_shared_rank(&mine, (cluster.block_rank() + 1) % cluster.num_blocks());
    cluster.sync();
    cuda::atomic_ref<int, cuda::thread_scope_device>(out[0]).fetch_add(1, cuda::memory_order_relaxed);
    out[1 + blockIdx.x * blockDim.x + threadIdx.x] = sum + 1000 * theirs;
}

extern "C" __global__ void tiles_of_warps(int* out) {  // they meet in shared memory that the system reserves
    __shared__ cg::block_tile_memory<256> memory;
    auto block = cg::this_thread_block(memory);
    auto tile = cg::tiled_partition<64>(block);
    const int rank = block.thread_rank();
    const int total = cg::reduce(tile, rank, cg::plus<int>());
    out[rank] = total + 100000 * tile.shfl(rank, 3);
}

extern "C" __global__ void sent(int* out) {
    using cuda::ptx::sem_release; using cuda::ptx::sem_acquire;
    __shared__ alignas(16) int box[4];
    __shared__ uint64_t bar;
    auto cluster = cg::this_cluster();
    const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
    if (threadIdx.x == 0) {
        ptx::mbarrier_init(&bar, 1);
        ptx::mbarrier_arrive_expect_tx(sem_release, ptx::scope_cluster, ptx::space_shared, &bar, sizeof box);
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        const int values[4] = {int(blockIdx.x), 5, 6, 7};
        ptx::st_async(cluster.map_shared_rank(box, next), values, cluster.map_shared_rank(&bar, next));
    }
    while (!ptx::mbarrier_try_wait_parity(sem_acquire, ptx::scope_cluster, &bar, 0)) {}
    if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = box[threadIdx.x];
    cluster.sync();
}

// Without any header: a ring of two stages, two warps.
extern "C" __global__ void ring(const float* from, float* to, int tiles) {
    __shared__ alignas(128) float stage[2][64];
    __shared__ alignas(8) unsigned long long full[2], empty[2];
    const auto at = [](void* p) { return (unsigned)__cvta_generic_to_shared(p); };
    const auto wait = [&](unsigned long long* b, unsigned parity) {
        asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra.uni done; "
                     "bra.uni again; done: }" :: "r"(at(b)), "r"(parity) : "memory");
    };
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2; ++i) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(at(&full[i])));
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" :: "r"(at(&empty[i])));
        }
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (threadIdx.x == 32) {
        for (int i = 0; i < tiles; ++i) {
            if (i >= 2) wait(&empty[i % 2], i / 2 % 2 ^ 1);
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 256;" :: "r"(at(&full[i % 2])) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
                         :: "r"(at(stage[i % 2])), "l"(from + 64 * i), "r"(at(&full[i % 2])) : "memory");
        }
    } else if (threadIdx.x < 32) {
        for (int i = 0; i < tiles; ++i) {
            wait(&full[i % 2], i / 2 % 2);
            for (int j = threadIdx.x; j < 64; j += 32) to[64 * i + j] = 2 * stage[i % 2][j];
            asm volatile("fence.proxy.async; mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(&empty[i % 2])));
        }
    }
}
"""

pytestmark = pytest.mark.skipif(not (INCLUDES and TOOLKIT), reason="CCCL's headers are not installed")


@pytest.fixture(scope="module")
def gpu() -> simulate.Device:
    return simulate.Device()


@pytest.fixture(scope="module")
def ptx(gpu) -> str:
    folders = dict.fromkeys(map(str, (*INCLUDES[:1], *TOOLKIT[:1])))
    return gpu.compile(SOURCE, "add_one", options=[f"-I{folder}" for folder in folders]).ptx


@pytest.fixture(params=ORDERS, ids=lambda order: order["order"])
def run(request, gpu, ptx):
    return lambda name, config, *given: gpu.launch(
        config, gpu.load(ptx, name), *given, **request.param
    ).raise_for_errors()


def test_bytes_in_and_out(run):
    data = np.arange(4096, dtype=np.int32)
    run("add_one", Config(1, 128), data, 1024)
    assert np.array_equal(data - np.arange(4096), np.repeat([0, 1, 0, 0], 1024))


def test_a_box_in_and_out(run, gpu):
    matrix = np.zeros((100, 64), np.int32)
    run("add_numbers", Config(1, 96), gpu.create_tensor_map(matrix, box_dim=(32, 16)), 16, 70)
    expected = np.zeros_like(matrix)
    expected[70:, 16:32] = np.arange(512).reshape(32, 16)[:30]
    assert np.array_equal(matrix, expected)


def test_reductions(run):
    out = np.full(64, 0.5, np.float32)
    run("sums", Config(3, 32), out)
    assert np.array_equal(out, 3 * np.arange(64) + np.float32(0.5))


def test_cooperative_groups(run):
    out = np.zeros(1 + 4 * 64, np.int32)
    run("groups", Config(2, 64, cluster=2), out)
    eighths = np.add.reduceat(np.arange(64), np.arange(0, 64, 8)).repeat(8)
    assert out[0] == 256
    assert np.array_equal(out[1:].reshape(4, 64), eighths + 1000 * np.array([[100], [0], [300], [200]]))


def test_tiles_of_several_warps(run):
    out, ranks = np.zeros(256, np.int32), np.arange(256)
    run("tiles_of_warps", Config(1, 256), out)
    first = ranks // 64 * 64
    np.testing.assert_array_equal(out, 64 * first + 63 * 32 + 100000 * (first + 3))


def test_values_sent_to_another_cta(run):
    out = np.zeros((4, 4), np.int32)
    run("sent", Config(2, 32, cluster=2), out)
    assert out.tolist() == [[block, 5, 6, 7] for block in (1, 0, 3, 2)]


def test_a_ring_of_inline_ptx(run):
    source, target = np.arange(7 * 64, dtype=np.float32), np.zeros(7 * 64, np.float32)
    run("ring", Config(1, 64), source, target, 7)
    assert np.array_equal(target, 2 * source)
