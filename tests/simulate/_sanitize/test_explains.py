"""Tests of the related statements in findings, such as the waiting threads of a deadlock."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._files import shown_path

SOURCE = r"""
#include <cuda_tma/scope.cuh>
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

__shared__ __align__(128) int tile[256];
__shared__ Barrier full;

__device__ void wait_or_trap(unsigned parity) {
    for (int i = 0; i < 5; ++i)
        if (full.try_wait(parity, 1000)) return;
    __trap();
}

extern "C" __global__ void bounded(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(RIGHT ? 1 : 2);  // INIT
        fence_barrier_init();
        full.arrive_expect_tx(1024);  // EXPECT
        load(tile, map, full, Coordinates{0});
    }
    __syncthreads();
    wait_or_trap(0);  // WAIT
    out[threadIdx.x] = tile[threadIdx.x];
}

// A test that fails is not a deadlock; the wait after it may be.
extern "C" __global__ void looked_before(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x) return;
    full.init(1);  // INIT
    fence_barrier_init();
    out[0] = full.try_wait(0, 100);  // LOOK
    if (RIGHT) full.arrive();
    wait_or_trap(0);  // WAIT
}

extern "C" __global__ void polled(const __grid_constant__ TensorMap map, int* out) {
    unsigned* flag = reinterpret_cast<unsigned*>(out + 1024);
    if (threadIdx.x == 0) {
        full.init(1);  // INIT
        fence_barrier_init();
        if (RIGHT) full.arrive();
        full.wait(0);  // WAIT
        store_release(flag, 1u);
    }
    if (threadIdx.x == 32)
        while (load_acquire(flag) == 0) continue;
}

extern "C" __global__ void too_many(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x == 0) {
        full.init(2);  // INIT
        fence_barrier_init();
        full.expect_tx(16);  // EXPECT
        full.arrive(RIGHT ? 1 : 3);
        full.arrive();
    }
}

extern "C" __global__ void in_memory(const __grid_constant__ TensorMap map, int* out, const TensorMap* maps) {
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        if (RIGHT) fence_tensor_map_acquire(maps[0]);
        full.arrive_expect_tx(1024);
        load(tile, maps[0], full, Coordinates{0});
        full.wait(0);
    }
}

// Block 1 loads what block 0 stored, both by copies.
extern "C" __global__ void copied_on(const __grid_constant__ TensorMap map, int* out) {
    if (threadIdx.x) return;
    unsigned* flag = reinterpret_cast<unsigned*>(out + 1024);
    full.init(1);
    fence_barrier_init();
    full.arrive_expect_tx(1024);
    if (blockIdx.x == 0) {
        load(tile, map, full, Coordinates{0});
        full.wait(0);
        store_bulk(out, tile, 1024);
        commit_group();
        wait_group();
        store_release(flag, 1u);
    } else {
        while (load_acquire(flag) == 0) continue;
        if (RIGHT) fence_proxy_async_global();
        else fence_proxy_async();
        load_bulk(tile, out, 1024, full);
        full.wait(0);
    }
}
"""
LINES = SOURCE.split("\n")
ON_ITS_OWN = ("initialized", "bytes last expected", "last arrival")


@cache
def compiled(name: str, right: bool) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE, name, defines={"RIGHT": int(right)})


def launched(name: str, right: bool, **settings: object) -> simulate.Report:
    gpu = simulate.Device(**settings)
    source, out = np.arange(256, dtype=np.int32), np.zeros(2048, np.int32)
    arguments = [gpu.create_tensor_map(source, box_dim=(256,)), out]
    if name == "in_memory":
        arguments.append(np.frombuffer(bytes(arguments[0]), np.uint8).copy())
    config = simulate.Config(2 if name == "copied_on" else 1, 64)
    return gpu.launch(config, compiled(name, right), *arguments, max_steps=50_000)


def marks_of(name: str, places: tuple) -> set[str]:
    """Return the marks in the source lines of some places in the kernel."""
    lines = {LINES[place.line - 1] for place in places if place.file.endswith(f"{name}.cu")}
    return {line.partition("// ")[2] for line in lines}


@pytest.mark.parametrize("name", ["bounded", "looked_before", "polled", "too_many", "in_memory", "copied_on"])
def test_a_right_kernel_has_no_finding(name):
    assert launched(name, True, schedules=3, strict=True).findings == ()


def test_a_wait_that_gives_up_is_a_deadlock():
    (finding,) = launched("bounded", False).findings
    assert finding.kind == "deadlock"
    assert "1 of its 2 arrivals is missing" in finding.message and "until a wait gave up: " in finding.message
    assert "WAIT" in marks_of("bounded", finding.source)
    explained = {what: marks_of("bounded", places) for what, places in finding.related}
    assert explained.items() >= {
        "initialized": {"INIT"}, "bytes last expected": {"EXPECT"}, "last arrival": {"EXPECT"}
    }.items()  # fmt: skip
    assert explained.keys() == {*ON_ITS_OWN, "bytes last arrived", "last access, copy or fence of the waiting threads"}
    assert (
        f"  initialized: {shown_path(finding.source[-1].file)}:{1 + LINES.index(next(x for x in LINES if 'INIT' in x))}"
        in str(finding)
    )


def test_the_wait_that_gave_up_is_reported_and_not_an_earlier_test():
    (finding,) = launched("looked_before", False).findings
    assert finding.kind == "deadlock"
    assert marks_of("looked_before", finding.source) & {"WAIT", "LOOK"} == {"WAIT"}


def test_an_endless_poll_names_the_waiting_threads():
    (finding,) = launched("polled", False).findings
    assert finding.kind == "no-progress"
    waits = [places for what, places in finding.related if what == "also waits"]
    assert [marks_of("polled", places) for places in waits] == [{"WAIT"}]


def test_too_many_arrivals_come_with_the_count():
    (finding,) = launched("too_many", False).findings
    assert finding.kind == "barrier-use" and "raise the count of mbarrier.init" in finding.message
    assert {what: marks_of("too_many", places) for what, places in finding.related} == {
        "initialized": {"INIT"},
        "bytes last expected": {"EXPECT"},
    }


def test_a_map_in_memory_needs_a_fence():
    (finding,) = launched("in_memory", False).findings
    assert (finding.kind, finding.severity) == ("missing-tensor-map-fence", "advice")
    assert "may have a stale copy" in finding.message
    assert launched("in_memory", False, strict=True).errors


def test_a_fence_of_shared_memory_does_not_cover_global_memory():
    kinds = {finding.kind for finding in launched("copied_on", False).findings}
    assert kinds == {"missing-proxy-fence"}


def test_a_printed_finding_begins_with_the_users_line(tmp_path, monkeypatch):
    source = """#include <cuda_tma/tma.cuh>
extern "C" __global__ void send(float* out) {
    __shared__ __align__(128) float tile[32];
    tile[threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        cuda_tma::store_bulk(out, tile, 128);
        cuda_tma::commit_group();
        cuda_tma::wait_group_read<0>();
    }
}
"""
    (tmp_path / "send.cu").write_text(source)
    monkeypatch.chdir(tmp_path)
    gpu = simulate.Device()
    kernel = gpu.compile(tmp_path / "send.cu", "send")
    (finding,) = gpu.launch(simulate.Config(1, 32), kernel, np.zeros(32, np.float32)).errors
    first, second, *_ = str(finding).splitlines()
    assert first.startswith("send.cu:7: error: the bulk copy that thread 0 (warp 0) issued reads 128 bytes"), first
    assert re.fullmatch(r"  by way of \w+\.cuh:\d+", second)
