"""Tests of tensor_memory.cuh on the simulator: the cells of each shape, and columns with the lifetime of an object."""

from __future__ import annotations

import numpy as np

from cuda_tma import simulate

SOURCE = """
#include <cuda_tma/tensor_memory.cuh>
using namespace cuda_tma;
template <int Lanes, int Bits> __device__ void read(tcgen05::Address at, float* out) {
    float r[16];
    tcgen05::ld<Lanes, Bits>(r, at);
    tcgen05::wait_ld(r);
    for (int i = 0; i < 16; ++i) out[16 * threadIdx.x + i] = r[i];
}
extern "C" __global__ void k(float* out, unsigned* halves) {
    __shared__ unsigned slot;
    const TensorMemory<64> memory(slot);
    float r[32];
    for (int i = 0; i < 32; ++i) r[i] = 1000 * threadIdx.x + i;
    const tcgen05::Address at = memory.column(32).of_warp();
    tcgen05::st(at, r);
    tcgen05::wait_st();
    read<32, 32>(at, out);
    read<16, 64>(at, out + 2048);
    read<16, 128>(at, out + 4096);
    read<16, 256>(at.lane(16), out + 6144);
    unsigned pairs[2] = {0x20001, 0x40003};
    tcgen05::st_unpack_16b(at, pairs);
    tcgen05::wait_st();
    tcgen05::ld(pairs, at.column(1));
    tcgen05::wait_ld(pairs);
    halves[2 * threadIdx.x] = pairs[0];
    tcgen05::ld_pack_16b(pairs, at);
    tcgen05::wait_ld(pairs);
    halves[2 * threadIdx.x + 1] = pairs[1];
}
"""


def test_registers_are_the_cells_of_their_shape():
    """The comment of ld() and the table of shapes in the PTX ISA define the cells. The object frees its columns at the
    end of the kernel, so the simulator reports no leak."""
    out, halves = np.full((4, 4, 32, 16), np.nan, np.float32), np.zeros((128, 2), np.uint32)
    device = simulate.Device((10, 0), schedules=1, sanitize=True)
    report = device.launch(simulate.Config(1, 128), device.compile(SOURCE, "k"), out, halves)
    assert report.findings == ()
    thread, i = np.ogrid[:32, :16]
    shapes = [
        (thread + 0 * i, i + 0 * thread),
        (thread // 4 + 8 * (thread % 2), thread // 2 % 2 + 2 * i),
        (thread // 4 + 8 * (i % 2), thread % 4 + 4 * (i // 2)),
        (16 + thread // 4 + 8 * (i // 2 % 2), thread % 4 * 2 + i % 2 + 8 * (i // 4)),
    ]
    for found, (lane, column) in zip(out, shapes, strict=True):
        for warp in range(4):
            assert np.array_equal(found[warp], 1000 * (32 * warp + lane) + column)
    assert halves.tolist() == [[2, 0x40003]] * 128
