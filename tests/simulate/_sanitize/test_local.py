"""Tests of reads before a write in local arrays, and of indices beyond a local array."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

HEAD = r"""
struct Padded { char letter; double value; };
struct alignas(16) Wide { int first; };
struct Large { char letter; int numbers[63]; };
struct Pair { int first, second; };
__device__ __noinline__ int sum_of(const int* values, int n) {
    int sum = 0;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) sum += values[i];
    return sum;
}
__device__ __noinline__ void fill(int* values, int n) {
    #pragma unroll 1
    for (int i = 0; i < n; ++i) values[i] = i + 1;
}
__device__ __noinline__ int deep(int n, const int* in) {
    int mine[4];
    fill(mine, 4);
    return n ? deep(n - 1, in) + mine[in[n % 4] & 3] : mine[in[0] & 3];
}
extern "C" __global__ void kernel(const int* in, int* out, int n) {
    const int t = threadIdx.x;
"""
# The array `in` contains 0, 1, 2 and so on, and n is 6. Each entry contains the kind of the finding and the body of the
# kernel.
WRONG = {
    "sum_of_eight_of_six": ("uninitialized-read", "int a[8]; fill(a, n); out[t] = sum_of(a, 8);"),
    "never_written": ("uninitialized-read", "int a[8]; if (n > 6) fill(a, 8); out[t] = a[in[t] % 8];"),
    "copied_out": (
        "uninitialized-read",
        "int a[8];\n#pragma unroll 1\nfor (int i = 0; i < n; ++i) a[in[i]] = i; out[t] = a[in[t] % 8];",
    ),
    "only_in_a_branch": ("uninitialized-read", "int a[8]; if (t < 16) fill(a, 8); out[t] = sum_of(a, 8);"),
    "index_of_a_load": ("uninitialized-read", "int a[8]; fill(a, n); out[a[in[t] % 8] & 31] = 1;"),
    "letters": (
        "uninitialized-read",
        "char a[16];\n#pragma unroll 1\nfor (int i = 0; i < n; ++i) a[in[i]] = i; out[t] = a[in[t] % 16] * 3;",
    ),
    "read_beyond": ("out-of-bounds", "int a[8]; fill(a, 8); out[t] = sum_of(a, 12);"),
    "write_beyond": ("out-of-bounds", "int a[8]; fill(a, 10); out[t] = sum_of(a, 8);"),
}
RIGHT = {
    "written_whole": "int a[8]; fill(a, 8); out[t] = sum_of(a, 8);",
    "as_far_as_written": "int a[8]; fill(a, n); out[t] = sum_of(a, n);",
    "zeros": "int a[8] = {}; fill(a, n); out[t] = sum_of(a, 8);",
    "value_without_effect": "int a[8]; fill(a, n); out[t] = sum_of(a, 8) * (n - 6);",
    "selected": (
        "int a[8]; fill(a, n); int sum = 0;\n#pragma unroll 1\nfor (int i = 0; i < 8; ++i)"
        "{ const int value = a[(i + t) % 8]; sum += (i + t) % 8 < n ? value : 0; } out[t] = sum;"
    ),
    "padding": (
        "Padded a[4];\n#pragma unroll 1\nfor (int i = 0; i < 4; ++i) { a[i].letter = i; a[i].value = i; }"
        "((Padded*)out)[t % 4] = a[in[t] % 4];"
    ),
    "copy_of_a_large_structure": (
        "Large a[2];\n#pragma unroll 1\nfor (int i = 0; i < 2; ++i) { a[i].letter = i;"
        "\n#pragma unroll 1\nfor (int j = 0; j < 63; ++j) a[i].numbers[in[j]] = j; }"
        "if (t == 0) *(Large*)out = a[in[t] % 2];"
    ),
    "vector_of_a_half": (
        "Wide a[4];\n#pragma unroll 1\nfor (int i = 0; i < 4; ++i) a[in[i]].first = i; ((Wide*)out)[t] = a[in[t] % 4];"
    ),
    "pairs": "Pair a[4]; fill(&a[0].first, 8); ((Pair*)out)[t] = a[in[t] % 4];",
    "recursion": "out[t] = deep(n, in);",
    "array_of_the_caller": "int a[8]; fill(a, 4); fill(a + 4, 4); out[t] = sum_of(a, 8) + sum_of(a + 2, 3);",
    "printf": 'int a[4]; fill(a, 4); if (t == 0) printf("%d %d\\n", a[in[t]], n); out[t] = a[in[t] % 4];',
}


def launched(body: str) -> simulate.Report:
    gpu = simulate.Device(schedules=4)
    kernel = gpu.compile(HEAD + body + "\n}", "kernel")
    values, out = np.arange(256, dtype=np.int32), np.zeros(1024, np.int32)
    return gpu.launch(simulate.Config(2, 32), kernel, values, out, 6)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_of_a_local_array_is_an_error(name: str) -> None:
    kind, body = WRONG[name]
    report = launched(body)
    assert kind in {finding.kind for finding in report.errors}, str(report)


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_use_has_no_error(name: str) -> None:
    report = launched(RIGHT[name])
    assert report.errors == (), str(report)


def test_a_launch_continues_after_an_index_beyond_the_array() -> None:
    gpu = simulate.Device()
    kernel = gpu.compile(HEAD + WRONG["write_beyond"][1] + "\n}", "kernel")
    out = np.zeros(32, np.int32)
    report = gpu.launch(simulate.Config(1, 32), kernel, np.arange(32, dtype=np.int32), out, 6)
    (finding,) = report.errors
    assert out.tolist() == [36] * 32
    assert "a write of 4 bytes at byte 32 of local memory" in finding.message
    assert "and its callers end at byte 32" in finding.message


def test_the_local_memory_of_a_block_that_begins_is_unwritten() -> None:
    gpu = simulate.Device(multiprocessor_count=1)
    source = HEAD + "int a[8]; if (blockIdx.x < 16) fill(a, 8); out[t] = sum_of(a, 8);\n}"
    report = gpu.launch(
        simulate.Config(64, 32), gpu.compile(source, "kernel"), np.arange(32, dtype=np.int32), np.zeros(32, np.int32), 6
    )
    assert "uninitialized-read" in {finding.kind for finding in report.findings}


def test_a_read_of_the_local_variables_of_a_caller_is_named() -> None:
    (found,) = launched(WRONG["only_in_a_branch"][1]).errors
    assert "thread 16 (warp 0) reads 4 bytes of a caller's local variables, which it has not written" in found.message
