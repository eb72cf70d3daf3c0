"""Tests of long lists of integers in PTX. The parser gives the same bytes for a whole list as for single numbers."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from cuda_tma.simulate._errors import ParseError
from cuda_tma.simulate._ptx import Immediate, Vector, parse

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
NUMBERS = [*range(250, 290)]
LISTED = ", ".join(map(str, NUMBERS))


def variable(declared: str):
    (found,) = parse(HEADER + declared).variables.values()
    return found


@pytest.mark.parametrize(
    ("of", "numpy_type"),
    [("b8", "<u1"), ("s16", "<u2"), ("u32", "<u4"), ("b64", "<u8"), ("f32", "<f4"), ("f64", "<f8")],
)
def test_bytes_of_a_type(of, numpy_type):
    expected = np.array(NUMBERS).astype(numpy_type).tobytes()
    assert variable(f".global .{of} x[40] = {{{LISTED}}};").initial == expected


def test_a_run_between_other_numbers():
    found = variable(f".global .s32 x[] = {{-7, 0x10, {LISTED}, 3 + 4, 1,}};")
    assert found.initial == struct.pack("<44i", -7, 16, *NUMBERS, 7, 1)


def test_rows():
    found = variable(f".global .u16 x[3][50] = {{{{{LISTED}}}, {{{LISTED}}}}};")
    assert found.initial == struct.pack("<150H", *NUMBERS, *[0] * 10, *NUMBERS, *[0] * 60)


def test_numbers_of_16_bytes_and_of_more_than_15_digits():
    large = ", ".join([str(10**18)] * 20)
    assert variable(f".global .u64 x[20] = {{{large}}};").initial == (10**18).to_bytes(8, "little") * 20
    assert variable(f".global .b128 x[40] = {{{LISTED}}};").initial == b"".join(
        n.to_bytes(16, "little") for n in NUMBERS
    )


def test_too_many():
    with pytest.raises(ParseError, match="does not fit"):
        variable(f".global .u16 x[39] = {{{LISTED}}};")


def test_a_vector_of_numbers():
    module = parse(HEADER + f".entry f() {{ anything.x40 {{{LISTED}}}; }}")
    assert module.functions["f"].instructions[0].operands == (Vector(tuple(map(Immediate, NUMBERS))),)


def test_lines_after_a_run():
    with pytest.raises(ParseError, match="line 45"):
        parse(HEADER + ".global .u16 x[] = {" + ",\n".join(map(str, NUMBERS)) + "};\n\n.nonsense")
