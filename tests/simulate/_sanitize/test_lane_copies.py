"""Tests of ``cp.async`` in many lanes. One operation for all lanes gives the same memory and the same findings as
separate operations."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._sanitize import Sanitizer

HEAD = r"""
__device__ void copy16(void* to, const void* from, unsigned bytes = 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes) : "memory");
}
__device__ void copy4(void* to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;"
                 ::"r"((unsigned)__cvta_generic_to_shared(to)), "l"(from) : "memory");
}
__device__ void commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }
extern "C" __global__ void kernel(const int* in, int* out) {
    __shared__ alignas(16) int tile[2][256];
    int t = threadIdx.x;
"""
# The table contains bodies of kernels for 64 threads and 512 numbers, and the lines that the errors report.
BODIES = {
    "right: two stages": (
        """
        for (int k = 0; k < 2; ++k) { copy16(&tile[k][4 * t], in + 256 * k + 4 * t); commit(); }
        wait<1>(); __syncthreads();
        for (int i = t; i < 256; i += 64) out[i] = tile[0][255 - i];
        wait<0>(); __syncthreads();
        for (int i = t; i < 256; i += 64) out[256 + i] = tile[1][255 - i];
        """,
        (),
    ),
    "right: each lane of a warp copies the same bytes to one place": (
        """
        copy4(&tile[0][t / 32], in + t / 32); commit(); wait<0>(); __syncthreads();
        for (int i = t; i < 512; i += 64) out[i] = tile[0][i % 2];
        """,
        (),
    ),
    "right: a buffer used again": (
        """
        for (int k = 0; k < 2; ++k) {
            copy16(&tile[0][4 * t], in + 256 * k + 4 * t); commit(); wait<0>(); __syncthreads();
            for (int i = t; i < 256; i += 64) out[256 * k + i] = tile[0][255 - i];
            __syncthreads();
        }
        """,
        (),
    ),
    "right: nothing or a part is read": (
        """
        copy16(&tile[0][4 * t], in + 4 * t, t < 32 ? 16 : t < 48 ? 0 : 8);
        copy16(&tile[1][4 * t], in + 4 * t, t < 40 ? 16 : 0);
        commit(); wait<0>(); __syncthreads();
        for (int i = t; i < 512; i += 64) out[i] = tile[0][i];
        """,
        (),
    ),
    "right: the lanes differ": (
        """
        tile[0][t] = t;
        if (t % 2) copy4(&tile[1][t], in + t); else copy4(&tile[1][t], in + 64 + t);
        commit(); wait<0>(); __syncthreads();
        out[t] = tile[0][t] + tile[1][63 - t];
        """,
        (),
    ),
    "wrong: no wait": (
        """
        copy16(&tile[0][4 * t], in + 4 * t); commit(); __syncthreads();
        out[t] = tile[0][t];
        """,
        ("race", "early-exit"),
    ),
    "wrong: no barrier within a warp": (
        """
        copy16(&tile[0][4 * t], in + 4 * t); commit(); wait<0>();
        out[t] = tile[0][(4 * t + 4) % 128 + t / 32 * 128];
        """,
        ("race",),
    ),
    "wrong: the buffer is read": (
        """
        tile[0][t] = in[t]; __syncthreads();
        out[t] = tile[0][63 - t];
        copy4(&tile[0][t], in + 64 + t); commit(); wait<0>();
        """,
        ("race",),
    ),
    "wrong: two lanes to one place": (
        """
        copy4(&tile[0][t / 2], in + t); commit(); wait<0>(); __syncthreads();
        out[t] = tile[0][t / 2];
        """,
        ("race",),
    ),
    "wrong: beyond the array": (
        """
        copy16(&tile[0][4 * t], in + 400 + 4 * t); commit(); wait<0>(); __syncthreads();
        out[t] = tile[0][t];
        """,
        ("out-of-bounds",),
    ),
    "wrong: writes of other threads": (
        """
        out[t] = t;
        copy4(&tile[0][t], out + 63 - t); commit(); wait<0>(); __syncthreads();
        out[64 + t] = tile[0][t];
        """,
        ("race",),
    ),
    "wrong: a misaligned place": (
        """
        copy16(&tile[0][4 * t + 1], in + 4 * t); commit(); wait<0>(); __syncthreads();
        """,
        ("misaligned",),
    ),
}


def launched(body: str, order: str) -> tuple[list[tuple], np.ndarray]:
    gpu = simulate.Device()
    kernel = gpu.compile(HEAD + body + "}", "kernel")
    given, out = np.arange(512, dtype=np.int32), np.zeros(512, np.int32)
    report = gpu.launch(simulate.Config(1, 64), kernel, given, out, order=order, seed=3)
    found = [(each.kind, each.severity, each.source, each.other, each.count, each.blocks) for each in report.findings]
    return found, out


@pytest.mark.parametrize("order", ["early", "late", "random"])
@pytest.mark.parametrize("name", BODIES)
def test_together_and_one_by_one_are_equal(name, order, monkeypatch):
    body, kinds = BODIES[name]
    found, out = launched(body, order)
    if order == "early" or not kinds:
        assert tuple(dict.fromkeys(kind for kind, severity, *_ in found if severity == "error")) == kinds
    monkeypatch.setattr(Sanitizer, "issue_each", lambda *_: None)
    found_alone, out_alone = launched(body, order)
    assert [each[:4] for each in found] == [each[:4] for each in found_alone]
    if name.startswith("right"):
        np.testing.assert_array_equal(out, out_alone)


def test_copies_of_a_cta_are_one_operation(monkeypatch):
    begun = []
    issue = Sanitizer.issue_each

    def issue_each(sanitizer, lanes, *rest):
        begun.append((issue(sanitizer, lanes, *rest), len(lanes)))
        return begun[-1][0]

    monkeypatch.setattr(Sanitizer, "issue_each", issue_each)
    launched(BODIES["right: two stages"][0], "late")
    assert [(copies is not None, lanes) for copies, lanes in begun] == [(True, 64)] * 2
