"""Tests of the instructions that may access registers of a wgmma in flight, on tables of short PTX functions."""

from __future__ import annotations

import pytest

from cuda_tma.simulate._ptx import parse
from cuda_tma.simulate._warps import hazards
from cuda_tma.simulate._warps.hazards import hazards_of

PTX = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k() {{
.reg .pred p; .reg .b32 a, b, c, d, e, f; .reg .b64 x, y, z; .reg .f32 q, r, s, t, u, v;
{body}
ret; }}
"""
SHAPE = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
PRODUCT = f"{SHAPE} {{q, r, s, t}}, x, y, p, 1, 1, 0, 0;"
FROM_REGISTERS = f"{SHAPE} {{q, r, s, t}}, {{a, b, c, d}}, y, p, 1, 1, 0;"
FENCE, COMMIT = "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;"
WAIT = "wgmma.wait_group.sync.aligned {};"
DONE = f"{COMMIT}\n{WAIT.format(0)}"
OTHER = PRODUCT.replace("{q, r, s, t}", "{r, s, t, u}")
JOINED = "mov.b64 z, {q, u};\n"
# A copy of the sums of two products, of which only one is complete after the wait.
YOUNGEST = f"{PRODUCT}\n{COMMIT}\n{OTHER}\n{COMMIT}\n"


def found(body):
    """Return the hazard of each statement: the names of the read and the written registers, and the writers."""
    function = parse(PTX.format(body=body)).functions["k"]
    names = [register.name for register in function.registers]
    statements = [(" ".join(".".join(each.opcode[:2]).split()), each) for each in function.instructions]
    touches = hazards_of(function).touches
    return {
        statements[pc][0]: (
            " ".join(names[each] for each in hazard.reads),
            " ".join(names[each] for each in hazard.writes),
            " ".join(statements[each][0] for each in hazard.writers),
        )
        for pc, hazard in sorted(touches.items())
    }


CASES = {
    "nothing": (f"mov.f32 q, 0f00000000;\n{FENCE}\n{PRODUCT}\n{DONE}\nadd.f32 q, q, r;", {}),
    "no product": ("mov.f32 q, r;\nadd.f32 q, q, r;", {}),
    "a read before the wait": (f"{FENCE}\n{PRODUCT}\n{COMMIT}\nadd.f32 u, q, v;", {"add.f32": ("q", "", "")}),
    "a read of two sums": (f"{FENCE}\n{PRODUCT}\nadd.f32 u, r, q;", {"add.f32": ("q r", "", "")}),
    "a write before the wait": (f"{FENCE}\n{PRODUCT}\nadd.f32 t, u, v;", {"add.f32": ("", "t", "")}),
    "a write ends the flight": (f"{FENCE}\n{PRODUCT}\nadd.f32 t, u, v;\nmul.f32 u, t, v;", {"add.f32": ("", "t", "")}),
    "a write with a guard does not": (
        f"{FENCE}\n{PRODUCT}\n@p add.f32 t, u, v;\nmul.f32 u, t, v;",
        {"add.f32": ("", "t", ""), "mul.f32": ("t", "", "")},
    ),
    "no fence after a write": (f"add.f32 q, u, v;\n{PRODUCT}\n{DONE}", {"wgmma.mma_async": ("", "", "add.f32")}),
    "a write of another register": (f"add.f32 u, q, v;\n{PRODUCT}\n{DONE}", {}),
    "two writes without a fence": (
        f"add.f32 q, u, v;\nmul.f32 r, u, v;\n{PRODUCT}\n{DONE}",
        {"wgmma.mma_async": ("", "", "add.f32 mul.f32")},
    ),
    "a fence between two writes": (
        f"add.f32 q, u, v;\n{FENCE}\nmul.f32 r, u, v;\n{PRODUCT}\n{DONE}",
        {"wgmma.mma_async": ("", "", "mul.f32")},
    ),
    "operands in registers without a fence": (
        f"add.u32 a, e, f;\n{FROM_REGISTERS}\n{DONE}",
        {"wgmma.mma_async": ("", "", "add.u32")},
    ),
    "an operand in a register is read": (f"{FENCE}\n{FROM_REGISTERS}\n{COMMIT}\nadd.u32 e, a, f;", {}),
    "an operand in a register is written": (
        f"{FENCE}\n{FROM_REGISTERS}\n{COMMIT}\nadd.u32 a, e, f;",
        {"add.u32": ("", "a", "")},
    ),
    "the wait leaves one group": (
        f"{FENCE}\n{PRODUCT}\n{COMMIT}\n{WAIT.format(1)}\nadd.f32 u, q, v;",
        {"add.f32": ("q", "", "")},
    ),
    "the wait leaves a later group": (
        f"{FENCE}\n{YOUNGEST}{WAIT.format(1)}\nadd.f32 v, q, q;\nmul.f32 v, u, u;",
        {"mul.f32": ("u", "", "")},
    ),
    "an open group": (f"{FENCE}\n{PRODUCT}\n{WAIT.format(0)}\nadd.f32 u, q, v;", {"add.f32": ("q", "", "")}),
    "a copy is not an access": (f"{FENCE}\n{PRODUCT}\n{COMMIT}\nmov.f32 u, q;\n{WAIT.format(0)}\nadd.f32 v, u, u;", {}),
    "a copy is in flight": (
        f"{FENCE}\n{PRODUCT}\n{COMMIT}\nmov.f32 u, q;\nadd.f32 v, u, v;\n{WAIT.format(0)}",
        {"add.f32": ("u", "", "")},
    ),
    "a copy of a copy is in flight": (
        f"{FENCE}\n{PRODUCT}\n{COMMIT}\nmov.f32 u, q;\nmov.f32 v, u;\nmul.f32 v, v, v;\n{WAIT.format(0)}",
        {"mul.f32": ("v", "v", "")},
    ),
    "the source of a copy may be written": (f"{FENCE}\n{PRODUCT}\n{COMMIT}\nmov.f32 u, q;\nadd.f32 q, v, v;", {}),
    "a copy over a sum ends its flight": (f"{FENCE}\n{PRODUCT}\n{COMMIT}\nmov.f32 q, u;\nadd.f32 v, q, q;", {}),
    "a copy after a write without a fence": (
        f"add.f32 u, v, v;\nmov.f32 q, u;\n{PRODUCT}\n{DONE}",
        {"wgmma.mma_async": ("", "", "add.f32")},
    ),
    "a copy of a register without a write": (
        f"add.f32 q, v, v;\nmov.f32 q, u;\n{PRODUCT}\n{DONE}",
        {},
    ),
    "a copy of an old and a young sum is young": (
        f"{FENCE}\n{YOUNGEST}{JOINED}{WAIT.format(1)}\nadd.u64 z, z, 1;",
        {"add.u64": ("z", "z", "")},
    ),
    "a copy of two complete sums": (f"{FENCE}\n{YOUNGEST}{JOINED}{WAIT.format(0)}\nadd.u64 z, z, 1;", {}),
    "one path lacks the wait": (
        f"{FENCE}\n{PRODUCT}\n{COMMIT}\n@p bra L;\n{WAIT.format(0)}\nL: add.f32 u, q, v;",
        {"add.f32": ("q", "", "")},
    ),
    "both paths wait": (
        f"{FENCE}\n{PRODUCT}\n{COMMIT}\n@p bra L;\n{WAIT.format(0)}\nbra M;\nL: {WAIT.format(0)}\nM: add.f32 u, q, v;",
        {},
    ),
    "a path that returns": (f"{FENCE}\n{PRODUCT}\n{COMMIT}\n@p ret;\n{WAIT.format(0)}\nadd.f32 u, q, v;", {}),
    "statements after a return": (f"{FENCE}\n{PRODUCT}\n{COMMIT}\nret;\nadd.f32 u, q, v;", {}),
    "the next turn of a loop": (
        f"L: add.f32 u, q, v;\n{FENCE}\n{PRODUCT}\n{COMMIT}\n@p bra L;",
        {"add.f32": ("q", "", "")},
    ),
    "a list of targets": (
        f"T: .branchtargets L, M;\n{FENCE}\n{PRODUCT}\n{COMMIT}\nbrx.idx a, T;\nL: add.f32 u, q, v;\n"
        "M: mul.f32 u, t, v;",
        {"add.f32": ("q", "", ""), "mul.f32": ("t", "", "")},
    ),
    "a store reads": (f"{FENCE}\n{PRODUCT}\nst.global.f32 [x], q;", {"st.global": ("q", "", "")}),
    "a product reads sums of another": (
        f"{FENCE}\nwgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{q, r, s, t}}, x, y, p, 1, 1, 0, 0;\n"
        f"{FROM_REGISTERS.replace('{a, b, c, d}', '{q, r, s, t}')}\n{DONE}",
        {"wgmma.mma_async": ("q r s t", "", "")},
    ),
}


@pytest.mark.parametrize("case", [*CASES])
def test_the_hazards_of_a_function(case):
    body, expected = CASES[case]
    assert found(body) == expected


def test_a_function_with_too_many_paths_has_no_hazards(monkeypatch):
    body, expected = CASES["one path lacks the wait"]
    visits = next(most for most in range(100) if _is_analyzed(monkeypatch, body, most))
    assert not _is_analyzed(monkeypatch, body, visits - 1) and found(body) == {}
    assert _is_analyzed(monkeypatch, body, visits) and found(body) == expected and 8 < visits < 40


def _is_analyzed(monkeypatch, body, most):
    monkeypatch.setattr(hazards, "_MOST_VISITS", most)
    return bool(found(body))


def test_only_copies_of_products_are_copies():
    body = f"mov.u32 e, f;\n{FENCE}\n{PRODUCT}\nmov.f32 u, q;\nmov.f32 v, u;\nadd.f32 u, q, v;"
    function = parse(PTX.format(body=body)).functions["k"]
    result = hazards_of(function)
    assert {function.instructions[pc].line for pc in result.copies} == {9, 10}
    assert result.writers == frozenset()
