"""Write ``wgmma_macros.cuh`` and ``wgmma_macros_end.cuh``, which have the text of wgmma for each number of
accumulators.

The text of an instruction can depend on a template argument only through a number (constraint "n"), and contains every
accumulator. Each count of accumulators therefore has its own statement. The lists are flat, because nested macros that
build the lists took twice as long to compile.

Examples
--------
    python tools/write_wgmma.py        # without dependencies
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

# COUNTS maps a type of accumulators to the valid numbers of accumulator registers of a thread (PTX ISA, "Matrix
# Shape"). The extent N is 2 * count for f32 and s32, and 4 * count for f16.
COUNTS = {
    "f32": [n // 2 for n in range(8, 257, 8)],
    "f16": [n // 4 for n in range(8, 257, 8)],
    "s32": [n // 2 for n in (8, 16, 24, *range(32, 257, 16))],
}
BEHIND = 13  # At most 13 other operands follow the accumulators.

_HEAD = """// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/{name}: written by tools/write_wgmma.py. {what}
"""
_BEGIN = _HEAD.format(
    name="wgmma_macros.cuh",
    what="""The macros write the
// text of wgmma for the headers of the types. Each of these headers includes this file first and
// wgmma_macros_end.cuh last, so that no macro remains defined after the header.""",
)
_STATEMENT = r"""
// The instruction for `count` accumulators, passed as "+f" or "+r". `types` begins with K; the names of operands after
// the accumulators are text such as "%4"; `scales` is the text after the predicate.
#define CUDA_TMA_WGMMA(count, held, n, types, a, b, accumulate, scales, ...)                                       \
    if constexpr (Count == count)                                                                                  \
        asm volatile("{ .reg .pred p; setp.ne.b32 p, " accumulate ", 0;\n"                                         \
                     "  wgmma.mma_async.sync.aligned.m64n" n types " {" CUDA_TMA_NAMES_##count "}, " a ", " b      \
                     ", p" scales "; }"                                                                            \
                     : CUDA_TMA_SUMS_##count(held) : __VA_ARGS__);

// The operands are A (a descriptor or registers), B, accumulate and N. Floating types add the signs of A and B. Then
// 16-bit types add whether A and B are MN-major, and 8-bit types add the numbers of exponent and mantissa bits.
#define CUDA_TMA_SHARED "l"(a.bits), "l"(b.bits), "r"(accumulate), "n"(Columns)
#define CUDA_TMA_REGISTERS "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits), "r"(accumulate), "n"(Columns)
#define CUDA_TMA_SIGNS "n"(Form::scale_a), "n"(Form::scale_b)
#define CUDA_TMA_DIGITS \
    "n"(Form::exponent_a), "n"(7 - Form::exponent_a), "n"(Form::exponent_b), "n"(7 - Form::exponent_b)

// These macros are arguments ROW of the macros CUDA_TMA_EACH_F32, ..._F16 and ..._S32. Each writes one instruction.
#define CUDA_TMA_SHARED_16(held, types, count, a, b, p, n, sign_a, sign_b, mn_a, mn_b, ...)                       \
    CUDA_TMA_WGMMA(count, held, n, types, a, b, p, ", " sign_a ", " sign_b ", " mn_a ", " mn_b,                    \
                   CUDA_TMA_SHARED, CUDA_TMA_SIGNS, "n"(Form::trans_a), "n"(Form::trans_b))
#define CUDA_TMA_REGISTERS_16(held, types, count, a0, a1, a2, a3, b, p, n, sign_a, sign_b, mn_b, ...)             \
    CUDA_TMA_WGMMA(count, held, n, types, "{" a0 ", " a1 ", " a2 ", " a3 "}", b, p,                                \
                   ", " sign_a ", " sign_b ", " mn_b, CUDA_TMA_REGISTERS, CUDA_TMA_SIGNS, "n"(Form::trans_b))
#define CUDA_TMA_SHARED_32(held, types, count, a, b, p, n, sign_a, sign_b, ...)                                   \
    CUDA_TMA_WGMMA(count, held, n, types, a, b, p, ", " sign_a ", " sign_b, CUDA_TMA_SHARED, CUDA_TMA_SIGNS)
#define CUDA_TMA_REGISTERS_32(held, types, count, a0, a1, a2, a3, b, p, n, sign_a, sign_b, ...)                   \
    CUDA_TMA_WGMMA(count, held, n, types, "{" a0 ", " a1 ", " a2 ", " a3 "}", b, p, ", " sign_a ", " sign_b,       \
                   CUDA_TMA_REGISTERS, CUDA_TMA_SIGNS)
#define CUDA_TMA_SHARED_FP8(held, types, count, a, b, p, n, sign_a, sign_b, ea, ma, eb, mb, ...)                  \
    CUDA_TMA_WGMMA(count, held, n, types ".e" ea "m" ma ".e" eb "m" mb, a, b, p, ", " sign_a ", " sign_b,          \
                   CUDA_TMA_SHARED, CUDA_TMA_SIGNS, CUDA_TMA_DIGITS)
#define CUDA_TMA_REGISTERS_FP8(held, types, count, a0, a1, a2, a3, b, p, n, sign_a, sign_b, ea, ma, eb, mb)       \
    CUDA_TMA_WGMMA(count, held, n, types ".e" ea "m" ma ".e" eb "m" mb, "{" a0 ", " a1 ", " a2 ", " a3 "}", b, p,  \
                   ", " sign_a ", " sign_b, CUDA_TMA_REGISTERS, CUDA_TMA_SIGNS, CUDA_TMA_DIGITS)
#define CUDA_TMA_SHARED_INT(held, types, count, a, b, p, n, ...)                                                  \
    CUDA_TMA_WGMMA(count, held, n, types, a, b, p, "", CUDA_TMA_SHARED)
#define CUDA_TMA_REGISTERS_INT(held, types, count, a0, a1, a2, a3, b, p, n, ...)                                  \
    CUDA_TMA_WGMMA(count, held, n, types, "{" a0 ", " a1 ", " a2 ", " a3 "}", b, p, "", CUDA_TMA_REGISTERS)

// This macro selects the statement for N and Form: CUDA_TMA_EACH(F32, 16, "+f", "k16.f32.bf16.bf16").
#define CUDA_TMA_EACH(sums, kind, held, types)                                                                    \
    if constexpr (Form::in_registers) {                                                                            \
        CUDA_TMA_EACH_##sums(CUDA_TMA_REGISTERS_##kind, held, types)                                               \
    } else {                                                                                                       \
        CUDA_TMA_EACH_##sums(CUDA_TMA_SHARED_##kind, held, types)                                                  \
    }
"""
_DEFINED = re.findall(r"#define CUDA_TMA_(\w+)", _STATEMENT)


