"""Tests that each form of wgmma() gives the documented instruction, or a compilation error."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.include._header import FOLDER, cubin, ptx
from tests.support.ptx_interpreter import effects

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import write_wgmma

FP8, INT8 = ("e4m3", "e5m2"), ("s8", "u8")
# For each form, the table contains the types of the accumulators, A and B, the function, and the types and other
# operands of the instruction.
FORMS = {
    **{("float", t, t, "wgmma"): (f"k16.f32.{t}.{t}", "1, 1, 0, 0", "1, 1, 0") for t in ("bf16", "f16")},
    ("unsigned", "f16", "f16", "wgmma"): ("k16.f16.f16.f16", "1, 1, 0, 0", "1, 1, 0"),
    ("float", "tf32", "tf32", "wgmma"): ("k8.f32.tf32.tf32", "1, 1", "1, 1"),
    **{
        (held, a, b, "wgmma"): (f"k32.{sums}.{a}.{b}", "1, 1", "1, 1")
        for (held, sums), a, b in product((("float", "f32"), ("unsigned", "f16")), FP8, FP8)
    },
    **{
        ("int", a, b, f"wgmma{end.replace('.', '_')}"): (f"k32.s32.{a}.{b}{end}", "", "")
        for a, b, end in product(INT8, INT8, ("", ".satfinite"))
    },
}
HEADERS = [f"wgmma{kind}.cuh" for kind in ("", "_fp8", "_tf32", "_s8", "_f16")]
INCLUDES = "".join(f"#include <cuda_tma/{name}>\n" for name in HEADERS)
EVERY_N = range(8, 257, 8)
EVERY_N_OF_INT8 = (8, 16, 24, *range(32, 257, 16))
PARAMETERS = {**dict.fromkeys("xy", "MatrixDescriptor"), **dict.fromkeys("pqrs", "unsigned")}


def count_of(held: str, n: int) -> int:
    return n // 4 if held == "unsigned" else n // 2


def operand(name: str, element: str, in_registers: bool = False) -> str:
    return f"FragmentOf<Input::{element}>{{part}}" if in_registers else f"MatrixOf<Input::{element}>{{{name}}}"


def statement(form: tuple[str, str, str, str], n: int, in_registers: bool) -> str:
    """Return a call of wgmma() with accumulators whose values are their indices."""
    held, a, b, function = form
    count = count_of(held, n)
    sums = f"{held} sums[{count}]; for (int i = 0; i < {count}; ++i) sums[i] = i;"
    part = "const unsigned part[4] = {p, q, r, s}; " if in_registers else ""
    return f"{{ {sums} {part}{function}(sums, {operand('x', a, in_registers)}, {operand('y', b)}); }}"


def instruction(form: tuple[str, str, str, str], n: int, in_registers: bool) -> str:
    types, shared, registers = FORMS[form]
    values = [f"0f{np.float32(i).view(np.uint32):08X}" if form[0] == "float" else str(i) for i in range(128)]
    sums = ", ".join(values[: count_of(form[0], n)])
    end = ", ".join(["1", *([registers if in_registers else shared] if shared else [])])
    a = "{p, q, r, s}" if in_registers else "x"
    return f"wgmma.mma_async.sync.aligned.m64n{n}{types} {{{sums}}}, {a}, y, {end}"


def table(forms: Iterable[tuple[str, str, str, str]], columns: Iterable[int]) -> dict[str, str]:
    return {
        statement(form, n, in_registers): instruction(form, n, in_registers)
        for form, n, in_registers in product(forms, columns, (False, True))
    }


def done(statements: Iterable[str]) -> dict[str, str]:
    """Return the PTX instructions of each statement in a kernel."""
    return effects(">\n#include <cuda_tma/".join(HEADERS), PARAMETERS, statements)


@pytest.mark.parametrize("columns", [EVERY_N[:16], EVERY_N[16:24], EVERY_N[24:]], ids=lambda c: f"{c[0]} to {c[-1]}")
@pytest.mark.parametrize("form", [("float", "bf16", "bf16", "wgmma"), ("unsigned", "f16", "f16", "wgmma")], ids=str)
def test_every_n(form, columns):
    """The tables of wgmma_macros.cuh contain all accumulators and the following operands for each number of
    accumulators."""
    expected = table([form], columns)
    assert done(expected) == expected


def test_every_n_of_int8():
    expected = table([("int", "s8", "s8", "wgmma")], EVERY_N_OF_INT8)
    assert done(expected) == expected


@pytest.mark.parametrize("n", [8, 48])
def test_every_form(n):
    expected = table(FORMS, [n])
    assert done(expected) == expected


def kernel(statements: Iterable[str]) -> str:
    return f"""{INCLUDES}
