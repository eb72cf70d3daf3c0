"""Tests of warp-wide instructions that only some lanes of a warp execute, or that the lanes execute with different
masks."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
__device__ unsigned elected() {
    unsigned pred;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.b32 %0, 1, 0, p; }" : "=r"(pred));
    return pred;
}
__device__ int sum(int v, unsigned mask) {
    int s;
    asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(s) : "r"(v), "r"(mask));
    return s;
}
extern "C" __global__ void k(int* out, int n) {
    __shared__ int shared[64];
    const int t = threadIdx.x, lane = t % 32;
    int v = t;
    shared[t] = t;
    BODY
    out[t] = v;
}
"""
FULL = "0xffffffffu"
PARTS = {
    "elect": "if (lane < 16) { if (elected()) v = 1; }",
    "bar.sync": "if (lane < 16) __syncthreads();",
    "bar.sync of one warp": "if (t < 16) __syncthreads();",
    "bar.sync of a count": 'if (lane < 16) asm volatile("bar.sync 1, 32;" ::: "memory");',
    "bar.red": "if (lane < 16) v = __syncthreads_count(t > 3);",
    "shuffle": f"if (lane < 16) v = __shfl_sync({FULL}, v, 3);",
    "vote": f"if (lane & 1) v = __ballot_sync({FULL}, v > 3);",
    "match": f"if (lane < 31) v = __match_any_sync({FULL}, v & 3);",
    "reduction": f"if (lane != 5) v = sum(v, {FULL});",
    "a loop that lanes leave": f"for (int i = 0; i < lane; ++i) v += __shfl_xor_sync({FULL}, v, 1);",
    "bar.warp.sync": "if (lane < 16) __syncwarp(); else v = sum(v, 0xffff0000u);",
    "bar.warp.sync and another": "if (lane < 16) __syncwarp(); else { __syncwarp(0xffff0000u); v = 3; }",
}
# Some lanes bypass `__syncwarp()`, and then end. The hardware completes the wait, although the CUDA guide does not
# permit this bypass.
ENDS = {
    "a branch": "if (lane < 16) __syncwarp();",
    "steps": "if (lane < 16) { v = shared[t + 16]; __syncwarp(); } if (lane < 8) { v += 3; __syncwarp(); }",
    "a barrier before": "__syncthreads(); if (lane == 3) { v = shared[t + 16]; __syncwarp(); }",
}
TWINS = {
    "early return before a barrier": "if (t >= n) return;\n __syncthreads();",
    "early return after a store": "if (t >= n) { atomicAdd(out, 0); return; }\n __syncthreads();\n v = shared[t ^ 1];",
    "early return before a shuffle": f"if (t >= n) return;\n v = __shfl_sync({FULL}, v, 3);",
    "early return in a loop": f"for (int i = 0; i < 8; ++i) {{ if (t >= n + i) return; v += sum(i, {FULL}); }}",
    "a mask of the lanes that come": "if (lane < 16) v = __shfl_sync(0xffffu, v, 3);",
    "a ballot before": f"unsigned m = __ballot_sync({FULL}, lane % 3);\n if (lane % 3) v = sum(v, m);",
    "two masks, two halves": "v = sum(v, lane < 16 ? 0xffffu : 0xffff0000u);",
    "groups of equal values": f"v = sum(v, __match_any_sync({FULL}, v % 5));",
    "a whole warp": "if (t < 32) { v += elected(); __syncwarp(); v += sum(v, 0xffffffffu); }",
    "a barrier of one warp": 'if (t < 32) asm volatile("bar.sync 1, 32;" ::: "memory");',
    "lanes that come late": f"if (lane < 16) v = v * 3 % 7; else v = v * 5;\n __syncthreads();\n v = sum(v, {FULL});",
    "an unaligned barrier": 'if (lane < 16) asm volatile("barrier.sync 1, 32;" ::: "memory");',
}  # fmt: skip
MASKS = {
    "two masks": f"v = sum(v, lane < 16 ? 0xffffu : {FULL});",
    "two masks of a shuffle": f"v = __shfl_sync(lane == 9 ? 0xfffffffeu : {FULL}, v, 9);",
    "two masks in two steps": f"if (lane < 16) v *= 3;\n v = __shfl_sync(lane & 1 ? ~6u | 1u << lane : {FULL}, v, 9);",
}


def reported(body: str, strict: bool = False) -> simulate.Report:
    gpu = simulate.Device(schedules=4, strict=strict)
    kernel = gpu.compile(SOURCE.replace("BODY", body + "  // here"), "k")
    return gpu.launch(simulate.Config(2, 64), kernel, np.zeros(64, np.int32), 40)


def launched(body: str) -> tuple[simulate.Finding, ...]:
    return reported(body).errors


def line_of(body: str) -> int:
    source = SOURCE.replace("BODY", body + "  // here")
    return 1 + [line.endswith("// here") for line in source.splitlines()].index(True)


def is_found(findings: tuple[simulate.Finding, ...], words: str, line: int) -> bool:
    return any(
        finding.kind == "barrier-divergence" and words in finding.message and line in {at.line for at in finding.source}
        for finding in findings
    )


@pytest.mark.parametrize("name", PARTS)
def test_lanes_that_pass_by_are_an_error(name):
    found = launched(PARTS[name])
    words = "completes with a part of a warp" if name == "bar.sync of a count" else "bypasses the instruction"
    assert is_found(found, words, line_of(PARTS[name])), found


@pytest.mark.parametrize("name", ENDS)
def test_lanes_that_pass_by_and_only_end_are_advice(name):
    report = reported(ENDS[name])
    assert not [each for each in report.errors if each.kind != "race"]
    effect = "From compute capability 7.0 on, the wait completes when that lane ends"
    assert is_found(report.findings, effect, line_of(ENDS[name])), report.findings


def test_a_strict_device_reports_them_as_errors():
    found = reported(ENDS["a branch"], strict=True).errors
    assert is_found(found, "bypasses the instruction", line_of(ENDS["a branch"])), found


@pytest.mark.parametrize("name", TWINS)
def test_lanes_that_end_or_arrive_are_right(name):
    kinds = {finding.kind for finding in reported(TWINS[name]).findings}
    # The two CTAs of the launch write the same words of `out`, so the report may contain a race.
    assert kinds <= {"race"}


@pytest.mark.parametrize("name", MASKS)
def test_lanes_that_name_each_other_with_different_masks_are_an_error(name):
    assert is_found(launched(MASKS[name]), "names the mask", line_of(MASKS[name]))
