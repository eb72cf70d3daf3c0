"""Tests of watchdog.cuh. Without the macro of the watchdog, the header does not change a kernel. With the macro, waits
record their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cuda_tma
from benchmarks.kernels.against import with_headers
from cuda_tma._compile.nvrtc import compile_source
from tests.examples._examples import kernels
from tests.include._header import FOLDER, cubin, nvcc, ptx
from tests.support.machine_code import machine_code

ON = {"CUDA_TMA_WATCHDOG_MS": 500}
NVRTC_TARGETS = ("sm_90", "sm_90a", "sm_100a", "sm_120a")
INCLUDES = "".join(
    f"#include <cuda_tma/{name}.cuh>\n" for name in ("tma", "pipeline", "warpgroup", "roles", "schedule", "mainloop")
)


@pytest.fixture(scope="module")
def without_watchdog(tmp_path_factory) -> Path:
    """Return the device headers with an empty definition for each macro of the watchdog."""
    folder = tmp_path_factory.mktemp("include")
    (folder / "cuda_tma").mkdir()
    for header in FOLDER.glob("*.cuh"):
        text = header.read_text().replace("#include <cuda_tma/watchdog.cuh>\n", "")
        text = re.sub(r"CUDA_TMA_WAIT_UNTIL\((\w+\(parity\)), this, parity\)", r"while (!\1) continue;", text)
        either = r"#ifndef CUDA_TMA_WATCHDOG_MS\n(.*?)#else.*?#endif\n"
        text = re.sub(either, r"\1", text, flags=re.DOTALL)
        text = re.sub(r"CUDA_TMA_(NOTE_\w+|OF_STAGE)\([^()]*\)", "", text)
        text = re.sub(r"CUDA_TMA_(SITE|HERE)(_ALONE)?\b", "", text)
        if header.name != "watchdog.cuh":
            (folder / "cuda_tma" / header.name).write_text(text)
    return folder


def test_every_use_of_it_is_removed(without_watchdog):
    """The test finds each remaining use of the watchdog's macros."""
    left = re.compile(r"[Ww]atchdog|Site\b|CUDA_TMA_(?:SITE|HERE|NOTE|WAIT)|Deadline|AtHardwareBarrier")
    texts = {path.name: path.read_text() for path in (without_watchdog / "cuda_tma").glob("*.cuh")}
    found = {name: found[0] for name, text in texts.items() if (found := left.search(re.sub("//.*", "", text)))}
    assert not found
    assert {path.name for path in FOLDER.glob("*.cuh")} == {*texts, "watchdog.cuh"}


@pytest.mark.parametrize(("source", "target"), [case for case in kernels() if case.values[1] == "sm_90a"])
def test_without_the_macro_the_ptx_is_the_same(source, target, without_watchdog):
    """The test compares PTX, because equal PTX gives equal machine code."""
    # The kernel of grouped_gemm has a loop for each width. Its first four of sixteen loops contain all of its waits.
    source = source.replace("WIDEST = 256", "WIDEST = 64")
    # The source now contains the variables of a header, some of which are unused.
    unused = "#pragma nv_diag_suppress 177\n"
    stripped = unused + with_headers(source, without_watchdog)
    assert "CUDA_TMA_WATCHDOG" not in stripped
    assert _ptx(source, target) == _ptx(stripped, target)


def _ptx(source: str, target: str) -> str:
    """Return the PTX without the digest of the source, which occurs in the names of static variables."""
    text = ptx(source, target.replace("sm_", "compute_"))  # With a compute_ target, NVRTC does not run ptxas.
    return re.sub(r"_INTERNAL_[0-9a-f]{8}_9_kernel_cu_[0-9a-f]{8}_", "_INTERNAL_", text)


@pytest.mark.parametrize("name", ["gemm", "conv_im2col", "grouped_gemm"])
def test_with_the_macro_products_still_overlap(name):
    """ptxas prints one of the messages C7510 to C7516 or C7518 for each wgmma that must wait for the preceding
    wgmma."""
    (case,) = (case for case in kernels() if case.id == f"{name}-sm_90a")
    kernel = re.search(r"(\w+)\(const __grid_constant__ AMap|__launch_bounds__\([^\n]*\)\s*(\w+)\(", case.values[0])
    compiled = compile_source(case.values[0], kernel[1] or kernel[2], target="sm_90a", defines=ON)
    assert not re.search(r"C75(1[0-68])", compiled.log), compiled.log


