"""Tests of the linker of several inputs, whose result is one PTX text that defines each function once."""

from __future__ import annotations

import struct

import pytest

from cuda_tma._intercept.driver.linking import linked_ptx
from cuda_tma.simulate._ptx import parse

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
CALLER = (
    HEADER
    + """
.extern .func (.param .b32 result) twice
(
    .param .b32 given
)
;
.file 1 "kernel.cu"
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<2>;
    .loc 1 7 0
    {
    .param .b32 given;
    st.param.b32 [given], 1;
    .param .b32 result;
    call.uni (result), twice, (given);
    ld.param.b32 %r1, [result];
    }
    ret;
}
"""
)
CALLEE = (
    HEADER
    + """
.file 1 "device.cu"
.visible .func (.param .b32 result) twice(.param .b32 given) {
    .reg .b32 %r<3>;
    .loc 1 3 0
    ld.param.u32 %r1, [given];
    add.u32 %r2, %r1, %r1;
    st.param.b32 [result], %r2;
    ret;
}
.section .debug_str
{
info:
.b8 97
.b8 0
}
"""
)


def inputs(*given: str | bytes) -> bytes:
    parts = [each.encode() if isinstance(each, str) else each for each in given]
    return b"".join(struct.pack("<Q", len(each)) + each for each in parts)


def test_one_input_stays_as_it_is():
    assert linked_ptx(inputs(CALLEE), (9, 0)) == CALLEE


@pytest.mark.parametrize("order", [(CALLER, CALLEE), (CALLEE, CALLER)])
def test_a_declared_function_is_the_one_of_another_input(order):
    linked = linked_ptx(inputs(*order), (9, 0))
    module = parse(linked)
    assert {name: each.kind for name, each in module.functions.items()} == {"k": "entry", "twice": "func"}
    assert module.functions["twice"].instructions
    assert linked.count(".version") == 1 and linked.count(".file") == 1


def test_an_archive_of_the_host_is_ignored():
    assert linked_ptx(inputs(b"!<arch>\nobjects", CALLEE), (9, 0)) == CALLEE


@pytest.mark.parametrize("given, words", [(b"", "no input"), (inputs(b"\x7fELF" + bytes(60)), "machine code")])
def test_a_link_without_ptx_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        linked_ptx(given, (9, 0))
