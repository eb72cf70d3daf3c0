"""Tests of asynchronous copies on the simulator.

For each form and each order of completion, the results equal those of NumPy and of the emulator."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cuda_tma import TensorMapIm2colOptions, emulate, simulate
from cuda_tma.simulate import Config
from cuda_tma.testing import view_bytes

ORDERS = ({"order": "early"}, {"order": "late"}, {"order": "random", "seed": 3})

SOURCE = r"""
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;

template <typename Issue>
__device__ void fetch(Barrier& full, unsigned bytes, Issue issue) {
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(bytes);
    }
    cluster_sync();
    if (threadIdx.x == 0) issue();
    full.wait(0);
}
__device__ void show(const char* tile, char* out, int bytes) {
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) out[blockIdx.x * bytes + i] = tile[i];
    __syncwarp();
    cluster_sync();
}
__device__ char* fill(char* tile, const char* from, int bytes) {
    for (int i = threadIdx.x; i < bytes; i += blockDim.x) tile[i] = from[blockIdx.x * bytes + i];
    fence_proxy_async();
    __syncthreads();
    return tile;
}
#define TILE __shared__ alignas(1024) char tile[8192]; __shared__ Barrier full;

extern "C" __global__ void load_at(const __grid_constant__ TensorMap map, int x, int y, int bytes, int shift,
                                   char* out) {
    TILE
    fetch(full, bytes, [&] { load(tile + shift, map, full, Coordinates{x, y}); });
    show(tile, out, sizeof tile);
}
extern "C" __global__ void im2col(const __grid_constant__ TensorMap map, int c, int w, int h, int n, int kw, int kh,
                                  int bytes, char* out) {
    TILE
    fetch(full, bytes, [&] {
        load_im2col(tile, map, full, Coordinates{c, w, h, n}, Offsets{(unsigned short)kw, (unsigned short)kh});
    });
    show(tile, out, sizeof tile);
}
extern "C" __global__ void multicast(const __grid_constant__ TensorMap map, char* out) {
    TILE   // CTA r sends row r to all
    fetch(full, 4 * 64, [&] {
        const unsigned r = cluster_cta_rank();
        load_multicast(tile + 128 * r, map, full, Coordinates{0, (int)r}, 15);
    });
    show(tile, out, 512);
}
extern "C" __global__ void add(const __grid_constant__ TensorMap map, const char* from, int x, int y) {
    __shared__ alignas(1024) char tile[8192];
    fill(tile, from, sizeof tile);
    if (threadIdx.x == 0) {
        reduce<Reduction::add>(map, Coordinates{x, y}, tile);
        commit_group();
        wait_group();
    }
}
extern "C" __global__ void bulk(const char* from, char* out, float* sums) {
    TILE
    fetch(full, 512, [&] { load_bulk(tile, from + 16, 512, full); });
    if (threadIdx.x) return;
    prefetch_bulk(from, 64);
    store_bulk(out, tile, 512);
    commit_group();
    reduce_bulk<Reduction::add, BulkType::f32>(sums, tile, 512);
    commit_group();
    wait_group_read();
}
extern "C" __global__ void send(const char* from, char* out) {
    TILE   // each CTA to the next
    __shared__ alignas(16) char source[256];
    for (int i = threadIdx.x; i < 256; i += blockDim.x) source[i] = from[256 * blockIdx.x + i];
    fence_proxy_async();
    __syncthreads();
    fetch(full, 256, [&] { send_bulk(tile, (cluster_cta_rank() + 1) % cluster_cta_count(), source, 256, full); });
    show(tile, out, 256);
}
extern "C" __global__ void put_async(int* out) {
    TILE
    if (threadIdx.x < 4) reinterpret_cast<int*>(tile)[threadIdx.x] = 1000;
    if (threadIdx.x == 0) { full.init(1); fence_barrier_init(); full.arrive_expect_tx(32); }
    __syncwarp();
    cluster_sync();
    const unsigned next = (cluster_cta_rank() + 1) % cluster_cta_count(), at = cluster_address(&full, next);
    if (threadIdx.x == 0)
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];"
                     :: "r"(cluster_address(tile + 16, next)), "r"(blockIdx.x), "r"(7), "r"(8), "r"(9), "r"(at));
    if (threadIdx.x < 4)
        asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s32 [%0], %1, [%2];"
                     :: "r"(cluster_address(tile + 4 * threadIdx.x, next)), "r"(threadIdx.x), "r"(at));
    full.wait(0);
    if (threadIdx.x < 8) out[8 * blockIdx.x + threadIdx.x] = reinterpret_cast<int*>(tile)[threadIdx.x];
    __syncwarp();
    cluster_sync();
}
extern "C" __global__ void old_async(const char* from, char* out) {
    TILE
    const unsigned here = smem_address(tile) + 16 * threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(here), "l"(from + 16 * threadIdx.x) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, 5;" :: "r"(here + 1024), "l"(from + 16 * threadIdx.x));
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    for (int i = 0; i < 16; ++i) out[64 + 16 * threadIdx.x + i] = tile[1024 + 16 * threadIdx.x + i];
}
extern "C" __global__ void old_async_barrier(const char* from, char* out) {
    TILE
    if (threadIdx.x == 0) full.init(blockDim.x);
    __syncthreads();
    const unsigned here = smem_address(tile) + 16 * threadIdx.x;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(here), "l"(from + 16 * threadIdx.x) : "memory");
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" :: "r"(full.address()) : "memory");
    full.wait(0);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = tile[i];
}
extern "C" __global__ void replace(const TensorMap* old, TensorMap* made, const void* address, char* out) {
    __shared__ alignas(128) TensorMap map;
    TILE
    reinterpret_cast<unsigned*>(&map)[threadIdx.x] = reinterpret_cast<const unsigned*>(old)[threadIdx.x];
    __syncwarp();
    const unsigned at = smem_address(&map);
    if (threadIdx.x == 0) {
        asm volatile("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "r"(at), "l"(address));
        asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "r"(at), "r"(3));
        asm volatile("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "r"(at), "r"(16));
        asm volatile("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "r"(at), "l"(32ull));
    }
    __syncwarp();
    asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
                 "[%0], [%1], 128;" :: "l"(made), "r"(at) : "memory");
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(made) : "memory");
    fetch(full, 4 * 16, [&] { load(tile, *made, full, Coordinates{0, 0}); });
    show(tile, out, 64);
}
"""


@pytest.fixture(scope="module")
def gpu() -> simulate.Device:
    shown = simulate.Suppression("uninitialized-read", "*", "show() returns the whole tile, also the unwritten bytes")
    return simulate.Device(multiprocessor_count=8, suppressions=[shown])


@pytest.fixture(scope="module")
def ptx(gpu) -> str:
    return gpu.compile(SOURCE, "bulk").ptx


@pytest.fixture(params=ORDERS, ids=lambda order: order["order"])
def run(request, gpu, ptx):
    def run(name, config, *arguments):
        report = gpu.launch(config, gpu.load(ptx, name), *arguments, **request.param)
        report.raise_for_errors()

    return run


def random_bytes(*shape):
    return np.random.default_rng(5).integers(256, size=shape).astype(np.uint8)


@pytest.mark.parametrize(
    ("swizzle", "shift"), [*itertools.product(("none", "32B", "64B", "128B"), (0, 1024)), ("128B", 384), ("32B", 128)]
)
def test_loads_swizzle_by_the_address(run, gpu, swizzle, shift):
    tensor, out = random_bytes(50, 96), np.zeros(8192, np.uint8)
    width = {"none": 64, "32B": 32, "64B": 64, "128B": 128}[swizzle]
    descriptor = gpu.create_tensor_map(tensor, box_dim=(20, width), swizzle=swizzle)
    run("load_at", Config(1, 64), descriptor, -16, 40, 20 * width, shift, out)
    place = shift + np.arange(20 * width)
    place ^= (place >> 7 & {"none": 0, "32B": 1, "64B": 3, "128B": 7}[swizzle]) << 4
    padded = np.pad(tensor, ((0, 20), (16, 128)))[40:60, :width]
    assert np.array_equal(out[place], padded.ravel())


def test_im2col(run, gpu):
    tensor, out = random_bytes(2, 7, 9, 32), np.zeros(8192, np.uint8)
    options = TensorMapIm2colOptions((-1, -1), (-1, -1), channels_per_pixel=32, pixels_per_column=40)
    descriptor = gpu.create_tensor_map(tensor, options)
    run("im2col", Config(1, 64), descriptor, 0, 3, -1, 0, 2, 1, 40 * 32, out)
    memory = view_bytes(tensor)
    expected = emulate.load(descriptor.params, memory, (0, 3, -1, 0), (2, 1), gpu.address(tensor))
    assert np.array_equal(out[: 40 * 32], expected.smem) and expected.smem.any()


def test_multicast(run, gpu):
    tensor, out = random_bytes(4, 64), np.zeros((8, 512), np.uint8)
    run("multicast", Config(grid=2, block=32, cluster=4), gpu.create_tensor_map(tensor, box_dim=(1, 64)), out)
    assert np.array_equal(out.reshape(8, 4, 128)[:, :, :64], np.broadcast_to(tensor, (8, 4, 64)))


def test_reductions_of_several_blocks_add_up(run, gpu):
    tensor, tiles = np.zeros((10, 64), np.int32), np.random.default_rng(6).integers(-100, 100, (5, 32, 64), np.int32)
    run("add", Config(5, 64), gpu.create_tensor_map(tensor, box_dim=(32, 64)), tiles, 0, 3)
    assert np.array_equal(tensor[3:], tiles.sum(axis=0)[:7]) and not tensor[:3].any()


def test_bulk_copies(run):
    source = np.arange(160, dtype=np.float32)
    out, sums = np.zeros(128, np.float32), np.full(128, 0.5, np.float32)
    run("bulk", Config(1, 32), source, out, sums)
    assert np.array_equal(out, source[4:132]) and np.array_equal(sums, source[4:132] + 0.5)


def test_bulk_copies_between_ctas(run):
    source, out = random_bytes(4, 256), np.zeros((4, 256), np.uint8)
    run("send", Config(grid=2, block=32, cluster=2), source, out)
    assert np.array_equal(out, source[[1, 0, 3, 2]])


def test_values_put_into_another_cta(run):
    out = np.zeros((4, 8), np.int32)
    run("put_async", Config(grid=2, block=32, cluster=2), out)
    assert out.tolist() == [[1000, 1001, 1002, 1003, block, 7, 8, 9] for block in (1, 0, 3, 2)]


def test_copies_of_sixteen_bytes(run):
    source, out = random_bytes(1024), np.zeros(64 + 1024, np.uint8)
    run("old_async", Config(1, 64), source, out)
    expected = np.zeros((64, 16), np.uint8)
    expected[:, :5] = source.reshape(64, 16)[:, :5]
    assert np.array_equal(out[:64], source[:64])
    assert np.array_equal(out[64:].reshape(64, 16)[:, :8], expected[:, :8])


def test_copies_that_arrive_at_a_barrier(run):
    source, out = random_bytes(1024), np.zeros(1024, np.uint8)
    run("old_async_barrier", Config(1, 64), source, out)
    assert np.array_equal(out, source)


def test_maps_are_changed_by_threads(run, gpu):
    old, new, out = random_bytes(50, 96), random_bytes(3, 32)[::-1].copy(), np.zeros(64, np.uint8)
    descriptor = gpu.create_tensor_map(old, box_dim=(4, 32))
    given, made = (np.zeros(256, np.uint8) for _ in range(2))
    given[:128] = np.frombuffer(bytes(descriptor), np.uint8)
    run("replace", Config(1, 32), given, made, new, out)
    assert np.array_equal(out.reshape(4, 16), np.pad(new[:, :16], ((0, 1), (0, 0))))
