"""Tests of launch configurations, of sequences of launches, and of progress reports on the simulator."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from cuda.core import LaunchConfig

from cuda_tma import TensorMapError, simulate
from cuda_tma.simulate import Config
from cuda_tma.simulate._machine import progress as _progress
from cuda_tma.simulate._warps.geometry import Geometry

SOURCE = r"""
extern "C" __global__ void first(int* values) {
    values[threadIdx.x] = threadIdx.x;
    asm volatile("griddepcontrol.launch_dependents;");
}
extern "C" __global__ void second(int* values) {   // programmatic dependent launch
    asm volatile("griddepcontrol.wait;" ::: "memory");
    values[threadIdx.x] *= 10;
}
extern "C" __global__ void fails(int* values) { __trap(); }
extern "C" __global__ void where(int* out) {
    unsigned cluster, rank;
    asm("mov.u32 %0, %%clusterid.x; mov.u32 %1, %%cluster_ctarank;" : "=r"(cluster), "=r"(rank));
    out[blockIdx.x] = 10 * cluster + rank;
}
"""


@pytest.fixture(scope="module")
def gpu():
    return simulate.Device()


@pytest.fixture(scope="module")
def kernel(gpu):
    ptx = gpu.compile(SOURCE, "first").ptx
    return lambda name: gpu.load(ptx, name)


def test_sequences_of_kernels(gpu, kernel):
    values = np.zeros(4, np.int32)
    config = Config(1, 4)
    reports = gpu.launch_all([(config, kernel("first"), values), (config, kernel("second"), values)], order="late")
    assert [report.errors for report in reports] == [(), ()]
    assert values.tolist() == [0, 10, 20, 30]


def test_after_an_error_the_rest_does_not_run(gpu, kernel):
    values = np.zeros(4, np.int32)
    launches = [(Config(1, 4), kernel(name), values) for name in ("first", "fails", "second")]
    reports = gpu.launch_all(launches)
    assert [len(report.errors) for report in reports] == [0, 1]
    assert values.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("config", "blocks"),
    [
        (Config(grid=2, block=1, cluster=3), [0, 1, 2, 10, 11, 12]),
        (Config(grid=3, block=1), [0, 10, 20]),
        ({"grid": 2, "block": 1, "cluster": 2}, [0, 1, 10, 11]),
        (LaunchConfig(grid=3, block=1), [0, 10, 20]),
    ],
)
def test_a_grid_with_clusters_counts_them(gpu, kernel, config, blocks):
    """The simulator accepts a LaunchConfig of cuda.core, whose grid also counts clusters."""
    out = np.zeros(len(blocks), np.int32)
    gpu.launch(config, kernel("where"), out).raise_for_errors()
    assert out.tolist() == blocks


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_only_on_a_terminal(gpu, kernel, capsys, monkeypatch, terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(_progress, "_FIRST_SECONDS", -1.0)
    gpu.launch(Config(5, 1), kernel("where"), np.zeros(5, np.int32)).raise_for_errors()
    shown = capsys.readouterr().err.split("\r")
    assert (any("of 5 clusters, 0.0 million" in text for text in shown) and shown[-1] == "") == terminal


def test_progress_counts_completed_schedules(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(_progress, "_FIRST_SECONDS", -1.0)
    gpu = simulate.Device(schedules=3)
    gpu.launch(Config(5, 1), gpu.compile(SOURCE, "where"), np.zeros(5, np.int32)).raise_for_errors()
    shown = capsys.readouterr().err.split("\r")
    assert "simulated: 1 of 3 schedules" in [text.strip() for text in shown] and shown[-1] == ""


def test_an_unknown_descriptor_is_refused(gpu):
    """The simulator refuses a matrix descriptor with a base offset, because the effect of a base offset is not
    recorded."""
    source = r"""
    #include <cuda_tma/wgmma.cuh>
    extern "C" __global__ void product(unsigned long long descriptor, float* out) {
        __shared__ alignas(1024) char memory[16384];
        float d[4] = {};
        asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 0, 1, 1, 0, 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(descriptor));
        out[threadIdx.x] = d[0] + memory[threadIdx.x];
    }"""
    # The descriptor has the 128-byte swizzle and the base offset 1.
    descriptor = 1 << 62 | 1 << 49 | 64 << 32 | 1 << 16 | 64
    with pytest.raises(simulate.UnsupportedInstruction, match=r"PTX line \d+: .* wgmma.mma_async.*base offset 1"):
        gpu.launch(Config(1, 128), gpu.compile(source, "product"), descriptor, np.zeros(128, np.float32))


@pytest.mark.parametrize(("register_bytes", "resident"), [(0, 64), (16_000, 32)])
def test_registers_of_all_resident_ctas_fit(register_bytes, resident):
    """Fewer CTAs run on a simulated multiprocessor at the same time if a kernel has thousands of registers."""
    geometry = Geometry((200, 1, 1), (1024, 1, 1), (1, 1, 1), 132, 200_000, register_bytes)
    assert geometry.resident_ctas == resident


def test_an_unknown_instruction_is_refused_with_its_line(gpu):
    text = ".version 8.7\n.target sm_90a\n.address_size 64\n.entry k() {\n tcgen05.unknown.sync.aligned;\n ret;\n}"
    with pytest.raises(simulate.UnsupportedInstruction, match=r"PTX line 5: .* tcgen05\.unknown\.sync\.aligned"):
        gpu.load(text, "k")


def test_a_launch_that_no_gpu_takes_is_refused(gpu, kernel):
    for wrong in ({"grid": 0, "block": 1}, {"grid": 1, "block": 1025}, {"grid": 1, "block": 1, "cluster": 17}):
        with pytest.raises(ValueError, match="grid=0|1025 threads|17 CTAs"):
            Config(**wrong)
    with pytest.raises(ValueError, match="the PTX has no kernel nothing"):
        kernel("nothing")
    with pytest.raises(ValueError, match="order='soon'"):
        gpu.launch(Config(1, 1), kernel("fails"), np.zeros(4, np.int32), order="soon")


TYPED = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Square = Tile<FLOAT32, Box<32, 32>, SWIZZLE_128B>;
extern "C" __global__ void typed(const __grid_constant__ TiledMap<Square> map) {}
"""


def test_a_map_whose_type_differs_from_the_kernels_is_refused():
    """The simulator and a launch on a GPU refuse a tensor map whose type differs from the kernel's type. The kernel
    would read the tile with a different swizzle than the copy."""
    gpu = simulate.Device()
    kernel, array = gpu.compile(TYPED, "typed"), np.zeros((64, 64), np.float32)
    for given in (array, gpu.create_tensor_map(array, box_dim=(32, 32), swizzle="128B")):
        assert gpu.launch(Config(1, 32), kernel, given).findings == ()
    plain = gpu.create_tensor_map(array, box_dim=(32, 32))
    words = r"argument 0 \(map\) of kernel typed is of type .*: its swizzle is NONE, the kernel's 128B"
    with pytest.raises(TensorMapError, match=words):
        gpu.launch(Config(1, 32), kernel, plain)
    with pytest.raises(TensorMapError, match="its box_dim is "):
        gpu.launch(Config(1, 32), kernel, gpu.create_tensor_map(array, box_dim=(16, 32), swizzle="128B"))
    with pytest.raises(TensorMapError, match=words):
        gpu.launch(Config(1, 32), kernel, bytes(plain))
