"""Tests of tensor maps in global memory that ordinary stores change, and of mbarriers whose bytes are still pending."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

enum { RIGHT, NO_RELEASE, LATE_RELEASE, NO_ACQUIRE, EARLY_ACQUIRE, NO_FENCES };
__shared__ __align__(128) int tile[256];
__shared__ Barrier full;

__device__ void load_through(const TensorMap& slot, int* out, unsigned parity = 0) {
    full.arrive_expect_tx(1024);
    load(tile, slot, full, Coordinates{0});  // LOAD
    full.wait(parity);
    for (int i = 0; i < 256; ++i) out[i] = tile[i];
    fence_proxy_async();
}
__device__ void start() {
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
    }
    __syncthreads();
}

// A warp writes the map, one of its threads uses it.
extern "C" __global__ void in_a_block(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    start();
    reinterpret_cast<int*>(slot)[threadIdx.x] = reinterpret_cast<const int*>(&source)[threadIdx.x];  // WRITE
    if (BUG != NO_RELEASE && BUG != NO_FENCES) fence_tensor_map_release();
    if (BUG == EARLY_ACQUIRE && threadIdx.x == 0) fence_tensor_map_acquire(*slot);
    __syncthreads();
    if (BUG < NO_ACQUIRE && threadIdx.x == 0) fence_tensor_map_acquire(*slot);
    if (BUG == LATE_RELEASE) fence_tensor_map_release();
    if (threadIdx.x == 0) load_through(*slot, out);
}

// One block writes it, and signals another.
extern "C" __global__ void between_blocks(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    unsigned* flag = reinterpret_cast<unsigned*>(out + 512);
    start();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = 0; i < 16; ++i) slot->opaque[i] = source.opaque[i];  // WRITE
        if (BUG != NO_RELEASE && BUG != LATE_RELEASE && BUG != NO_FENCES) fence_tensor_map_release();
        if (BUG == NO_FENCES) __threadfence();
        atomicExch(flag, 1);
        if (BUG == LATE_RELEASE) fence_tensor_map_release();
    } else if (blockIdx.x == 1 && threadIdx.x == 0) {
        if (BUG == EARLY_ACQUIRE) fence_tensor_map_acquire(*slot);
        while (atomicAdd(flag, 0) == 0) __nanosleep(100);
        if (BUG == NO_FENCES) __threadfence();
        if (BUG < NO_ACQUIRE) fence_tensor_map_acquire(*slot);
        load_through(*slot, out);
    }
}

// The same thread, twice: each change needs its own fences.
extern "C" __global__ void again(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    if (threadIdx.x) return;
    full.init(1);
    fence_barrier_init();
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < 16; ++i) slot->opaque[i] = source.opaque[i];  // WRITE
        if (turn == 0 || BUG != NO_RELEASE) fence_tensor_map_release();
        if (turn == 0 || BUG != NO_ACQUIRE) fence_tensor_map_acquire(*slot);
        load_through(*slot, out, turn);
    }
}

// One thread writes it, and signals another one of the block, or of another block.
#ifdef RELEASED
#define FENCE_(how, scope, operands) asm volatile("fence.proxy.tensormap::generic." how "." scope operands)
extern "C" __global__ void scoped(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    unsigned* flag = reinterpret_cast<unsigned*>(out + 512);
    start();
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        for (int i = 0; i < 16; ++i) slot->opaque[i] = source.opaque[i];  // WRITE
        FENCE_("release", RELEASED, ";" ::: "memory");
        __threadfence();
        atomicExch(flag, 1);
    } else if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 1) {
        while (atomicAdd(flag, 0) == 0) __nanosleep(100);
        __threadfence();
        FENCE_("acquire", ACQUIRED, " [%0], 128;" :: "l"(slot) : "memory");
        load_through(*slot, out);
    }
}
#endif

// No thread changes it here.
extern "C" __global__ void from_before(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    start();
    if (threadIdx.x == 0) {
        fence_tensor_map_acquire(*slot);
        load_through(*slot, out);
    }
}

extern "C" __global__ void never_acquired(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    start();
    if (threadIdx.x == 0)
        for (int turn = 0; turn < 3; ++turn) load_through(*slot, out, turn % 2);
}

extern "C" __global__ void unexpected(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    if (threadIdx.x) return;
    full.init(2);
    fence_barrier_init();
    if (!BUG) full.expect_tx(1024);
    full.arrive();
    load(tile, source, full, Coordinates{0});  // LOAD
    if (BUG == 2) while (!full.try_wait(1, 100)) break;
    if (!BUG) {
        full.arrive();
        full.wait(0);
    } else {
        for (volatile int i = 0; i < 1000; ++i) continue;
    }
    if (BUG < 2) full.invalidate();  // INVALIDATE
}
"""
LINES = SOURCE.split("\n")
RIGHT, NO_RELEASE, LATE_RELEASE, NO_ACQUIRE, EARLY_ACQUIRE, NO_FENCES = range(6)


