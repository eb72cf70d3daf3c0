"""Tests that each function of warpgroup.cuh is the documented instruction, on every target with the instruction."""

from __future__ import annotations

import pytest

from tests.include._header import TARGETS, compile_source, cubin, defined_in, ptx, words
from tests.support.ptx_interpreter import effects

PARAMETERS = {
    "address": "unsigned",
    **dict.fromkeys(("m0", "m1", "m2", "m3"), "unsigned"),
    **dict.fromkeys(("first", "second"), "float"),
    **dict.fromkeys(("number", "threads"), "int"),
    "word": "unsigned*",
}
STMATRIX = "stmatrix.sync.aligned.m8n8.x4{}.shared.b16 [address], {{m0, m1, m2, m3}}"
STMATRIX_X2 = "stmatrix.sync.aligned.m8n8.x2{}.shared.b16 [address], {{m0, m1}}"
PTX_OF = {
    "register_alloc<240>();": "setmaxnreg.inc.sync.aligned.u32 240",
    "register_dealloc<24>();": "setmaxnreg.dec.sync.aligned.u32 24",
    "named_barrier_sync(number, threads);": "barrier.sync number, threads",
    "named_barrier_sync<15>(threads);": "barrier.sync 15, threads",
    "named_barrier_arrive(number, threads);": "barrier.arrive number, threads",
    "named_barrier_arrive<3>(threads);": "barrier.arrive 3, threads",
    # The instruction cvt puts its first operand into the upper half of the word (PTX ISA).
    "*word = bf16x2(first, second);": "st.global.u32 [word], cvt.rn.bf16x2.f32(second, first)",
    "*word = f16x2(first, second);": "st.global.u32 [word], cvt.rn.f16x2.f32(second, first)",
    "store_matrices(address, m0, m1, m2, m3);": STMATRIX.format(""),
    "store_matrices_transposed(address, m0, m1, m2, m3);": STMATRIX.format(".trans"),
    "store_matrices(address, m0, m1);": STMATRIX_X2.format(""),
    "store_matrices_transposed(address, m0, m1);": STMATRIX_X2.format(".trans"),
}
# The set contains functions that are not instructions, and old names of functions.
CHECKS = {"require_barrier_number", "release_at"}


def kernel(statements: list[str]) -> str:
    parameters = ", ".join(f"{kind} {name}" for name, kind in PARAMETERS.items())
    body = "\n    ".join(f"{{ {statement} }}" for statement in statements)
    return (
        "#include <cuda_tma/warpgroup.cuh>\nusing namespace cuda_tma;\n"
        f'extern "C" __global__ void __launch_bounds__(384, 1) kernel({parameters}) {{\n    {body}\n}}'
    )


def test_function_is_its_instruction():
    """Each function of warpgroup.cuh is one instruction. The test compares the instruction's name and all operands in
    order."""
    assert effects("warpgroup.cuh", PARAMETERS, PTX_OF) == PTX_OF


def test_nothing_is_left_out():
    assert defined_in("warpgroup.cuh") == words(list(PTX_OF)) & defined_in("warpgroup.cuh") | CHECKS


def test_an_old_name_points_to_the_new_one():
    old = "__shared__ Barrier empty; release_at(empty, 1);"
    _, log = compile_source(kernel([old]), "sm_90a")
    assert "say barrier.in_cta(cta_rank).release_async_read(), or pipeline.release_async_read(at, cta_rank)" in log
    new = old.replace("release_at(empty, 1)", "empty.in_cta(1).release_async_read()")
    assert ptx(kernel([old])) == ptx(kernel([new]))


@pytest.mark.parametrize("target", TARGETS)
def test_everything_compiles(target):
    there = [statement for statement in PTX_OF if target != "sm_90" or "register" not in statement]
    assert cubin(kernel(there), target).startswith(b"\x7fELF")


@pytest.mark.parametrize(
    ("statement", "target", "message"),
    [
        ("register_alloc<64>();", "sm_90", "setmaxnreg needs sm_90a, or a later target with a or f at its end"),
        ("register_alloc<60>();", "sm_90a", "a multiple of 8 from 24 to 256"),
        ("register_dealloc<16>();", "sm_90a", "a multiple of 8 from 24 to 256"),
        ("named_barrier_sync<16>(128);", "sm_90a", "named barriers have the numbers 0 to 15"),
        ("named_barrier_arrive<-1>(128);", "sm_90a", "named barriers have the numbers 0 to 15"),
    ],
)
def test_misuse_is_named(statement, target, message):
    with pytest.raises(AssertionError, match=message):
        cubin(kernel([statement]), target)
