"""Tests of mma.cuh, whose functions are the documented ldmatrix and mma.sync instructions for every swizzle."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

import pytest

from cuda_tma.enums import TensorMapSwizzle as S
from tests.include._header import TARGETS, cubin, defined_in, ptx, words
from tests.support.ptx_interpreter import effects

PARAMETERS = {
    **dict.fromkeys(("address", "p", "q", "r", "s", "b0", "b1"), "unsigned"),
    "out": "unsigned*",
    "real": "float*",
    "whole": "int*",
}
# The table maps the types of the accumulators, A and B to the qualifiers of the instruction.
FORMS = {
    **{("float", t, t): f"k16.row.col.f32.{t}.{t}.f32" for t in ("bf16", "f16")},
    ("float", "tf32", "tf32"): "k8.row.col.f32.tf32.tf32.f32",
    ("unsigned", "f16", "f16"): "k16.row.col.f16.f16.f16.f16",
    **{
        (held, a, b): f"k32.row.col.{sums}.{a}.{b}.{sums}"
        for (held, sums), a, b in product((("float", "f32"), ("unsigned", "f16")), ("e4m3", "e5m2"), ("e4m3", "e5m2"))
    },
    **{("int", a, b): f"k32.row.col.s32.{a}.{b}.s32" for a, b in product(("s8", "u8"), ("s8", "u8"))},
}


def statement(form: tuple[str, str, str], function: str = "mma") -> str:
    """Return a call of mma() with accumulators whose values are their indices."""
    held, a, b = form
    values = "0, 1" if held == "unsigned" else "0, 1, 2, 3"
    operands = f"{held} sums[] = {{{values}}}; const unsigned part[4] = {{p, q, r, s}};"
    return f"{operands} {function}<Input::{a}, Input::{b}>(sums, part, b0, b1);"


def instruction(form: tuple[str, str, str], types: str) -> str:
    sums = {"float": "0f00000000, 0f3F800000, 0f40000000, 0f40400000", "unsigned": "0, 1", "int": "0, 1, 2, 3"}[form[0]]
    return f"mma.sync.aligned.m16n8{types} {{{sums}}}, {{p, q, r, s}}, {{b0, b1}}, {{{sums}}}"


PRODUCTS = {
    **{statement(form): instruction(form, types) for form, types in FORMS.items()},
    **{
        statement(form, "mma_satfinite"): instruction(form, types.replace(".s32", ".satfinite.s32", 1))
        for form, types in FORMS.items()
        if form[0] == "int"
    },
    "float sums[4] = {0, 1, 2, 3}; const unsigned part[4] = {p, q, r, s}; mma(sums, part, b0, b1);": instruction(
        ("float", "bf16", "bf16"), FORMS["float", "bf16", "bf16"]
    ),
}


def test_products():
    """Each function of mma.cuh is one instruction. The test compares the instruction's name and all operands in
    order."""
    assert effects("mma.cuh", PARAMETERS, PRODUCTS) == PRODUCTS


def test_matrices():
    calls = {
        f"unsigned m[{count}]; load_matrices{kind}(m, address);": f"ldmatrix.sync.aligned.m8n8.x{count}{end}.shared.b16"
        for count, (kind, end) in product((1, 2, 4), (("", ""), ("_transposed", ".trans")))
    }
    for call, text in effects("mma.cuh", PARAMETERS, calls).items():
        assert re.sub(r" \{(%r\d+(, )?)+\}", "", text) == f"{calls[call]}, [address]"
        assert text.count("%r") == int(calls[call].split(".x")[1][0])


def kernel(statements: Iterable[str]) -> str:
    return f"""
