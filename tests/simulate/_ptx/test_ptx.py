"""Tests of the parser of PTX, which accepts all output of NVRTC and nvcc, and refuses other text with its line."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma import simulate
from cuda_tma.simulate._errors import ParseError
from cuda_tma.simulate._ptx import (
    Address,
    Group,
    Guard,
    Immediate,
    Not,
    Pair,
    Reference,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
    parse,
)
from cuda_tma.simulate._ptx.text import text_of
from tests.examples._examples import kernels
from tests.include import _header, _targets, _wgmma
from tests.include._header import ptx

DATA = Path(__file__).parents[2] / "data"
# The tests expect line numbers of the file line_info.cu.
LINE_INFO = (DATA / "line_info.ptx").read_text()


def body(text: str):
    """Return PTX of a function with the given statements."""
    head = ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 128 .b8 memory[];\n"
    return parse(f"{head}.entry kernel(.param .u64 pointer) {{\n{text}\n}}").functions["kernel"]


def operands(instruction: str, declared: str = ".reg .b32 a, b, c; .reg .b64 d; .reg .pred p, q;"):
    return body(f"{declared} {instruction}").instructions[0].operands


A, B, C, D, P, Q = (Register(index) for index in range(6))


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        ("add.s32 a, b, -1;", (A, B, Immediate(-1))),
        ("mov.b32 a, 0xFFU;", (A, Immediate(255))),
        ("mov.b32 a, (1 << 4 | 3) * -2;", (A, Immediate(-38))),
        ("mov.b32 a, 017;", (A, Immediate(15))),
        ("mov.f32 a, 0f3F800000;", (A, Immediate(0x3F800000, "f32"))),
        ("mov.f32 a, -0f3F800000;", (A, Immediate(0xBF800000, "f32"))),
        ("mov.f64 d, -1.5e0;", (D, Immediate(0xBFF8000000000000, "f64"))),
        ("mov.f64 d, 0d3FF0000000000000;", (D, Immediate(0x3FF0000000000000, "f64"))),
        ("mov.u32 a, %tid.x;", (A, Special("tid.x"))),
        ("mov.u32 a, WARP_SZ;", (A, Immediate(32))),
        ("mov.u32 a, memory;", (A, Symbol("memory"))),
        ("mov.u32 a, memory+64;", (A, Symbol("memory", 64))),
        ("mov.b64 d, {a, _};", (D, Vector((A, Sink())))),
        ("ld.shared.v2.b32 {a, b}, [c+-8];", (Vector((A, B)), Address(C, -8))),
        ("ld.param.u64 d, [pointer];", (D, Address(Symbol("pointer")))),
        ("ld.shared.b32 a, [memory+4];", (A, Address(Symbol("memory"), 4))),
        ("ld.global.b32 a, [4096];", (A, Address(Immediate(4096)))),
        ("setp.lt.and.s32 p|q, a, b, !p;", (Pair(P, Q), A, B, Not(P))),
        ("elect.sync _|p, -1;", (Pair(Sink(), P), Immediate(-1))),
        ("bar.sync 0;", (Immediate(0),)),
        ("ret;", ()),
        ("prefetch.tensor.2d [d, {a, b}];", (Address(D, 0, (A, B)),)),
        ("call (a), kernel, (b, 1);", (Group((A,)), Symbol("kernel"), Group((B, Immediate(1))))),
    ],
)
def test_operands(instruction, expected):
    assert operands(instruction) == expected


def test_opcodes_are_split_and_guarded():
    first, second = body(
        ".reg .pred p;\n@!p cp.async.bulk.commit_group;\n@p ld.global .L1::no_allocate.b32 p, [0];"
    ).instructions
    assert (first.opcode, first.guard) == (("cp", "async", "bulk", "commit_group"), Guard(Register(0), True))
    assert (second.opcode, second.guard) == (("ld", "global", "L1::no_allocate", "b32"), Guard(Register(0), False))
    assert (first.line, second.line) == (7, 8)


def test_directives_may_be_adjacent():
    """The inline PTX of cuda_fp16.hpp has several statements without a separator."""
    found = body("{.reg.b32 a;.reg.pred p;.shared.align 8.b32 x;mov.b32 a,x;}")
    assert [register.type for register in found.registers] == ["b32", "pred"]
    assert (found.variables["x"].align, found.instructions[0].operands) == (8, (Register(0), Symbol("x")))


def test_scopes_have_registers_and_labels_of_their_own():
    """PTX scopes have their own registers and labels, because inline asm in an unrolled loop declares the same names
    twice."""
    once = "{ .reg .pred p; .reg .b32 %r<2>;\n again: mov.b32 %r1, 7; @p bra again; bra done; }"
    found = body(f".reg .b32 %r<2>; {once} {once} mov.b32 %r1, 8; done: ret;")
    assert [register.name for register in found.registers] == ["%r0", "%r1", "p", "%r0", "%r1", "p", "%r0", "%r1"]
    assert [i.operands[0] for i in found.instructions if i.opcode[0] == "mov"] == [
        Register(4),
        Register(7),
        Register(1),
    ]
    targets = [i.operands[0].target for i in found.instructions if i.opcode[0] == "bra"]
    assert targets == [0, 7, 3, 7]
    assert found.labels == {"again": 0, "again#2": 3, "done": 7}


def test_a_new_declaration_in_a_scope_has_its_own_name():
    found = body("{ .param .b32 x; st.param.b32 [x], 1; } { .param .b64 x; st.param.b64 [x+0], 2; }")
    assert [i.operands[0].base.name for i in found.instructions] == ["x", "x#2"]
    assert [(v.name, v.space, v.size_bytes) for v in found.variables.values()] == [
        ("x", "param", 4),
        ("x#2", "param", 8),
    ]


def test_a_table_of_branches():
    found = body(".reg .b32 %r; first: table: .branchtargets second, first; brx.idx.uni %r, table; second: ret;")
    assert found.branch_targets == {"table": (1, 0)}
    assert found.instructions[0].operands == (Register(0), Symbol("table"))


def test_parameters_are_at_multiples_of_their_alignment():
    declared = ".param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 64 .b8 c[128], .param .v2 .f32 d"
    params = parse(f".entry k({declared}) {{}}").functions["k"].params
    assert [(p.name, p.offset, p.size_bytes, p.align) for p in params] == [
        ("a", 0, 1, 1), ("b", 8, 8, 8), ("c", 64, 128, 64), ("d", 192, 8, 8),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("declaration", "initial"),
    [
        (".global .b8 x[2][3] = {{1}, {4, 5}};", bytes([1, 0, 0, 4, 5, 0])),
        (".global .b8 x[2][3] = {1, 2, 3, 4};", bytes([1, 2, 3, 4, 0, 0])),
        (".const .b16 x[] = {-1, 2};", b"\xff\xff\x02\0"),
        (".global .u32 x = 7;", b"\x07\0\0\0"),
        (".global .v2 .u16 x[2] = {{1, 2}, {3, 4}};", b"\1\0\2\0\3\0\4\0"),
        (".global .f32 x[3] = {0f3F800000, 1.0, -1};", b"\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\xbf"),
        (".global .f64 x = 0f3F800000;", b"\0\0\0\0\0\0\xf0\x3f"),
    ],
)
def test_initializers(declaration, initial):
    assert parse(declaration).variables["x"].initial == initial


def test_initializers_that_are_addresses():
    text = ".global .u32 y; .global .u64 x[2] = {y+4, generic(y)}; .global .b8 z[2] = {0xFF(y), 0xFF00(y)};"
    variables = parse(text).variables
    assert variables["x"].references == (Reference(0, "y", 4), Reference(8, "y", generic=True))
    assert variables["x"].initial == bytes(16)
    assert variables["z"].references == (Reference(0, "y", mask=0xFF), Reference(1, "y", mask=0xFF00))


# ---- output of nvcc ----


def test_output_of_nvcc_for_functions_and_variables():
    module = parse(LINE_INFO)
    assert (module.version, module.target, module.address_size) == ((9, 0), ("sm_90a",), 64)
    entry = module.functions["everything"]
    assert (entry.kind, entry.linkage) == ("entry", "visible")
    assert entry.attributes == {"maxntid": (256, 1, 1), "minnctapersm": (2,)}
    assert [(p.offset, p.size_bytes) for p in entry.params] == [(0, 16), (16, 8), (24, 8), (32, 8), (40, 1)]
    assert entry.variables["_ZZ10everythingE5fixed"].align == 1024
    assert module.functions["vprintf"].declared_only and not module.functions["_Z5twicei"].declared_only
    assert module.variables["table"].initial[:8] == b"\0\0\x80\x3f\0\0\x20\x40"
    assert module.variables["where"].references == (Reference(0, "counter", generic=True),)
    assert [r.symbol for r in module.variables["functions"].references] == ["_Z9factoriali", "_Z5twicei"]
    assert (module.variables["dynamic"].linkage, module.variables["dynamic"].size_bytes) == ("extern", 0)
    (prototype,) = entry.prototypes.values()
    assert [p.size_bytes for p in (*prototype.returns, *prototype.params)] == [4, 4]


def test_places_list_the_inlined_calls():
    entry = parse(LINE_INFO).functions["everything"]
    (fused,) = (i for i in entry.instructions if i.opcode == ("fma", "rn", "f16x2"))
    source = (DATA / "line_info.cu").read_text().splitlines()
    intrinsic, *callers = fused.places
    assert intrinsic.file.endswith("cuda_fp16.hpp") and "__hfma2" in intrinsic.function
    calls = [re.search(r"__hfma2|inner(?=\(a)|outer(?=\(h)", source[place.line - 1])[0] for place in callers]
    assert calls == ["__hfma2", "inner", "outer"]
    assert callers[-1].function == "everything"
    assert {p.file for p in callers} == {"/src/line_info.cu"}


def statements(text: str) -> int:
    """Count the instructions of a PTX text without the parser, as the statements with a semicolon that are not
    directives."""
    text = re.sub(r"//[^\n]*|^\s*\.loc[^\n]*", "", text.split("\t.file")[0], flags=re.MULTILINE)
    bodies = re.findall(r"^\{$(.*?)^\n\}$", text, re.MULTILINE | re.DOTALL)
    found = re.split(r";", re.sub(r"\w+\s*:\s*\.(branch|call)\w+", ".", "".join(bodies)))
    found = [re.sub(r"^(?:\s|\$?\w+:(?!:)|[{}](?=\s*(?:[.{}@$\w]|$)))+", "", each) for each in found]
    return sum(bool(each) and not each.startswith(".") for each in found)


HEADER = _header.kernel(_header.tensor_statements() + _header.OTHER_STATEMENTS)
WGMMA = _wgmma.kernel(_wgmma.MULTIPLICATIONS + _wgmma.OTHER_STATEMENTS)
TEXTS = [
    *kernels(),
    pytest.param(HEADER, "sm_90a", id="header"),
    pytest.param(_targets.kernel(_targets.statements()), "sm_100a", id="header-sm_100a"),
    pytest.param(WGMMA, "sm_90a", id="wgmma"),
    pytest.param(None, "nvcc", id="nvcc"),
]


@pytest.mark.parametrize(("source", "target"), TEXTS)
def test_every_instruction_of_every_kernel(source, target):
    text = ptx(source, target.replace("sm", "compute")) if source else LINE_INFO
    module = parse(text)
    read = [i for function in module.functions.values() for i in function.instructions]
    assert len(read) == statements(text) > 0
    lines = text.splitlines()
    assert all(".".join(i.opcode) in lines[i.line - 1] for i in read)


# ---- invalid PTX ----


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (".entry k() {\nadd.s32 a, 1, 2;\n}", 2, "a is not declared"),
        (".entry k() {\n\nret\n}", 4, "found '}'"),
        (".entry k() {\nret;", 2, "the } of k"),
        (".entry k() { bra `x; }", 1, "'`x; }' is not PTX"),
        (".entry k() {\n@q ret;\n}", 2, "the guard q is not a register"),
        (".entry k() {\n.reg .b32 r; x: ret; x: ret;\n}", 2, "x is declared twice"),
        (".global .b8 x[2] = {1, 2, 3};", 1, "it has more numbers"),
        ("\n.surprise 3", 2, "not .surprise"),
        ("add.s32 a, b, c;", 1, "a directive"),
        (".global .b9 x;", 1, "a type, not .b9,"),
        (".entry k() {\n.reg .b32 r;\nld.global.u32 r, [%tid];\n}", 3, "%tid is not an address"),
    ],
)
def test_a_refusal_names_the_line(text, line, message):
    with pytest.raises(ParseError, match=f"^PTX line {line}: .*{re.escape(message)}") as refused:
        parse(text)
    assert refused.value.line == line


PIECES = re.findall(r"\s+|[\w.$%]+|.", LINE_INFO[LINE_INFO.index(".const") :], re.DOTALL)


@given(st.data())
def test_a_text_with_a_typo_is_accepted_or_refused(data):
    start = data.draw(st.integers(0, len(PIECES) - 1))
    stop = data.draw(st.integers(start, min(start + 400, len(PIECES))))
    pieces = PIECES[start:stop]
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, max(len(pieces) - 1, 0)))
        pieces[at : at + data.draw(st.integers(0, 3))] = data.draw(st.lists(st.sampled_from(PIECES), max_size=3))
    text = "".join(pieces)
    try:
        parse(text)
    except ParseError as refused:
        assert 1 <= refused.line <= text.count("\n") + 1


EMPTY = ".version 8.0 .target sm_90a .address_size 64 .visible .entry k() { ret; }"


@pytest.mark.parametrize("name", ["kernel.version2.ptx", "a.version .ptx", "plain"])
def test_a_name_is_one_of_a_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(EMPTY)
    assert text_of(name) == text_of(Path(name)) == EMPTY
    assert simulate.Device().load(name, "k").name == "k"


@pytest.mark.parametrize("text", [EMPTY, f"  {EMPTY}", f"/* one line */ {EMPTY}", f"// two\n{EMPTY}"])
def test_a_text_is_not_a_name(text):
    assert text_of(text) == text
    assert simulate.Device().load(text, "k").name == "k"


def test_a_kernel_names_the_object_to_pickle_instead():
    gpu = simulate.Device()
    kernel = gpu.load(EMPTY, "k")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match=r"pass its ptx and its name, .* gpu\.load\(kernel\.ptx, kernel\.name\)"):
            attempt(kernel)
    assert gpu.load(kernel.ptx, kernel.name).name == "k"
