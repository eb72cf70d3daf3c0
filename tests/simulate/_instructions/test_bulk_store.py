"""Tests of ``st.bulk``, which writes zeros to shared memory through the generic proxy."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = """
extern "C" __global__ void k(unsigned* out, unsigned long long size) {
    __shared__ alignas(16) unsigned tile[64];
    const int t = threadIdx.x;
    tile[t] = t + 1;
    __syncthreads();
    if (t == 0) asm volatile("st.bulk.weak.shared::cta [%0], %1, 0;" // HERE
        :: "r"((unsigned)__cvta_generic_to_shared(tile + 2)), "l"(size) : "memory");
    BETWEEN
    out[t] = tile[t];
}
"""
GPU = simulate.Device("10.0", schedules=2)


def launched(between: str, size: int) -> tuple[simulate.Report, np.ndarray]:
    out = np.zeros(64, np.uint32)
    kernel = GPU.compile(SOURCE.replace("BETWEEN", between), "k")
    return GPU.launch(simulate.Config(1, 64), kernel, out, np.uint64(size)), out


@pytest.mark.parametrize("size", [0, 8, 48])
def test_it_writes_zeros(size):
    report, out = launched("__syncthreads();", size)
    expected = np.arange(1, 65, dtype=np.uint32)
    expected[2 : 2 + size // 4] = 0
    assert report.findings == ()
    assert np.array_equal(out, expected)


def test_a_read_without_a_barrier_races_with_it():
    report, _ = launched("", 48)
    (finding,) = report.errors
    assert finding.kind == "race"
    here = next(n for n, line in enumerate(SOURCE.splitlines(), 1) if "HERE" in line)
    assert here in {finding.source[-1].line, finding.other[-1].line}


def test_a_size_that_is_not_a_multiple_of_8_is_an_error():
    report, _ = launched("__syncthreads();", 12)
    assert report.errors[0].kind == "misaligned"
    assert "the size of st.bulk, 12 bytes, is not a multiple of 8" in report.errors[0].message


def test_bytes_beyond_shared_memory_are_an_error():
    report, _ = launched("__syncthreads();", 1 << 20)
    assert report.errors[0].kind == "out-of-bounds"