#include <cuda_tma/mma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(unsigned* out, unsigned address) {{
    __shared__ alignas(1024) char tile[8192];
    unsigned p = out[0], q = out[1], r = out[2], s = out[3], b0 = out[4], b1 = out[5];
    {" ".join(statements)}
    out[0] = p + q + r + s + b0 + b1 + address + tile[out[7]];
}}
"""


LOADS = [
    f"unsigned m[{count}]; load_matrices{kind}(m, {rows}.at(16, 32)); for (auto x : m) out[9] += x;"
    for (count, kind), rows in product(
        product((1, 2, 4), ("", "_transposed")), ("rows_of_a(tile)", "rows_of_b<Major::MN, SWIZZLE_64B>(tile)")
    )
]


@pytest.mark.parametrize("target", TARGETS)
def test_everything_compiles(target):
    everything = [*LOADS, *(f"{product} for (auto& sum : sums) *out++ += sum;" for product in PRODUCTS)]
    assert cubin(kernel(f"{{ {each} }}" for each in everything), target).startswith(b"\x7fELF")


def test_nothing_is_left_out():
    assert defined_in("mma.cuh") - words([*PRODUCTS, *LOADS]) == {"mma_of", "of"}


WAYS = [
    (mode, down_first)
    for mode, down_first in product((m for m in S if m and m != S.SWIZZLE_128B_ATOM_32B_FLIP_8B), (0, 1))
]


def test_lanes_name_their_rows():
    """For each swizzle and lane, ldmatrix gets the address of the right row of a tile."""
    checks = [
        f"for (unsigned lane = 0; lane < 32; ++lane) for (unsigned row = 0; row < 64; row += 8)"
        f" for (unsigned byte = 0; byte < swizzle_span<{mode.name}>(); byte += 32) {{"
        f" const unsigned below = {'lane / 8 % 2' if down_first else 'lane / 16'};"
        f" const unsigned right = {'lane / 16' if down_first else 'lane / 8 % 2'};"
        f" const auto rows = MatrixRows<{mode.name}, swizzle_span<{mode.name}>()>::of(0x4400, {down_first}, lane);"
        f" if (rows.at(row, byte) != 0x4400 + swizzled<{mode.name}>(row + 8 * below + lane % 8, byte + 16 * right))"
        " return false; }"
        for mode, down_first in WAYS
    ]
    agrees = f"__host__ __device__ constexpr bool agrees() {{ {' '.join(checks)} return true; }}"
    source = f"#include <cuda_tma/mma.cuh>\nusing namespace cuda_tma;\n{agrees}\nstatic_assert(agrees());"
    ptx(source)
    with pytest.raises(AssertionError, match="static assertion failed"):
        ptx(source.replace("8 * below", "8 * right", 1))


TILES = [
    "Tile<BFLOAT16, Box<64, 64>, SWIZZLE_128B>",
    "Tile<FLOAT16, Box<32, 128>, SWIZZLE_64B>",
    "Tile<TFLOAT32, Box<48, 64>, SWIZZLE_128B>",
    "Tile<BFLOAT16, Box<16, 40>>",
    "Tile<UINT8, Box<16, 64>, SWIZZLE_128B_ATOM_32B>",
]


def test_rows_of_typed_tiles():
    """In the typed tile of the test, the rows continue from box to box, and the row pitch differs from the swizzle
    span."""
    checks = [
        f"{{ using T = {tile}; constexpr unsigned size = sizeof(T::Element);"
        " for (unsigned lane = 0; lane < 32; ++lane) for (unsigned column = 0; column * size + 32 <= T::width() * size;"
        " column += 32 / size) { const unsigned row = lane % 16, right = lane / 16 * 16 / size;"
        " const auto rows = MatrixRowsOf<T>::of(0, true, lane);"
        " if (rows.at(0, column * size) != T::offset(row, column + right)) return false; } }"
        for tile in TILES
    ]
    uses = " ".join(
        f"{{ auto& t = *reinterpret_cast<{tile}*>(tile);"
        " out[6] = rows_of_a(t).at(0, 0) + rows_of_b<Major::MN>(t).at(0, 0); }"
        for tile in TILES
    )
    agrees = (
        f"__host__ __device__ constexpr bool agrees() {{ {' '.join(checks)} return true; }}\nstatic_assert(agrees());"
    )
    ptx("#include <cuda_tma/tile.cuh>\n" + kernel([uses]) + agrees)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("float sums[2]; const unsigned a[4] = {}; mma(sums, a, 0, 0);", "four sums in each thread"),
        ("unsigned sums[4]; const unsigned a[4] = {}; mma<Input::f16>(sums, a, 0, 0);", "four sums in each thread"),
        ("float sums[4]; const unsigned a[4] = {}; mma<Input::u8>(sums, a, 0, 0);", "no such product"),
        ("float sums[4]; const unsigned a[4] = {}; mma<Input::bf16, Input::f16>(sums, a, 0, 0);", "no such product"),
        ("int sums[4]; const unsigned a[4] = {}; mma_satfinite<Input::e4m3>(sums, a, 0, 0);", "no such product"),
        ("rows_of_a<Major::K, SWIZZLE_128B_ATOM_32B_FLIP_8B>(tile);", "which this swizzle tears apart"),
        ("rows_of_a<Major::K, SWIZZLE_NONE>(tile);", "a row is as long as the box is wide"),
    ],
)
def test_misuse_is_named(statement, message):
    with pytest.raises(AssertionError, match=message):
        ptx(kernel([statement]))
