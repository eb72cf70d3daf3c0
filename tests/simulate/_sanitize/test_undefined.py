"""Tests of undefined values, which are an error if a replay shows an effect, and otherwise advice."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
extern "C" __global__ void k(const int* in, int* out, int n) {
    __shared__ int shared[64];
    const int t = threadIdx.x, lane = t % 32;
    int v = in[t];
    BODY
    out[t] = v;
}
"""
SHUFFLES = {
    "an index": "if (lane < 16) v += __shfl_sync(0xffff, v, 20);",
    "down": "if (lane < n) for (int d = 16; d; d /= 2) v += __shfl_down_sync((1u << n) - 1, v, d);",
    "xor": "if (lane < n) v += __shfl_xor_sync((1u << n) - 1, v, 16);",
    "a lane that has ended": "if (lane >= n) return; __syncwarp((1u << n) - 1); v += __shfl_sync(~0u, v, 31);",
    "a branch": "if (lane < 16) v = __shfl_sync(0xffff, v, 20) > 5 ? v : v + 1;",
}
UNUSED_SHUFFLES = {
    "a guarded sum": (
        "if (lane < n) for (int d = 16; d; d /= 2) { int w = __shfl_down_sync((1u << n) - 1, v, d); "
        "if (lane + d < n) v += w; }"
    ),
    "a product with zero": "if (lane < 16) v += __shfl_sync(0xffff, v, 20) * (n - 20);",
}
RIGHT_SHUFFLES = {
    "segments": "if (lane < 16) for (int d = 8; d; d /= 2) v += __shfl_down_sync(0xffff, v, d, 16);",
    "up": "if (lane < n) { int w = __shfl_up_sync((1u << n) - 1, v, 1); v += lane ? w : 0; }",
    "a whole warp": "v += __shfl_xor_sync(~0u, v, 16);",
    "two halves": "v += __shfl_xor_sync(lane < 16 ? 0xffffu : 0xffff0000u, v, 8);",
}
UNWRITTEN = {
    "slots of warps that the block lacks": "if (lane == 0) shared[t / 32] = v; __syncthreads(); v = shared[lane];",
    "a maximum": "v = max(v, shared[t]);",
    "a branch": "if (shared[t] > 5) v += 1;",
    "an address": "v = in[shared[t] & 63];",
}
UNUSED = {
    "a discarded value": "int w = *(volatile int*)(shared + t); if (lane < 16) shared[t] = v; v += w * (n - 20);",
    "a mask": "v += shared[t] & (n - 20);",
}


def launched(body: str, **settings: object) -> tuple[simulate.Finding, ...]:
    gpu = simulate.Device(**settings)
    kernel = gpu.compile(SOURCE.replace("BODY", body + "  // here"), "k")
    given, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    findings = gpu.launch(simulate.Config(1, 64), kernel, given, out, 20).findings
    lines = SOURCE.replace("BODY", body + "  // here").splitlines()
    assert all(lines[at.line - 1].endswith("// here") for finding in findings for at in finding.source[-1:])
    assert (given == np.arange(64)).all()
    return findings


def kinds(findings: tuple[simulate.Finding, ...]) -> set[tuple[str, str]]:
    return {(finding.kind, finding.severity) for finding in findings}


@pytest.mark.parametrize("schedules", [1, 4])
@pytest.mark.parametrize("name", SHUFFLES)
def test_a_value_of_an_absent_lane_with_an_effect_is_an_error(name, schedules):
    (finding,) = launched(SHUFFLES[name], schedules=schedules)
    assert (finding.kind, finding.severity) == ("barrier-divergence", "error")
    assert "the value is undefined" in finding.message
    assert "the value has an effect" in finding.message


@pytest.mark.parametrize("name", UNUSED_SHUFFLES)
def test_a_value_of_an_absent_lane_without_an_effect_is_advice(name):
    assert kinds(launched(UNUSED_SHUFFLES[name], schedules=4)) == {("barrier-divergence", "advice")}


@pytest.mark.parametrize("name", RIGHT_SHUFFLES)
def test_a_shuffle_within_its_mask_is_right(name):
    assert launched(RIGHT_SHUFFLES[name], schedules=4) == ()


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", UNWRITTEN)
def test_shared_memory_before_any_write_with_an_effect_is_an_error(name, strict):
    assert kinds(launched(UNWRITTEN[name], strict=strict)) == {("uninitialized-read", "error")}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", UNUSED)
def test_shared_memory_before_any_write_without_an_effect_is_advice(name, strict):
    assert kinds(launched(UNUSED[name], strict=strict)) == {("uninitialized-read", "advice")}


def test_each_read_is_checked_separately():
    body = "__shared__ int more[64];\n v += shared[t] & (n - 20);\n v += more[t] & 1;  // here"
    gpu = simulate.Device()
    kernel = gpu.compile(SOURCE.replace("BODY", body), "k")
    report = gpu.launch(simulate.Config(1, 64), kernel, np.arange(64, dtype=np.int32), np.zeros(64, np.int32), 20)
    (error,) = report.errors
    assert len(report.findings) == 2
    assert SOURCE.replace("BODY", body).splitlines()[error.source[0].line - 1].endswith("// here")
