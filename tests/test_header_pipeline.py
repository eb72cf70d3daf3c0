"""pipeline.cuh: it compiles, in every size, to the instructions that it says, and its ring turns as it should."""

from __future__ import annotations

import re

import pytest

from .test_header import HEADER, TARGETS, cubin, ptx

PIPELINE = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, float* out, int tiles) {{
    __shared__ alignas(128) float tile[{stages}][64];
    __shared__ Pipeline<{stages}> pipeline;
    Stage<{stages}> at;
    {statements}
}}
"""
PIPELINE_STATEMENTS = """
    if (threadIdx.x == 0) pipeline.init(64);
    __syncthreads();
    if (threadIdx.x == 64) {
        for (int i = 0; i < tiles; ++i, at.next())
            load(tile[at.index], map, pipeline.acquire(at, sizeof(tile[0])), Coordinates{64 * i});
    } else {
        for (int i = 0; i < tiles; ++i, at.next()) {
            pipeline.wait(at);
            out[64 * i + threadIdx.x] = tile[at.index][threadIdx.x];
            pipeline.release(at);
        }
    }
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
def test_pipeline_compiles(stages, target):
    assert cubin(PIPELINE.format(stages=stages, statements=PIPELINE_STATEMENTS), target).startswith(b"\x7fELF")


def test_pipeline_is_compiled_whole():
    """Each member function of pipeline.cuh is called above: a template that is not instantiated is not compiled."""
    text = HEADER.with_name("pipeline.cuh").read_text()
    defined = set(re.findall(r"^ *__device__ (?:constexpr )?[\w:&<> ]+?[ &](\w+)\(", text, re.M))
    assert defined == {"next", "init", "acquire", "wait", "release"}
    assert defined <= set(re.findall(r"\w+", PIPELINE_STATEMENTS))


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stage_walks_the_ring(stages):
    """Turn i is in place i % stages, and its parity is that of the round i // stages, decided by the compiler."""
    walk = """
__device__ constexpr bool agrees() {{
    Stage<{stages}> at;
    for (int i = 0; i < 4 * {stages} + 1; ++i, at.next())
        if (at.index != i % {stages} || at.parity != i / {stages} % {rounds}) return false;
    return true;
}}
static_assert(agrees());"""
    source = "#include <cuda_tma/pipeline.cuh>\nusing namespace cuda_tma;\n" + walk
    cubin(source.format(stages=stages, rounds=2), "sm_90a")
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(source.format(stages=stages, rounds=3), "sm_90a")


@pytest.mark.parametrize(
    ("statement", "instructions"),
    [
        ("pipeline.init(64);", ["mbarrier.init", "mbarrier.init", "fence.mbarrier_init"]),
        ("pipeline.acquire(at, 256);", ["mbarrier.try_wait", "mbarrier.arrive.expect_tx"]),
        ("pipeline.wait(at);", ["mbarrier.try_wait"]),
        ("pipeline.release(at);", ["mbarrier.arrive"]),
    ],
)
def test_pipeline_is_its_instructions(statement, instructions):
    """Each function is these instructions in this order: the producer waits before it announces bytes."""
    text = ptx(PIPELINE.format(stages=1, statements=statement))
    names = r"mbarrier\.arrive\.expect_tx|mbarrier\.(?:init|try_wait|arrive)\b|fence\.mbarrier_init"
    assert re.findall(rf"\b({names})(?=[.;])", text) == instructions


@pytest.mark.parametrize(("statement", "parity"), [("pipeline.acquire(at, 256);", 1), ("pipeline.wait(at);", 0)])
def test_pipeline_starts_empty(statement, parity):
    """In the first round the producer waits for the phase before the first, and consumers wait for the first."""
    text = ptx(PIPELINE.format(stages=2, statements=statement))
    (register,) = re.findall(r"try_wait\.parity\S* p, \[%\w+\], (%\w+);", text)
    assert re.findall(rf"mov\.[bu]32\s+{register}, (\d+);", text) == [str(parity)]