using namespace cuda_tma;
extern "C" __global__ void __launch_bounds__(128, 1) kernel(unsigned* out, MatrixDescriptor x, MatrixDescriptor y) {{
    unsigned part[4] = {{out[0], out[1], out[2], out[3]}};
    {" ".join(statements)}
}}
"""


def work(form: tuple[str, str, str, str], n: int) -> str:
    """Return statements with products that ptxas cannot remove, because the kernel loads and stores the
    accumulators."""
    held, a, b, function = form
    count = count_of(held, n)
    calls = (f"{function}(sums, {operand('x', a, where)}, {operand('y', b)});" for where in (False, True))
    return (
        f"{{ {held} sums[{count}]; for (int i = 0; i < {count}; ++i) sums[i] = out[i]; wgmma_fence(sums, part);"
        f" {' '.join(calls)} wgmma_commit(); wgmma_wait<0>(sums, part);"
        f" for (int i = 0; i < {count}; ++i) out[i] += sums[i]; }}"
    )


def test_every_form_is_assembled():
    assert cubin(kernel(work(form, 24) for form in FORMS), "sm_90a").startswith(b"\x7fELF")


def test_signs():
    """For an operand x of wgmma(), the operator -x negates all elements by imm-scale-a or imm-scale-b."""
    bf16 = "float sums[4] = {}; wgmma(sums, -MatrixOf<Input::bf16, Major::MN>{x}, -MatrixOf<Input::bf16>{y});"
    fp8 = "float sums[4] = {}; wgmma(sums, MatrixOf<Input::e4m3>{x}, -MatrixOf<Input::e5m2>{y}.advance(32), false);"
    part = "float sums[4] = {}; const unsigned part[4] = {p, q, r, s}; wgmma(sums, part, - -MatrixOf<Input::f16>{y});"
    ends = [text.split("}, ", 1)[1] for text in done([bf16, fp8, part]).values()]
    assert ends[0] == "x, y, 1, -1, -1, 1, 0"
    assert ends[1] == "x, add.s64(y, 2), 0, 1, -1"
    assert ends[2] == "{p, q, r, s}, y, 1, 1, 1, 0"


def test_a_in_registers_of_untyped_operands():
    """The older form of wgmma() has data types as template arguments, with bf16 as the default."""
    sums = "float sums[4] = {}; const unsigned part[4] = {p, q, r, s};"
    calls = {"wgmma(sums, part, y);": ("bf16", 0), "wgmma<Input::f16, Major::MN>(sums, part, y);": ("f16", 1)}
    texts = done(f"{sums} {call}" for call in calls).values()
    for (element, transposed), text in zip(calls.values(), texts, strict=True):
        assert text.startswith(f"wgmma.mma_async.sync.aligned.m64n8k16.f32.{element}.{element} {{")
        assert text.endswith(f", {{p, q, r, s}}, y, 1, 1, 1, {transposed}")


MOVES = re.compile(r"\b(?:mov|add|fma|mul)\.[rnf.]*32\s+%f")


@pytest.mark.parametrize(("named", "behind"), [("", 32), ("sums", 0)], ids=["not named", "named"])
def test_sums_are_ready_before_the_fence(named, behind):
    """The compiler computes accumulators before a fence that has the accumulators as operands. Without the operands,
    the compiler could compute the accumulators after the fence."""
    source = kernel(
        [
            f"float sums[32]; for (int i = 0; i < 32; ++i) sums[i] = 1; wgmma_fence({named}); wgmma(sums, x, y);",
            "wgmma_commit(); wgmma_wait<0>(sums); for (int i = 0; i < 32; ++i) out[i] = sums[i];",
        ]
    )
    between = ptx(source).split("wgmma.fence")[1].split("wgmma.mma_async")[0]
    assert len(MOVES.findall(between)) == behind


def test_a_in_registers_is_written_after_the_wait():
    """A register of the operand A that a wait has as an operand is not overwritten before the wait."""
    source = kernel(
        [
            "float sums[4] = {}; unsigned rows[1][4]; for (int i = 0; i < 4; ++i) rows[0][i] = out[i] * 3;",
            "wgmma_fence(sums, rows); wgmma(sums, rows[0], MatrixOf<Input::bf16>{y}); wgmma_commit();",
            "wgmma_wait<0>(sums, rows); for (int i = 0; i < 4; ++i) out[i] = rows[0][i] * 5 + sums[i];",
        ]
    )
    before, after = ptx(source).split("wgmma.wait_group")
    assert len(re.findall(r"\bmul\.lo\.s32[^;]*, 3;", before)) == 4
    assert len(re.findall(r"\bm\w+\.lo\.s32[^;]*, 5[;,]", after)) == 4


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("float sums[6]; wgmma(sums, x, y);", "N is a multiple of 8 from 8 to 256"),
        ("float sums[132]; wgmma(sums, x, y);", "N is a multiple of 8 from 8 to 256"),
        ("unsigned sums[66]; wgmma<Input::f16>(sums, x, y);", "N is a multiple of 8 from 8 to 256"),
        ("int sums[20]; wgmma<Input::s8>(sums, x, y);", "N of s8 is 8, 24 or a multiple of 16"),
        ("double sums[4]; wgmma(sums, x, y);", "no such product"),
        ("int sums[4]; wgmma(sums, x, y);", "no such product"),
        ("float sums[4]; wgmma<Input::u8>(sums, x, y);", "no such product"),
        ("unsigned sums[4]; wgmma<Input::bf16>(sums, x, y);", "no such product"),
        ("float sums[4]; wgmma(sums, MatrixOf<Input::bf16>{x}, MatrixOf<Input::f16>{y});", "no such product"),
        ("float sums[4]; wgmma(sums, MatrixOf<Input::e4m3>{x}, MatrixOf<Input::s8>{y});", "no such product"),
        ("int sums[4]; wgmma(sums, -MatrixOf<Input::s8>{x}, MatrixOf<Input::s8>{y});", "s8 and u8 have no -x"),
        ("float s[4]; MatrixOf<Input::bf16> a{x}; wgmma_satfinite(s, a, a);", "wgmma_satfinite: s8 and u8 alone"),
        ("MatrixOf<Input::e4m3, Major::MN> a{x};", "only bf16 and f16 are read with M or N innermost"),
        ("wgmma_wait<8>();", "wgmma_wait: 0 to 7 groups"),
        ("k_major<SWIZZLE_64B>(out, 128, 256);", "the distances follow from a swizzle"),
        ("mn_major<SWIZZLE_64B>(out, 128, 256);", "the distances follow from a swizzle"),
    ],
)
def test_misuse_is_named(statement, message):
    with pytest.raises(AssertionError, match=message):
        ptx(kernel([statement]))


@pytest.mark.parametrize(
    ("statement", "header"),
    [
        ("float sums[4]; wgmma<Input::tf32>(sums, x, y);", "wgmma_tf32.cuh"),
        ("float sums[4]; wgmma<Input::e5m2>(sums, x, y);", "wgmma_fp8.cuh"),
        ("int sums[4]; wgmma<Input::u8>(sums, x, y);", "wgmma_s8.cuh"),
        ("unsigned sums[4]; wgmma<Input::f16>(sums, x, y);", "wgmma_f16.cuh"),
    ],
)
def test_missing_header_is_named(statement, header):
    """The statement compiles with only the stated header."""
    alone = kernel([statement]).replace(INCLUDES, "#include <cuda_tma/wgmma.cuh>\n")
    with pytest.raises(AssertionError, match=f"include <cuda_tma/{header}>"):
        ptx(alone)
    ptx(alone.replace("wgmma.cuh", header))


@pytest.mark.parametrize("target", ["sm_90", "sm_100a", "sm_120a"])
def test_other_targets(target):
    """Other targets may include the headers and query features. The use of a missing feature is an error that names the
    feature."""
    asking = "template <typename T> __device__ void f(T x) { if constexpr (has_wgmma) { %s } }\nextern"
    uses = ["wgmma_fence();", "wgmma_commit();", "wgmma_wait<0>();", "float sums[4]; wgmma(sums, x, x);"]
    source = kernel(["f(x); out[4] = part[0];"])
    cubin(source.replace("extern", asking % " ".join(uses), 1), target)
    for use in uses:
        with pytest.raises(AssertionError, match="wgmma needs sm_90a, and no other target") as refused:
            cubin(kernel([use]), target)
        assert "ptxas" not in str(refused.value)


def test_macros_match_the_tool():
    for name, text in write_wgmma.FILES.items():
        assert (FOLDER / name).read_text() == text, "run: python tools/write_wgmma.py"


def test_macros_end():
    """The wgmma headers undefine all their macros at the end."""
    names = re.findall(r"^#define (CUDA_TMA_\w+)", write_wgmma.FILES["wgmma_macros.cuh"], re.M)
    assert len(names) > 100
    checks = "".join(f"#ifdef {name}\n#error {name}\n#endif\n" for name in names)
    ptx(kernel([]) + checks)
