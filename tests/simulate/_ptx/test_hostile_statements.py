"""Tests of PTX statements with small mistakes. The simulator refuses a statement with its line, reports a finding, or
runs the statement."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config, ParseError
from tests.simulate._ptx._hostile import HEAD, launched

REGISTERS = ".reg .b8 %b<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>; .reg .b128 %q<2>; .reg .pred %p<2>;"


@pytest.mark.parametrize(
    "statement",
    [
        *("add.u32 %r1, %r2, %p1", "mov.b32 %r1, %p1", "st.global.u32 [%rd1], %p1", "ld.global.u32 %p1, [%rd1]"),
        *("add.u32 %p1, %r1, 1", "setp.lt.u32 %r1, %r2, 7", "selp.b32 %r1, %r2, %r3, %r1", "ld.global.u32 %r1, [%p1]"),
        *("@%r1 add.u32 %r1, %r1, 1", "@%b1 bra L", "@!%rd1 ret", "add.u32 %r1, %q1, 1", "ld.global.u32 %r1, [%q1]"),
    ],
)
def test_a_register_of_another_kind_is_refused(statement):
    text = f".visible .entry f()\n{{\n{REGISTERS}\nL:\n{statement};\nret;\n}}\n"
    with pytest.raises(simulate.UnsupportedInstruction, match=r"PTX line 8: .*of a (number|predicate|register)"):
        simulate.Device().load(HEAD + text, "f")


@pytest.mark.parametrize(
    "statement",
    [
        *("add.rn %r1, %r2, 1", "mul.relu.satfinite %r1, %r2, 1", "cvt.rn.rn.rn %r1, %r2", "min.relu %r1, %r2, %r3"),
        *("mov.u7 %r1, %laneid", "mov.b0 %r1, %laneid", "ld.global.u7 %r1, [%rd1]", "ld.global.b4 %r1, [%rd1]"),
        *("st.shared.u12 [%r1], %r2", "ld.global.s99999999999 %r1, [%rd1]", "mov.b128 %q1, 7", "cvt.u32.u12 %r1, %r2"),
        *(
            f"alloca.u64 %rd1, %rd1, {each}"
            for each in ("4294967296", "18446744073709551615", "3", "0", "-16", "1.5", "%r1")
        ),
    ],
)
def test_an_invalid_spelling(statement):
    text = f".visible .entry f()\n{{\n{REGISTERS}\nL:\n{statement};\nret;\n}}\n"
    with pytest.raises(simulate.UnsupportedInstruction, match="PTX line 8: the simulator does not know"):
        simulate.Device().load(HEAD + text, "f")


@pytest.mark.parametrize("size", ["9000", "4294967296", "9223372036854775807", "18446744073709551615"])
def test_alloca_of_more_than_the_stack(size):
    text = f".visible .entry f()\n{{\n{REGISTERS}\nmov.u64 %rd1, {size};\nalloca.u64 %rd1, %rd1;\nret;\n}}\n"
    (finding,) = launched(text).errors
    assert "stack overflow: alloca requests" in finding.message


CALLED = """.extern .func (.param .b32 r) vprintf (.param .b64 a, .param .b64 b);
.func (.param .b32 r) g(.param .b32 a)
{
.reg .b32 %r<2>;
ld.param.b32 %r1, [a];
st.param.b32 [r], %r1;
ret;
}
.visible .entry f()
{
.reg .b64 to; .param .b8 one; .param .b32 four, result; .param .b64 eight; .param .b8 three[3];
mov.u64 to, g;
P: .callprototype (.param .b32 a) _ (.param .b32 b);
STATEMENT;
ret;
}
"""


@pytest.mark.parametrize(
    "statement",
    [
        *("call (result), g, (one)", "call (result), g", "call (result), g, (four, four)", "call g, (x)"),
        *("call (one), g, (four)", "call (result, four), g, (four)", "call (result), vprintf, (eight)"),
        *(
            "call (result), vprintf, (eight, three)",
            "call (three), vprintf, (eight, eight)",
            "call (result), f, (four)",
        ),
    ],
)
def test_a_call_with_other_parameters_is_refused(statement):
    with pytest.raises((simulate.UnsupportedInstruction, ParseError), match=r"PTX line \d+: "):
        simulate.Device().load(HEAD + CALLED.replace("STATEMENT", statement), "f")


@pytest.mark.parametrize("arguments", ["(one)", "(four, four)", "()"])
def test_a_call_by_address_with_other_parameters_is_a_fault(arguments):
    (finding,) = launched(CALLED.replace("STATEMENT", f"call (result), to, {arguments}, P")).errors
    assert finding.kind == "fault" and "passes parameters that do not match those of the function" in finding.message


@pytest.mark.parametrize("call", ["call (result), g, (four)", "call (result), to, (four), P", "call g, (four)"])
def test_a_call_with_its_parameters_runs(call):
    assert launched(CALLED.replace("STATEMENT", call)).errors == ()


FAR = "18446744073709551615"


@pytest.mark.parametrize(
    "address",
    [
        *(f"[{base}{sign}{FAR}]" for base in ("%rd1", "%r1", "x", "s", "l") for sign in "+-"),
        f"[{FAR}]",
        f"[{FAR}+{FAR}]",
    ],
)
@pytest.mark.parametrize("space", ["", ".global", ".shared", ".local"])
def test_an_address_wraps_around(address, space):
    """In an address, the offset 2**64 - 1 equals -1. The number 2**64 - 1 is not the address of any byte."""
    text = f".global .b8 x[64]; .shared .b8 s[64];\n.visible .entry f()\n{{\n{REGISTERS} .local .b8 l[64];\n"
    report = launched(f"{text}ld{space}.u8 %r2, {address};\nst{space}.u8 {address}, %r2;\nret;\n}}\n", 1)
    assert {finding.kind for finding in report.errors} <= {"out-of-bounds", "fault", "cluster"}


@pytest.mark.parametrize(
    "statement",
    [
        *("membar", "fence", "st.global.u32 [%rd1]", "st.global.v4.u32 [%rd1], %r1", "ld.global.v2.u32 %r1, [%rd1]"),
        *("isspacep.u16 %p1, %rd1", "isspacep.tf32 %p1, %rd1", "bar.red.const.u32 %r1, 0, %p1"),
        *("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1]", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r1]"),
        *(
            "atom.global.add.u32 %r1, [%rd1], %r2, %r3",
            "atom.global.cas.b32 %r1, [%rd1], %r2",
            "red.global.add.u32 [%rd1]",
        ),
        *(
            "cp.async.ca.shared.global [%r1], [%rd1], 12",
            "cp.async.ca.shared.global [%r1], [%rd1], 18446744073709551615",
        ),
    ],
)
def test_operands_that_do_not_fit(statement):
    text = f".visible .entry f()\n{{\n{REGISTERS}\nL:\n{statement};\nret;\n}}\n"
    with pytest.raises(simulate.UnsupportedInstruction, match="PTX line 8: the simulator does not know"):
        simulate.Device().load(HEAD + text, "f")


@pytest.mark.parametrize(
    "statement",
    [
        *("ld.param.u64 %rd1, [p+8]", "ld.param.u64 %rd1, [p-1]", "ld.param.v4.u32 {%r1, %r2, %r3, %r0}, [p]"),
        *("st.param.u64 [one], %rd1", "ld.param.u32 %r1, [one+99999999999]", "st.param.v2.u32 [one], {%r1, %r2}"),
    ],
)
def test_parameters_have_an_end(statement):
    text = f".visible .entry f(.param .u64 p)\n{{\n{REGISTERS} .param .b8 one;\nL:\n{statement};\nret;\n}}\n"
    with pytest.raises(simulate.UnsupportedInstruction, match="PTX line 8: .*, outside the (8|1) bytes of parameters"):
        simulate.Device().load(HEAD + text, "f")


@pytest.mark.parametrize("number", ["18446744073709551615", "-9223372036854775808", "0d7FE0000000000000"])
def test_a_number_beyond_its_type_is_infinity(number, recwarn):
    text = f".visible .entry f()\n{{\n.reg .f16 %h<2>;\nmov.f16 %h1, {number};\nadd.f16 %h1, %h1, {number};\nret;\n}}\n"
    with contextlib.suppress(simulate.UnsupportedInstruction):
        assert launched(text).errors == ()
    assert [str(each.message) for each in recwarn] == []


def test_an_atomic_with_a_cache_policy_runs():
    text = f".global .b32 x; .visible .entry f()\n{{\n{REGISTERS}\nmov.u64 %rd1, x;\nmov.u32 %r1, 3;\n"
    text += "atom.global.add.L2::cache_hint.u32 %r1, [%rd1], %r1, %rd1;\nret;\n}\n"
    gpu = simulate.Device()
    kernel = gpu.load(HEAD + text, "f")
    assert gpu.launch(Config(1, 32), kernel).errors == ()
    assert gpu.variable(kernel, "x").view(np.uint32)[0] == 96


@pytest.mark.parametrize("threads", [32, 64])
def test_a_wgmma_of_a_part_of_a_warpgroup_is_a_fault(threads):
    """In the test, several small blocks have 128 threads in total. A wgmma is a fault in them, because a warpgroup
    belongs to one block."""
    text = ".visible .entry f()\n{\nwgmma.fence.sync.aligned;\nwgmma.commit_group.sync.aligned;\nret;\n}\n"
    gpu = simulate.Device()
    (finding,) = gpu.launch(Config(8, threads), gpu.load(HEAD + text, "f")).errors
    assert f"a warpgroup, 128 threads, executes this, but the block has {threads}" in finding.message


def test_an_error_of_the_simulator_names_the_instruction():
    gpu = simulate.Device(sanitize=False)
    kernel = gpu.load(HEAD + ".visible .entry f()\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, 1;\nret;\n}\n", "f")
    kernel.program.entry.steps[0] = lambda group, lanes: {}["absent"]
    with pytest.raises(
        simulate.UnsupportedInstruction, match="PTX line 7: .*mov.u32 .an error of the simulator itself"
    ):
        gpu.launch(Config(1, 32), kernel)
