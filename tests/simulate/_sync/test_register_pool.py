"""Tests of setmaxnreg, by which the warps of a CTA request and release registers."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._sync.register_pool import at_launch

SOURCE = r"""
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;

extern "C" __global__ void BOUNDS roles(int* out) {
    if (threadIdx.x < 128) register_dealloc<FEW>();
    else register_alloc<MANY>();  // INC
    __syncthreads();
    out[blockDim.x * blockIdx.x + threadIdx.x] = FEW;
}

extern "C" __global__ void __launch_bounds__(256, 1) by_warps(int* out) {
    if (threadIdx.x < 128 && threadIdx.x >= FIRST) register_dealloc<24>();  // DEC
    out[blockDim.x * blockIdx.x + threadIdx.x] = 1;
}

extern "C" __global__ void __launch_bounds__(256, 1) last_group(int* out) {
    if (threadIdx.x >= 128 + FIRST) register_dealloc<24>();  // LAST
    out[blockDim.x * blockIdx.x + threadIdx.x] = 1;
}

extern "C" __global__ void __launch_bounds__(256, 1) wrong_way(int* out) {
    register_dealloc<64>();
    register_alloc<40>();  // INC
}
"""
PTX = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry bare() .maxntid 128, 1, 1 {
    setmaxnreg.dec.sync.aligned.u32 REGISTERS;
    ret;
}
"""


def launched(name, block=384, **defines):
    gpu, out = simulate.Device(), np.zeros(1024, np.int32)
    constants = {"FEW": 24, "MANY": 240, "FIRST": 0, "BOUNDS": "__launch_bounds__(384, 1)", **defines}
    kernel = gpu.compile(SOURCE, name, defines=constants)
    return gpu.launch(simulate.Config(2, block), kernel, out, max_steps=10_000).findings


@pytest.mark.parametrize(
    ("few", "many", "bounds"),
    [(24, 240, "__launch_bounds__(384, 1)"), (40, 232, "__launch_bounds__(384, 1)"), (24, 256, "")],
)
def test_requests_that_fit_continue(few, many, bounds):
    """In a kernel without bounds on registers, ptxas and the simulator ignore setmaxnreg."""
    assert launched("roles", FEW=few, MANY=many, BOUNDS=bounds) == ()


def test_an_excess_request_waits_forever():
    """Requests for 224, 224 and 80 registers of 504 registers wait forever (NVIDIA developer forums, "About
    setmaxnreg")."""
    (finding,) = launched("roles", FEW=80, MANY=224)
    line = next(number for number, text in enumerate(SOURCE.split("\n"), 1) if "// INC" in text)
    assert (finding.kind, finding.source[-1].line) == ("deadlock", line)
    assert "warps 10 to 11 wait" in finding.message and "requests 224 a thread" in finding.message
    assert "launched with 504 registers for one thread of each warpgroup, 168 each" in finding.message


@pytest.mark.parametrize(("first", "of"), [(32, "3 of the 4 warps"), (96, "1 of the 4 warps")])
def test_a_part_of_a_warpgroup(first, of):
    (finding,) = launched("by_warps", 256, FIRST=first)
    assert finding.kind == "barrier-divergence" and f"executed by {of} of a warpgroup" in finding.message
    assert "// DEC" in SOURCE.split("\n")[finding.source[-1].line - 1]


def test_whole_warpgroups_are_right():
    assert launched("by_warps", 256) == launched("by_warps", 256, FIRST=128) == ()


@pytest.mark.parametrize("threads", [144, 160, 192, 224, 250])
def test_a_last_warpgroup_of_fewer_than_four_warps_is_right(threads):
    """If the last warpgroup of a CTA has fewer than four warps, each of its warps executes setmaxnreg. Compilers launch
    a producer of one warp in this form."""
    assert launched("last_group", threads) == ()


@pytest.mark.parametrize(("threads", "of"), [(192, "1 of the 2 warps"), (224, "2 of the 3 warps")])
def test_a_part_of_a_last_warpgroup(threads, of):
    (finding,) = launched("last_group", threads, FIRST=32)
    assert finding.kind == "barrier-divergence" and f"executed by {of} of a warpgroup" in finding.message
    assert "// LAST" in SOURCE.split("\n")[finding.source[-1].line - 1]
    assert f"(warps 4 to {threads // 32 - 1} of the CTA)" in finding.message


def test_inc_that_subtracts():
    (finding,) = launched("wrong_way", 256)
    assert finding.kind == "fault" and "to 40 registers is executed in a warp that has 64" in finding.message
    assert "// INC" in SOURCE.split("\n")[finding.source[-1].line - 1]


@pytest.mark.parametrize("registers", [16, 60, 264])
def test_a_number_that_no_gpu_takes(registers):
    gpu = simulate.Device()
    kernel = gpu.load(PTX.replace("REGISTERS", str(registers)), "bare")
    (finding,) = gpu.launch(simulate.Config(1, 128), kernel).findings
    assert (finding.kind, finding.ptx_line) == ("fault", 6)
    assert f"setmaxnreg of {registers} registers; use a multiple of 8 from 24 to 256" in finding.message


def test_registers_at_launch():
    assert [at_launch({"maxntid": (threads,)}) for threads in (128, 256, 384, 512, 1024)] == [256, 256, 168, 128, 64]
    assert at_launch({"maxntid": (128,), "minnctapersm": (2,)}) == 256
    assert at_launch({"reqntid": (32, 4, 3), "minnctapersm": (2,)}) == 80
    assert at_launch({"maxntid": (384,), "maxnreg": (96,)}) == 96
