"""Tests of function bodies in PTX, which the simulator parses at their first use."""

from __future__ import annotations

import pytest

from cuda_tma import simulate
from cuda_tma.simulate._errors import ParseError
from cuda_tma.simulate._ptx import Symbol, parse, read

HEADER = ".version 9.0\n.target sm_90a\n.address_size 64\n"
TWO = HEADER + ".entry broken()\n{\n  mov.u32 %r1, nothing;\n}\n.entry sound()\n{\n  ret;\n}\n"


def test_a_broken_body_matters_at_its_use():
    module = read(TWO)
    assert [head.name for head in module.functions.heads()] == [*module.functions] == ["broken", "sound"]
    assert [each.opcode for each in module.functions["sound"].instructions] == [("ret",)]
    for _ in range(2):
        with pytest.raises(ParseError, match="PTX line 6: nothing is not declared"):
            module.functions["broken"]
    with pytest.raises(ParseError, match="PTX line 6"):
        parse(TWO)


def test_a_device_loads_a_sound_kernel():
    gpu = simulate.Device()
    assert gpu.load(TWO, "sound").name == "sound"
    with pytest.raises(ParseError, match="PTX line 6"):
        gpu.load(TWO, "broken")


def test_a_body_that_does_not_end():
    with pytest.raises(ParseError, match="PTX line 6: found the end where the } of f was expected"):
        read(HEADER + ".entry f()\n{ { ret; }\n")


@pytest.mark.parametrize(
    "text",
    [
        '.entry f() .pragma "a { b"; .maxntid 32 { ret; }',
        "// .entry g() {\n.entry f() { ret; // }\n }",
        "/* { */ .entry f() { /* } \n } */ ret; }",
        ".entry f() { { .reg .b32 a; } ret; }",
        ".func g(); .global .b32 x[2] = {1, 2}; .entry f() { ret; } .section .s { .b8 1 }",
    ],
)
def test_braces_of_other_things(text):
    module = read(HEADER + text + "\n.entry last() { exit; }")
    assert [each.opcode for each in module.functions["f"].instructions] == [("ret",)]
    assert module.functions["last"].line == 4 + text.count("\n") + 1
    assert [each.opcode for each in module.functions["last"].instructions] == [("exit",)]


def test_names_that_follow_are_unknown():
    text = (
        HEADER + ".entry f() { .reg .b64 a; mov.u64 a, x; }\n.global .b32 x;\n.entry g() { .reg .b64 a; mov.u64 a, x; }"
    )
    module = read(text)
    with pytest.raises(ParseError, match="line 4: x is not declared"):
        module.functions["f"]
    assert module.functions["g"].instructions[0].operands[1] == Symbol("x")


@pytest.mark.parametrize("mark", ['"', "/*", '"\\"', "/"])
def test_many_marks_without_an_end(mark):
    with pytest.raises(ParseError):
        read(HEADER + ".entry f() { " + mark * 200_000)


def test_inline_asm_has_the_place_of_its_statement():
    text = (
        HEADER + '.file 1 "kernel.py"\n.entry f() {\n.loc 1 5 8\n// begin inline asm\n{\n.reg .b32 t;\n.loc 1 8 8\n'
        "mov.b32 t, 1;\n}\n// end inline asm\n.loc 1 6 2\nret;\n}\n"
    )
    places = [(each.line, each.places[0].line) for each in read(text).functions["f"].instructions]
    assert places == [(11, 5), (15, 6)]
    without_end = text.replace("// end inline asm", "")
    assert [each.places[0].line for each in read(without_end).functions["f"].instructions] == [8, 6]
