"""Tests of mma.sync with a .kind qualifier for sm_120, with elements of 8, 6 and 4 bits.

The tests build the fragments from the layouts of CUTLASS 4.7 (`cute/atom/mma_traits_sm120.hpp`).
"""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.support.pure_instructions import entry_of, lookup_of

LANES = np.arange(32)
D, A, B, C = "{d1, d2, d3, d4}", "{a1, a2, a3, a4}", "{b1, b2}", "{c1, c2, c3, c4}"
SCALES = "e, {f, g}, h, {i, j}"
BITS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "e2m3": (2, 3, 1), "e3m2": (3, 2, 3), "e2m1": (2, 1, 1)}


def value(code: int, type_: str) -> float:
    """Return the finite number that a code represents."""
    exponent_bits, fraction_bits, bias = BITS[type_]
    sign, rest = divmod(code, 1 << exponent_bits + fraction_bits)
    exponent, fraction = divmod(rest, 1 << fraction_bits)
    size = (fraction + (1 << fraction_bits if exponent else 0)) * 2.0 ** (max(exponent, 1) - bias - fraction_bits)
    return -size if sign else size


def codes(rows: int, k: int, type_: str, seed: int) -> np.ndarray:
    """Return random codes of small numbers."""
    bits = 1 + sum(BITS[type_][:2])
    found = np.random.default_rng(seed).integers(0, 1 << bits, (rows, k), np.uint8)
    return found & 0xBF if bits == 8 else found  # Codes of 8 bits have small exponents.


def numbers(found: np.ndarray, type_: str) -> np.ndarray:
    return np.vectorize(lambda code: value(code, type_), otypes=[float])(found)


def in_bytes(found: np.ndarray, type_: str) -> np.ndarray:
    """Return one byte for each element. An element of 4 bits is in bits 2 to 5 of its byte."""
    return found << 2 if type_ == "e2m1" else found


def packed(found: np.ndarray) -> np.ndarray:
    return found[:, ::2] | found[:, 1::2] << 4