def test_values_for_the_end_of_a_thread_take_no_registers_before():
    """In a kernel with a watchdog, the producer has only 24 registers, so the compiler would spill further values to
    local memory."""
    (case,) = (case for case in kernels() if case.id == "gemm-sm_90a")
    verbose = ["--ptxas-options=-v"]
    compiled = compile_source(case.values[0], "gemm", target="sm_90a", defines=ON, options=verbose)
    assert int(re.search(r"(\d+) bytes spill stores", compiled.log)[1]) <= 8, compiled.log


@pytest.mark.parametrize("target", NVRTC_TARGETS)
def test_all_headers_compile_with_it(target):
    includes = INCLUDES if target == "sm_90a" else "#include <cuda_tma/pipeline.cuh>"
    source = f"#define CUDA_TMA_WATCHDOG_MS 500\n#define CUDA_TMA_WATCHDOG_TRAP\n{includes}"
    body = '__global__ void kernel(cuda_tma::Barrier* b) { asm volatile("" : "+l"(b)); b->wait(0); __syncthreads(); }'
    assert machine_code(cubin(f"{source}\n{body}", target))


def test_several_translation_units_have_one_watchdog():
    """If each translation unit defined the watchdog, the linker would report a duplicate."""
    body = "__global__ void kernel() { __shared__ cuda_tma::Barrier b; b.wait(0); }"
    source = f"#define CUDA_TMA_WATCHDOG_MS 500\n#include <cuda_tma/tma.cuh>\n{body}"
    whole, apart = ptx(source), ptx(source, options=["-rdc=true"])
    weak = re.compile(r"^\.weak \.global .* cuda_tma_watchdog\[", re.MULTILINE)
    assert "cuda_tma_watchdog[" in whole and not weak.search(whole) and weak.search(apart)


@pytest.mark.parametrize("separate", [False, True])
def test_nvcc_takes_it(tmp_path, separate):
    source = f"#define CUDA_TMA_WATCHDOG_MS 500\n{INCLUDES}"
    assert nvcc(source, "sm_90a", tmp_path, *["-rdc=true"] * separate).returncode == 0


PLACES = """
#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/tile.cuh>
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;
using Window = Tile<UINT8, Box<64, 64>>;
extern "C" __global__ void kernel() {
    __shared__ Pipeline<2> ring;
    __shared__ Window window;
    Stage<2> at;
    {statement}
}
"""


@pytest.mark.parametrize(
    "statement",
    [
        "ring.full[0].wait(0);",
        "ring.full[0].wait_cluster(0);",
        "ring.acquire(at);",
        "ring.acquire(at, 64);",
        "ring.acquire(at, window);",
        "ring.acquire(\n\n        at, window, window);",
        "ring.acquire_cluster(at, 64);",
        "ring.drain(at);",
        "ring.wait(at);",
        "cluster_sync();",
        "cluster_arrive(); cluster_wait();",
        "named_barrier_sync<1>(64);",
        "named_barrier_sync(1, 64);",
        "__syncthreads();",
    ],
)
def test_a_wait_records_its_line(statement):
    """The reported line is the line of the call or of its argument, not a line of the header."""
    source = PLACES.replace("{statement}", statement)
    line = 1 + source[: source.index(statement)].count("\n")
    compiled = compile_source(source, "kernel", target="compute_90a", defines=ON)
    code = re.sub(r"^\t\.loc.*\n", "", compiled.ptx, flags=re.MULTILINE)
    lines = {line, line + statement.count("\n")}
    number = {"__syn": 0, "clust": 255, "named": 1}.get(statement[:5])
    said = lines if number is None else {(1 << 31 | number << 20 | each) - (1 << 32) for each in lines}
    assert any(re.search(rf"(?<![\w-]){each}\b", code) for each in said), code[-3000:]
    assert cuda_tma.include_path() not in code.partition(".file")[0]