@cache
def compiled(name: str, bug: int) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE, name, defines={"BUG": bug})


def launched(name: str, bug: int, **settings: object) -> simulate.Report:
    gpu = simulate.Device(**settings)
    source, out = np.arange(256, dtype=np.int32), np.zeros(1024, np.int32)
    descriptor = gpu.create_tensor_map(source, box_dim=(256,))
    slot = np.frombuffer(bytes(descriptor), np.uint8).copy()
    config = simulate.Config(2 if name == "between_blocks" else 1, 32)
    return gpu.launch(config, compiled(name, bug), descriptor, slot, out)


@pytest.mark.parametrize("name", ["in_a_block", "between_blocks", "again", "from_before", "unexpected"])
def test_a_right_kernel_has_no_finding(name):
    assert launched(name, RIGHT, schedules=4, strict=True).findings == ()


@pytest.mark.parametrize(
    ("name", "bug", "lacks"),
    [
        ("in_a_block", NO_RELEASE, "release"),
        ("in_a_block", NO_ACQUIRE, "acquire"),
        ("in_a_block", EARLY_ACQUIRE, "acquire"),
        ("in_a_block", NO_FENCES, "acquire"),
        # Without a release, the flag does not order the accesses of the two blocks.
        ("between_blocks", NO_RELEASE, "acquire"),
        ("between_blocks", LATE_RELEASE, "acquire"),
        ("between_blocks", NO_ACQUIRE, "acquire"),
        ("between_blocks", EARLY_ACQUIRE, "acquire"),
        ("between_blocks", NO_FENCES, "acquire"),
        ("again", NO_RELEASE, "release"),
        ("again", NO_ACQUIRE, "acquire"),
    ],
)
def test_a_map_that_is_written_needs_both_fences(name, bug, lacks):
    (finding,) = launched(name, bug).errors
    assert finding.kind == "missing-tensor-map-fence"
    assert f"no fence.proxy.tensormap::generic.{lacks} before this use" in finding.message
    assert "// WRITE" in LINES[finding.other[-1].line - 1]


def scoped(released: str, acquired: str, blocks: int, cluster: int | None = None) -> simulate.Report:
    gpu = simulate.Device(schedules=4)
    defines = {"BUG": 0, "RELEASED": f'"{released}"', "ACQUIRED": f'"{acquired}"'}
    kernel = gpu.compile(SOURCE, "scoped", defines=defines)
    source, out = np.arange(256, dtype=np.int32), np.zeros(1024, np.int32)
    descriptor = gpu.create_tensor_map(source, box_dim=(256,))
    slot = np.frombuffer(bytes(descriptor), np.uint8).copy()
    return gpu.launch(simulate.Config(blocks, 32, cluster), kernel, descriptor, slot, out)