def begin() -> str:
    return "\n".join(
        [_BEGIN + _STATEMENT]
        + ["// These macros list the names of the accumulators, and the accumulators, for each count.", *_lists()]
        + ["", f"// These macros write ROW(held, types, count, names of {BEHIND} other operands) for each count."]
        + [_rows(kind, counts) for kind, counts in COUNTS.items()]
    )


def _lists() -> Iterator[str]:
    for count in _all_counts():
        names = ", ".join(f"%{i}" for i in range(count))
        sums = ", ".join(f"held(sums[{i}])" for i in range(count))
        yield f'#define CUDA_TMA_NAMES_{count} "{names}"\n#define CUDA_TMA_SUMS_{count}(held) {sums}'


def _rows(kind: str, counts: Iterable[int]) -> str:
    behind = {count: ", ".join(f'"%{count + i}"' for i in range(BEHIND)) for count in counts}
    rows = (f"    ROW(held, types, {count}, {names})" for count, names in behind.items())
    return " \\\n".join([f"#define CUDA_TMA_EACH_{kind.upper()}(ROW, held, types)", *rows]) + "\n"


def _all_counts() -> list[int]:
    return sorted(set().union(*COUNTS.values()))


def end() -> str:
    names = [*_DEFINED, *(f"EACH_{kind.upper()}" for kind in COUNTS)]
    names += [f"{what}_{count}" for count in _all_counts() for what in ("NAMES", "SUMS")]
    head = _HEAD.format(name="wgmma_macros_end.cuh", what="This file\n// undefines the macros of wgmma_macros.cuh.")
    return head + "\n" + "".join(f"#undef CUDA_TMA_{name}\n" for name in names)


FILES = {"wgmma_macros.cuh": begin(), "wgmma_macros_end.cuh": end()}

if __name__ == "__main__":
    folder = Path(__file__).parent.parent / "cuda_tma" / "include" / "cuda_tma"
    for name, text in FILES.items():
        (folder / name).write_text(text)