def registers_of(rows: np.ndarray) -> list[np.ndarray]:
    """Return the registers of an operand as uint32 [1, 32]. Operand A has 16 rows of 32 bytes, and operand B has 8
    columns of 32 bytes."""
    words = np.ascontiguousarray(rows).view(np.uint32)
    halves = len(rows) // 8
    places = [(LANES // 4 + 8 * (i % halves), LANES % 4 + 4 * (i // halves)) for i in range(2 * halves)]
    return [words[row, word][None] for row, word in places]


def rows_of_sums(registers) -> np.ndarray:
    found = np.zeros((16, 8))
    for i, register in enumerate(registers):
        found[LANES // 4 + 8 * (i // 2), LANES % 4 * 2 + i % 2] = np.asarray(register).reshape(-1)
    return found


def multiplied(opcode: str, a: np.ndarray, b: np.ndarray, c: float = 0.0, scales: tuple = ()) -> np.ndarray:
    entry = entry_of(f"{opcode} {D}, {A}, {B}, {C}{', ' * bool(scales)}{SCALES * bool(scales)}")
    sums = [np.full((1, 32), c, np.float32)] * 4
    with np.errstate(all="ignore"):
        found = entry.compute(np.ones((1, 32), bool), *registers_of(a), *registers_of(b), *sums, *scales)
    return rows_of_sums(found)


def scale_registers(scales: np.ndarray, lanes: np.ndarray, byte: int) -> np.ndarray:
    """Return a register for each lane, whose bytes from `byte` on are the scales of a row. All other bytes are NaN."""
    found = np.full((32, 4), 0xFF, np.uint8)
    found[lanes, byte : byte + scales.shape[1]] = scales
    return found.view(np.uint32).reshape(1, 32)


@pytest.mark.parametrize("spelling", ["kind::f8f6f4.m16n8k32.row.col", "m16n8k32.row.col.kind::f8f6f4"])
@pytest.mark.parametrize(("a_type", "b_type"), [("e2m1", "e3m2"), ("e2m3", "e2m1"), ("e4m3", "e5m2"), ("e3m2", "e4m3")])
def test_products_without_scales(spelling, a_type, b_type):
    a, b = codes(16, 32, a_type, 1), codes(8, 32, b_type, 2)
    found = multiplied(
        f"mma.sync.aligned.{spelling}.f32.{a_type}.{b_type}.f32", in_bytes(a, a_type), in_bytes(b, b_type), 2
    )
    expected = numbers(a, a_type) @ numbers(b, b_type).T + 2
    assert np.abs(found - expected).max() <= np.abs(expected).max() * 2.0**-20


def test_sums_of_f16():
    a, b = codes(16, 32, "e2m1", 3), codes(8, 32, "e2m1", 4)
    opcode = "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f16.e2m1.e2m1.f16"
    entry = entry_of(f"{opcode} {{d1, d2}}, {A}, {B}, {{c1, c2}}")
    zeros = [np.zeros((1, 32), np.uint32)] * 2
    registers = [*registers_of(a << 2), *registers_of(b << 2), *zeros]
    found = [np.asarray(each).reshape(-1) for each in entry.compute(np.ones((1, 32), bool), *registers)]
    halves = [each.view(np.float16)[part::2] for each in found for part in (0, 1)]
    assert np.array_equal(rows_of_sums(halves), numbers(a, "e2m1") @ numbers(b, "e2m1").T)


SCALED = [  # Each row contains the kind, its suffix, the types of operands, and the number and the type of scales.
    ("mxf8f6f4", ".scale_vec::1X", "e4m3", "e2m1", 1, "ue8m0"),
    ("mxf8f6f4", "", "e2m3", "e3m2", 1, "ue8m0"),
    ("mxf4", "", "e2m1", "e2m1", 2, "ue8m0"),
    ("mxf4nvf4", ".scale_vec::2X", "e2m1", "e2m1", 2, "ue8m0"),
    ("mxf4nvf4", ".scale_vec::4X", "e2m1", "e2m1", 4, "ue4m3"),
]


@pytest.mark.parametrize("case", SCALED, ids=["".join(case[:3]) for case in SCALED])
@pytest.mark.parametrize("is_shape_first", [False, True])
@pytest.mark.parametrize("select", [0, 1])
def test_products_with_scales(case, is_shape_first, select):
    """In the test, each scale belongs to a block of K in one row. All other lanes and bytes of the scale registers
    contain NaN."""
    kind, suffix, a_type, b_type, count, scale_type = case
    k = 32 if kind == "mxf8f6f4" else 64
    a, b = codes(16, k, a_type, 5), codes(8, k, b_type, 6)
    random = np.random.default_rng(7)
    low, high = (120, 134) if scale_type == "ue8m0" else (0x28, 0x48)
    of_a, of_b = (random.integers(low, high, (rows, count), np.uint8) for rows in (16, 8))
    byte, a_thread, b_thread = (0 if count == 4 else (3 if count == 1 else 2) * select), select, 3 * select
    a_lanes = np.arange(16) % 8 * 4 + np.arange(16) // 8 + 2 * a_thread
    ids = [np.full((1, 32), each, np.uint16) for each in (byte, a_thread, byte, b_thread)]
    b_lanes = np.arange(8) * 4 + b_thread
    scales = scale_registers(of_a, a_lanes, byte), *ids[:2], scale_registers(of_b, b_lanes, byte), *ids[2:]
    shape = f"m16n8k{k}.row.col"
    kinds = f"kind::{kind}.block_scale{suffix}"
    middle = f"{shape}.{kinds}" if is_shape_first else f"{kinds}.{shape}"
    opcode = f"mma.sync.aligned.{middle}.f32.{a_type}.{b_type}.f32.{scale_type}"
    rows = [packed(each) if k == 64 else in_bytes(each, type_) for each, type_ in ((a, a_type), (b, b_type))]
    found = multiplied(opcode, *rows, 1, scales)
    sizes = [
        np.repeat(
            np.exp2(each.astype(float) - 127) if scale_type == "ue8m0" else numbers(each, "e4m3"), k // count, axis=1
        )
        for each in (of_a, of_b)
    ]
    left, right = numbers(a, a_type) * sizes[0], numbers(b, b_type) * sizes[1]
    expected = left @ right.T + 1
    bound = np.abs(left) @ np.abs(right).T + 1
    assert (np.abs(found - expected) <= bound * 2.0**-20).all()


@pytest.mark.parametrize(
    "opcode",
    [
        "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e3m2.f32",
        "mma.sync.aligned.kind::f8f6f4.m16n8k64.row.col.f32.e2m1.e2m1.f32",
        "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e2m1.f16",
        "mma.sync.aligned.kind::mxf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
        "mma.sync.aligned.kind::mxf4.block_scale.m16n8k64.row.col.f32.e2m3.e2m1.f32.ue8m0",
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::2X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3",
        "mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue8m0",
        "mma.sync.aligned.kind::mxf8f6f4.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0",
    ],
)
def test_spellings_that_ptxas_refuses(opcode):
    """The simulator refuses the spellings of mma.sync that ptxas 13.0 refuses for sm_120a."""
    scales = f", {SCALES}" if opcode.endswith(("ue8m0", "ue4m3")) else ""
    assert lookup_of(f"{opcode} {D}, {A}, {B}, {C}{scales}") is None


SOURCE = """
extern "C" __global__ void k(float* out) {
    float d[4];
    const unsigned scale = threadIdx.x % 4 < 2 ? 0x80 : 0xff, other = threadIdx.x % 4 ? 0xff : 0x81;
    asm volatile("mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e2m1.f32.ue8m0 "
        "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%6, %6, %6, %6}, {%7}, {%8, %8}, {%9}, {%8, %8};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(0x38383838), "r"(0x08080808), "f"(1.f), "r"(scale), "h"((short)0), "r"(other));
    for (int i = 0; i < 4; ++i) out[threadIdx.x * 4 + i] = d[i];
}
"""


def test_a_kernel_as_cutlass_writes_it():
    """In the test's kernel, all elements of A are 1 with the scale 2, all elements of B are 1 with the scale 4, and C
    is 1."""
    gpu = simulate.Device("12.0")
    out = np.zeros(128, np.float32)
    report = gpu.launch(simulate.Config(1, 32), gpu.compile(SOURCE, "k"), out)
    assert report.findings == ()
    assert (out == 32 * 2 * 4 + 1).all()


@pytest.mark.parametrize(
    ("size", "selectors", "text"),
    [
        (
            "mxf8f6f4.block_scale",
            (4, 0, 0, 0),
            "the byte-id of the scales of A is 4, but with 1 scale along K it must ",
        ),
        (
            "mxf4.block_scale",
            (0, 0, 1, 0),
            "the byte-id of the scales of B is 1, but with 2 scales along K it must be 0 or 2",
        ),
        ("mxf4nvf4.block_scale.scale_vec::4X", (2, 0, 0, 0), "the byte-id of the scales of A is 2, but with 4 scales"),
        ("mxf4.block_scale", (0, 2, 0, 0), "the thread-id of the scales of A is 2, but it must be 0 or 1"),
        ("mxf4.block_scale", (0, 0, 0, 4), "the thread-id of the scales of B is 4, but it must be 0 or 1 or 2 or 3"),
        ("mxf4.block_scale", (2, 1, 0, 3), ""),
    ],
)
def test_selectors_of_scales_have_the_values_that_ptxas_accepts(size, selectors, text):
    k, type_ = 32 if "mxf8" in size else 64, "ue4m3" if "4X" in size else "ue8m0"
    opcode = f"mma.sync.aligned.kind::{size}.m16n8k{k}.row.col.f32.e2m1.e2m1.f32.{type_}"
    entry = entry_of(f"{opcode} {D}, {A}, {B}, {C}, {SCALES}")
    a_byte, a_thread, b_byte, b_thread = (np.full((1, 32), each, np.uint16) for each in selectors)
    scales = np.zeros((1, 32), np.uint32)
    found = entry.fault(np.ones((1, 32), bool), *[scales] * 10, scales, a_byte, a_thread, scales, b_byte, b_thread)
    assert found.startswith(text) and bool(found) == bool(text)