@pytest.mark.parametrize(
    ("released", "acquired", "blocks", "cluster", "lacks"),
    [
        ("gpu", "cta", 2, None, "acquire.gpu"),
        ("gpu", "cluster", 2, None, "acquire.gpu"),
        ("cta", "gpu", 2, None, "release.gpu"),
        ("gpu", "cta", 1, 2, "acquire.cluster"),
        ("cta", "sys", 1, 2, "release.cluster"),
    ],
)
def test_the_fences_of_a_map_need_a_scope_with_both_threads(released, acquired, blocks, cluster, lacks):
    (finding,) = scoped(released, acquired, blocks, cluster).errors
    assert finding.kind == "missing-tensor-map-fence"
    assert f"no fence.proxy.tensormap::generic.{lacks} before this use" in finding.message


@pytest.mark.parametrize(
    ("released", "acquired", "blocks", "cluster"),
    [("gpu", "gpu", 2, None), ("sys", "gpu", 2, None), ("cluster", "cluster", 1, 2), ("cta", "cta", 1, None)],
)
def test_a_scope_with_both_threads_is_enough(released, acquired, blocks, cluster):
    assert scoped(released, acquired, blocks, cluster).errors == ()


def test_a_map_without_an_acquire_is_one_finding_with_a_count():
    (finding,) = launched("never_acquired", RIGHT).findings
    assert (finding.kind, finding.severity, finding.count) == ("missing-tensor-map-fence", "advice", 3)


@pytest.mark.parametrize("bug", [1, 2])
def test_unexpected_bytes_are_reported_at_the_end(bug):
    (finding,) = [each for each in launched("unexpected", bug).findings if each.kind == "transaction-count"]
    assert finding.severity == "advice"
    assert "ends with a tx-count of -1024: 1,024 bytes arrived in its phase 0 without an expect_tx" in finding.message
    related = {what: LINES[places[-1].line - 1] for what, places in finding.related}
    assert "full.init" in related["initialized"] and "// LOAD" in related["bytes last arrived"]


IN_USE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

enum { BY_PHASE, BY_GROUP, EARLY_GROUP, OF_ANOTHER, PREFETCH };
extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, TensorMap* slot, int* out) {
    __shared__ __align__(128) int tile[2][256];
    __shared__ Barrier full[2];
    if (threadIdx.x) return;
    for (Barrier& each : full) each.init(1);
    fence_barrier_init();
    for (int turn = 0; turn < 2; ++turn) {
        for (int i = 0; i < 16; ++i) slot[turn * (HOW == OF_ANOTHER)].opaque[i] = source.opaque[i];  // WRITE
        fence_tensor_map_release();
        fence_tensor_map_acquire(slot[turn * (HOW == OF_ANOTHER)]);
        if (HOW == PREFETCH) {
            prefetch(*slot, Coordinates{0});
            continue;
        }
        if (HOW == EARLY_GROUP) commit_group();
        full[turn].arrive_expect_tx(1024);
        load(tile[turn], slot[turn * (HOW == OF_ANOTHER)], full[turn], Coordinates{0});
        if (HOW == BY_PHASE) full[turn].wait(0);
        if (HOW == BY_GROUP) commit_group();
        if (HOW == BY_GROUP || HOW == EARLY_GROUP) wait_group_read<0>();
    }
    for (int turn = 0; turn < 2 && HOW != PREFETCH; ++turn) {
        full[turn].wait(0);
        out[turn] = tile[turn][0];
    }
}
"""


@pytest.mark.parametrize("order", ["early", "late"])
@pytest.mark.parametrize(("how", "races"), [(0, False), (1, False), (2, True), (3, False), (4, False)])
def test_a_map_may_change_after_a_wait_for_the_copies_that_read_it(how, races, order):
    gpu = simulate.Device(strict=True)
    kernel = gpu.compile(IN_USE, "kernel", defines={"HOW": how})
    source = gpu.create_tensor_map(np.arange(256, dtype=np.int32), box_dim=(256,))
    slot, out = np.zeros(64, np.int64), np.zeros(2, np.int32)
    report = gpu.launch(simulate.Config(1, 32), kernel, source, slot, out, order=order)
    write = next(number for number, text in enumerate(IN_USE.split("\n"), 1) if "// WRITE" in text)
    found = [(each.kind, each.severity, each.source[-1].line) for each in report.findings]
    assert found == [("race", "error", write)] * races
