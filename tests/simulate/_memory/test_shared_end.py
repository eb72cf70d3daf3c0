"""Tests of the end of a CTA's shared memory. An access to the last byte is right, and an access to the next byte is a
finding."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
extern "C" __global__ void dynamic(int at, int* out) {
    extern __shared__ char bytes[];
    volatile char* each = bytes;
    each[at] = 7;
    out[0] = each[at];
}
extern "C" __global__ void fixed(int at, int* out) {
    __shared__ char bytes[BYTES];
    volatile char* each = bytes;
    each[at] = 7;
    out[0] = each[at];
}
"""
GPU = simulate.Device()


@pytest.mark.parametrize("name", ["dynamic", "fixed"])
@pytest.mark.parametrize("size_bytes", [4, 1020, 1024, 1028])
def test_one_byte_beyond_shared_memory_is_a_finding(name, size_bytes):
    kernel = GPU.compile(SOURCE, name, defines={"BYTES": size_bytes})
    config = simulate.Config(1, 1, shmem_size=size_bytes if name == "dynamic" else 0)
    out = np.zeros(1, np.int32)
    assert GPU.launch(config, kernel, size_bytes - 1, out).findings == ()
    assert out[0] == 7
    finding = GPU.launch(config, kernel, size_bytes, out).errors[0]
    assert finding.kind == "out-of-bounds"
    assert f"shared memory, of which the CTA has {size_bytes}" in finding.happened
