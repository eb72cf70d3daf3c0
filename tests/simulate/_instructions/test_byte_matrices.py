"""Tests of ldmatrix and stmatrix of 8, 6 and 4 bits, with the layouts of CUTLASS as the reference."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate._matrix.byte_moves import byte_move_of

LOAD = """
extern "C" __global__ void k(const uint4* rows, unsigned* out) {
    __shared__ uint4 tile[32];
    tile[threadIdx.x] = rows[threadIdx.x];
    __syncthreads();
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]), x[4] = {};
    asm volatile("OPCODE {LIST}, [%4];" : "+r"(x[0]), "+r"(x[1]), "+r"(x[2]), "+r"(x[3]) : "r"(at) : "memory");
    for (int i = 0; i < 4; ++i) out[32 * i + threadIdx.x] = x[i];
}
"""
STORE = """
extern "C" __global__ void k(const unsigned* in, uint4* rows) {
    __shared__ uint4 tile[32];
    unsigned at = (unsigned)__cvta_generic_to_shared(&tile[threadIdx.x]), x[4];
    for (int i = 0; i < 4; ++i) x[i] = in[32 * i + threadIdx.x];
    tile[threadIdx.x] = uint4{0, 0, 0, 0};
    __syncthreads();
    asm volatile("OPCODE [%4], {LIST};" :: "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(at) : "memory");
    __syncthreads();
    rows[threadIdx.x] = tile[threadIdx.x];
}
"""
GPU = simulate.Device("10.0")
BYTES = np.random.default_rng(0).integers(0, 256, (32, 16), dtype=np.uint8)


def compiled(source, opcode, registers):
    names = ", ".join(f"%{i}" for i in range(registers))
    return GPU.compile(source.replace("OPCODE", opcode).replace("LIST", names), "k")


def loaded(opcode, registers):
    out = np.zeros((4, 32), np.uint32)
    kernel = compiled(LOAD, opcode, registers)
    GPU.launch(simulate.Config(1, 32), kernel, BYTES.ravel(), out).raise_for_errors()
    return out[:registers].view(np.uint8).reshape(registers, 32, 4)


@pytest.mark.parametrize("times", [1, 2])
def test_transposed_bytes(times):
    found = loaded(f"ldmatrix.sync.aligned.m16n16.x{times}.trans.shared.b8", 2 * times)
    lanes = np.arange(32)
    # The layout equals SrcLayout in the copy traits of CUTLASS.
    row_of_lane = lanes % 2 + lanes // 2 % 2 * 8 + lanes // 4 % 4 * 2 + lanes // 16 * 16
    image = np.zeros((32, 16), np.uint8)
    image[row_of_lane] = BYTES
    # CUTLASS exchanges the high bytes of each first register with the low bytes of the second register. The layout
    # then equals DstLayout in its copy traits.
    found = found.reshape(times, 2, 32, 2, 2).transpose(0, 3, 2, 1, 4).reshape(found.shape)
    register, thread, byte = np.indices(found.shape)
    bit = thread % 4 * 256 + thread // 4 * 8 + byte % 2 * 128 + byte // 2 * 64 + register * 1024
    assert np.array_equal(found, image.ravel()[bit // 8])


def test_a_thread_receives_four_rows_of_two_columns():
    found = loaded("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8", 2)
    thread = np.arange(32)
    for register in (0, 1):
        rows, columns = 4 * (thread % 4)[:, None] + np.arange(4), (thread // 4 + 8 * register)[:, None]
        assert np.array_equal(found[register], BYTES[rows, columns])


@pytest.mark.parametrize("times", [1, 2, 4])
@pytest.mark.parametrize(("type_", "bits"), [("b6x16_p32", 6), ("b4x16_p64", 4)])
def test_narrow_elements_become_bytes(times, type_, bits):
    found = loaded(f"ldmatrix.sync.aligned.m8n16.x{times}.shared.b8x16.{type_}", times)
    rows = [int.from_bytes(row.tobytes(), "little") for row in BYTES]
    expected = np.array([[row >> bits * i & (1 << bits) - 1 for i in range(16)] for row in rows], np.uint8)
    assert np.array_equal(found.ravel(), expected[: 8 * times].ravel())


@pytest.mark.parametrize("times", [1, 2, 4])
def test_stored_bytes(times):
    rows = np.zeros((32, 16), np.uint8)
    kernel = compiled(STORE, f"stmatrix.sync.aligned.m16n8.x{times}.trans.shared.b8", times)
    given = BYTES.view(np.uint32).reshape(4, 32)
    GPU.launch(simulate.Config(1, 32), kernel, given.copy(), rows).raise_for_errors()
    register, thread, byte = np.indices((times, 32, 4))
    # The layout equals SrcLayout in the copy traits of CUTLASS.
    bit = thread % 4 * 256 + thread // 4 * 8 + byte % 2 * 128 + byte // 2 * 64 + register * 1024
    expected = np.zeros(512, np.uint8)
    expected[bit // 8] = given[:times].copy().view(np.uint8).reshape(times, 32, 4)
    assert np.array_equal(rows.ravel(), expected)


@pytest.mark.parametrize(
    "opcode",
    [
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8",
        "ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8",
        "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b6x16_p32",
        "stmatrix.sync.aligned.m16n8.x1.shared.b8",
        "stmatrix.sync.aligned.m16n16.x1.trans.shared.b8",
        "ldmatrix.aligned.m16n16.x1.trans.shared.b8",
    ],
)
def test_other_forms_are_not_known(opcode):
    assert byte_move_of(tuple(opcode.split("."))) is None
