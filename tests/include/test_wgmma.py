"""Tests of the wgmma headers, which compile for sm_90a, and whose descriptors address the tiles of TMA loads."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.examples._examples import constants
from tests.include._header import FOLDER, compile_source, cubin, defined_in, ptx
from tests.include._wgmma import COLUMNS, MULTIPLICATIONS, OTHER_STATEMENTS, kernel
from tests.support.ptx_interpreter import effects


@pytest.mark.parametrize("statements", [MULTIPLICATIONS, OTHER_STATEMENTS], ids=["wgmma", "the rest"])
def test_everything_compiles(statements):
    assert cubin(kernel(statements), "sm_90a").startswith(b"\x7fELF")


def test_nothing_is_left_out():
    """The statements of the wgmma tests call each function of the wgmma headers."""
    here = Path(__file__).parent
    elsewhere = "".join((here / name).read_text() for name in ("test_wgmma_forms.py", "test_wgmma_operands.py"))
    used = set(re.findall(r"\w+", " ".join(MULTIPLICATIONS + OTHER_STATEMENTS) + elsewhere))
    headers = ["input.cuh", "pin.cuh", *(path.name for path in FOLDER.glob("wgmma*.cuh"))]
    found = set().union(*map(defined_in, headers))
    assert len(found) == 17
    inside = {"multiply", "wgmma_of", "input_bytes", "input_of", "product_of", "require_product", "exponent_bits"}
    # The tests call the functions in `inside` only through other functions.
    assert found - used == inside


PARAMETERS = {
    "tile": "void*",
    **dict.fromkeys("xy", "MatrixDescriptor"),
    "k_rows": "unsigned",
    "out": "unsigned long long*",
}
PTX_OF = {
    "wgmma_fence();": "wgmma.fence.sync.aligned",
    "wgmma_commit();": "wgmma.commit_group.sync.aligned",
    "wgmma_wait<3>();": "wgmma.wait_group.sync.aligned 3",
    "float sums[64]; wgmma_wait<2>(sums);": "wgmma.wait_group.sync.aligned 2",
}


def multiplication(columns: int, call: str) -> str:
    """Return a call of wgmma() with accumulators whose values are their indices."""
    return f"float sums[{columns // 2}]; for (int i = 0; i < {columns // 2}; ++i) sums[i] = i; {call}"


def multiplied(columns: int, rest: str, name: str = "bf16") -> str:
    """Return the PTX instruction of a call of wgmma()."""
    sums = ", ".join(f"0f{np.float32(i).view(np.uint32):08X}" for i in range(columns // 2))
    return f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{name}.{name} {{{sums}}}, x, y, {rest}"


WGMMA = {
    multiplication(n, f"wgmma<Input::{t}, Major::{a}, Major::{b}>(sums, x, y, {accumulate});"): multiplied(
        n, f"{int(accumulate == 'true')}, 1, 1, {int(a == 'MN')}, {int(b == 'MN')}", t
    )
    for n, t, a, b, accumulate in product(COLUMNS, ("bf16", "f16"), ("K", "MN"), ("K", "MN"), ("true", "false"))
} | {multiplication(64, "wgmma(sums, x, y);"): multiplied(64, "1, 1, 1, 0, 0")}


@pytest.mark.parametrize("table", [PTX_OF, WGMMA], ids=["the rest", "wgmma"])
def test_function_is_its_instruction(table):
    """Each function of the wgmma headers is one instruction. The test compares the instruction's name and all operands
    in order."""
    assert effects("wgmma.cuh", PARAMETERS, table) == table


@pytest.mark.parametrize(("wait", "times"), [("wgmma_wait<0>(all);", 2), ("wgmma_wait<0>();", 1)])
def test_sums_are_read_after_the_wait(wait, times):
    """The compiler places the uses of accumulators after a wait that has the accumulators as operands."""
    triple = "for (int i = 0; i < 128; ++i) out[128 + i] = 3 * all[i];"
    assert len(re.findall(r"\bmul\.f32\b", ptx(kernel([triple, wait, triple])))) == 128 * times


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("matrix_descriptor_bits<SWIZZLE_128B_ATOM_32B>(0, 0, 0);", "no swizzle but NONE, 32B, 64B and 128B"),
        ("k_major<SWIZZLE_NONE>(tile);", "a row is as long as the box is wide"),
    ],
)
def test_misuse_is_named(statement, message):
    with pytest.raises(AssertionError, match=message):
        cubin(kernel([statement]), "sm_90a")


@pytest.mark.parametrize(("between", "serialized"), [("", False), ("sums[3] += 1;", True)], ids=["asynchronous", "not"])
def test_multiplications_stay_asynchronous(between, serialized):
    """With two pending groups of wgmma, ptxas adds no wait. For an added wait, ptxas would print the message C7511."""
    step = "wgmma_fence(); wgmma(sums, x, y); wgmma(sums, x.advance(32), y.advance(32)); wgmma_commit();"
    waits = "wgmma_wait<1>(); wgmma_wait<0>(sums);"
    statements = [
        f"float sums[64] = {{}}; {step} {between} {step} {waits}",
        "for (int i = 0; i < 64; ++i) all[i] += sums[i];",
    ]
    _, log = compile_source(kernel(statements), "sm_90a")
    assert ("serialized" in log) == serialized


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("example", ["gemm", "conv_im2col", "grouped_gemm"])
def test_an_example_compiles_as_meant(example):
    """For the example's kernel, ptxas serializes no wgmma, spills no register, and ignores no setmaxnreg."""
    _, log = compile_source(str(constants(EXAMPLES / f"{example}.py")["SOURCE"]), "sm_90a")
    assert log == ""
