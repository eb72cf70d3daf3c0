"""The spellings of all exact scalar instructions in the simulator's table, for comparison with a GPU.

In a spelling, an operand is a letter or a number. The table omits approximations and exchanges between lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product

SMALL, WIDE = ("u16", "u32", "s16", "s32"), ("u64", "s64")
INTEGERS = (*SMALL, *WIDE)
HALVES = ("f16", "f16x2", "bf16", "bf16x2")
MODES = ("rn", "rz", "rm", "rp")
RELATIONS = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = (*(f"{name}u" for name in RELATIONS), "num", "nan")
TABLES = (0x00, 0x01, 0x17, 0x1B, 0x40, 0x6A, 0x80, 0x96, 0xAC, 0xC0, 0xCA, 0xE8, 0xF8, 0xFE, 0xFF)


@cache
def forms() -> list[str]:
    return [*_integers(), *_bits(), *_floats(), *_comparisons(), *_conversions(), *_conversions_of_floats(), *_moves()]


def _integers() -> Iterator[str]:
    for type_ in INTEGERS:
        yield from (f"{name}.{type_} d, a, b" for name in ("add", "sub", "mul.lo", "mul.hi", "min", "max"))
        yield from (f"mad.{part}.{type_} d, a, b, c" for part in ("lo", "hi"))
        yield f"sad.{type_} d, a, b, c"
    for type_ in SMALL:
        yield from (f"mul.wide.{type_} d, a, b", f"mad.wide.{type_} d, a, b, c")
    for name, type_ in product(("abs", "neg"), ("s16", "s32", "s64")):
        yield f"{name}.{type_} d, a"
    for name, type_ in product(("mul24.lo", "mul24.hi"), ("u32", "s32")):
        yield from (f"{name}.{type_} d, a, b", f"{name.replace('mul', 'mad')}.{type_} d, a, b, c")
    yield from (
        "add.sat.s32 d, a, b",
        "sub.sat.s32 d, a, b",
        "mad.hi.sat.s32 d, a, b, c",
        "mad24.hi.sat.s32 d, a, b, c",
    )
    for name, type_ in product(("add", "min", "max"), ("u16x2", "s16x2")):
        yield f"{name}.{type_} d, a, b"
    yield from (f"{name}.relu.{type_} d, a, b" for name, type_ in product(("min", "max"), ("s32", "s16x2")))
    for a, b in product(("u32", "s32"), repeat=2):
        yield from (f"dp4a.{a}.{b} d, a, b, c", f"dp2a.lo.{a}.{b} d, a, b, c", f"dp2a.hi.{a}.{b} d, a, b, c")
    yield from ("vabsdiff4.u32.u32.u32 d, a, b, c", "vabsdiff4.u32.u32.u32.add d, a, b, c")
    # The divisor is odd, because PTX does not define division by zero.
    for name, type_ in product(("div", "rem"), INTEGERS):
        yield f"or.b{type_[1:]} e, b, 1; {name}.{type_} d, a, e"
    for type_ in ("u32", "s32", *WIDE):
        yield f"add.cc.{type_} d, a, b; addc.cc.{type_} e, c, a; addc.{type_} f, b, c"
        yield f"sub.cc.{type_} d, a, b; subc.cc.{type_} e, c, a; subc.{type_} f, b, c"
        yield f"mad.lo.cc.{type_} d, a, b, c; madc.hi.cc.{type_} e, a, b, c; madc.lo.{type_} f, b, c, a"
        yield f"mad.hi.cc.{type_} d, a, b, c; madc.lo.cc.{type_} e, a, b, c; madc.hi.{type_} f, b, c, a"


def _bits() -> Iterator[str]:
    for width in (16, 32, 64):
        yield from (f"{name}.b{width} d, a, b" for name in ("and", "or", "xor", "shl"))
        yield from (f"{name}.b{width} d, a" for name in ("not", "cnot"))
        yield from (f"shr.{kind}{width} d, a, b" for kind in "bus")
    yield from (f"{name}.pred p, q, r" for name in ("and", "or", "xor"))
    yield "not.pred p, q"
    yield from (f"lop3.b32 d, a, b, c, {table:#x}" for table in TABLES)
    yield from (f"lop3.{name}.b32 d|p, a, b, c, 0xca, q" for name in ("and", "or"))
    yield from (f"shf.{side}.{mode}.b32 d, a, b, c" for side, mode in product("lr", ("clamp", "wrap")))
    yield from (f"bfe.{type_} d, a, b, c" for type_ in ("u32", "s32"))
    yield "bfi.b32 d, a, b, c, e"
    # The instruction bfe restricts positions and lengths to 8 bits (PTX ISA), but the hardware reads all 64 bits.
    yield from (f"and.b32 e, b, 255; and.b32 f, c, 255; bfe.{type_} d, a, e, f" for type_ in WIDE)
    yield "and.b32 f, c, 255; and.b32 g, e, 255; bfi.b64 d, a, b, f, g"
    for mode in ("clamp", "wrap"):
        yield from (f"bmsk.{mode}.b32 d, a, b", f"szext.{mode}.u32 d, a, b", f"szext.{mode}.s32 d, a, b")
    yield from (f"{name}.b{width} d, a" for name, width in product(("popc", "clz", "brev"), (32, 64)))
    yield from (f"bfind{amount}.{type_} d, a" for amount, type_ in product(("", ".shiftamt"), ("u32", "s32", *WIDE)))
    yield "and.b32 e, b, 31; shr.s32 f, c, 26; fns.b32 d, a, e, f"
    yield from (f"prmt.b32{mode} d, a, b, c" for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"))


def _floats() -> Iterator[str]:
    for mode in MODES:
        for ftz, sat in product(("", ".ftz"), ("", ".sat")):
            end = f"{mode}{ftz}{sat}.f32"
            yield from (f"add.{end} d, a, b", f"sub.{end} d, a, b", f"mul.{end} d, a, b", f"fma.{end} d, a, b, c")
            yield f"mad.{end} d, a, b, c"
        yield from (f"add.{mode}.f64 d, a, b", f"sub.{mode}.f64 d, a, b", f"mul.{mode}.f64 d, a, b")
        yield from (f"fma.{mode}.f64 d, a, b, c", f"div.{mode}.f64 d, a, b")
        yield from (f"rcp.{mode}.f64 d, a", f"sqrt.{mode}.f64 d, a")
        for ftz in ("", ".ftz"):
            yield from (f"div.{mode}{ftz}.f32 d, a, b", f"rcp.{mode}{ftz}.f32 d, a", f"sqrt.{mode}{ftz}.f32 d, a")
    for type_ in HALVES:
        for ftz, sat in product(("", ".ftz"), ("", ".sat")) if type_[0] == "f" else (("", ""),):
            yield from (f"{name}.rn{ftz}{sat}.{type_} d, a, b" for name in ("add", "sub", "mul"))
            yield f"fma.rn{ftz}{sat}.{type_} d, a, b, c"
        yield f"fma.rn.relu.{type_} d, a, b, c"
    yield from (f"fma.rn.ftz.relu.{type_} d, a, b, c" for type_ in ("f16", "f16x2"))
    for name, type_ in product(("min", "max"), (*HALVES, "f32")):
        for ftz, nan, sign in product(("", ".ftz") if type_[0] == "f" else ("",), ("", ".NaN"), ("", ".xorsign.abs")):
            yield f"{name}{ftz}{nan}{sign}.{type_} d, a, b"
    yield from (f"{name}.f64 d, a, b" for name in ("min", "max"))
    for name, type_ in product(("abs", "neg"), (*HALVES, "f32", "f64")):
        yield f"{name}.{type_} d, a"
        if type_ in ("f32", "f16", "f16x2"):
            yield f"{name}.ftz.{type_} d, a"
    for type_ in ("f32", "f64"):
        yield f"copysign.{type_} d, a, b"
        properties = ("finite", "infinite", "number", "notanumber", "normal", "subnormal")
        yield from (f"testp.{name}.{type_} p, a" for name in properties)


def _comparisons() -> Iterator[str]:
    for type_ in INTEGERS:
        names = (*RELATIONS, *(("lo", "ls", "hi", "hs") if type_[0] == "u" else ()))
        yield from (f"setp.{name}.{type_} p, a, b" for name in names)
        yield from (f"set.{name}.{to}.{type_} d, a, b" for name, to in product(("lt", "ne"), ("u32", "s32", "f32")))
    yield from (f"setp.{name}.b{width} p, a, b" for name, width in product(("eq", "ne"), (16, 32, 64)))
    yield from (f"setp.lt.{name}.s32 p|r, a, b, q" for name in ("and", "or", "xor"))
    yield from (f"setp.geu.{name}.f32 p|r, a, b, q" for name in ("and", "or", "xor"))
    for type_, name in product(("f16", "bf16", "f32", "f64"), (*RELATIONS, *UNORDERED)):
        yield f"setp.{name}.{type_} p, a, b"
        if type_ in ("f16", "f32"):
            yield f"setp.{name}.ftz.{type_} p, a, b"
    for type_, name in product(("f16x2", "bf16x2"), ("lt", "neu", "ge", "nan")):
        yield f"setp.{name}.{type_} p|r, a, b"
        yield f"set.{name}.{type_}.{type_} d, a, b"
    for name in ("lt", "neu", "ge", "num"):
        yield from (f"set.{name}.{to}.f32 d, a, b" for to in ("u32", "f32"))
        yield from (f"set.{name}.ftz.f32.f32 d, a, b", f"set.{name}.u32.f64 d, a, b", f"set.{name}.f32.f64 d, a, b")
        yield from (f"set.{name}.{to}.f16 d, a, b" for to in ("u16", "f16", "u32"))
    yield from (f"selp.b{width} d, a, b, q" for width in (16, 32, 64))
    for by, width in product((".s32", ".f32", ".ftz"), (16, 32, 64)):
        yield f"slct{by}.b{width}.f32 d, a, b, c" if by == ".ftz" else f"slct.b{width}{by} d, a, b, c"


def _conversions() -> Iterator[str]:
    integers = tuple(f"{kind}{width}" for kind in "us" for width in (8, 16, 32, 64))
    floats = ("f16", "bf16", "f32", "f64")
    for to, of in product(integers, integers):
        if to != of:
            yield f"cvt.{to}.{of} d, a"
            # PTX has a saturating conversion only where a result can saturate.
            if int(to[1:]) <= int(of[1:]) or (to[0], of[0]) == ("u", "s"):
                yield f"cvt.sat.{to}.{of} d, a"
    # The assembler ptxas supports no conversion between 8-bit integers and bf16.
    eight = ("u8", "s8")
    for of, to in product(integers, floats):
        if to != "bf16" or of not in eight:
            yield from (f"cvt.{mode}.{to}.{of} d, a" for mode in MODES)
    for of, to, mode in product(floats, integers, ("rni", "rzi", "rmi", "rpi")):
        if of == "bf16" and to in eight:
            continue
        yield f"cvt.{mode}.{to}.{of} d, a"
        if of == "f32":
            yield from (f"cvt.{mode}.ftz.{to}.f32 d, a", f"cvt.{mode}.sat.{to}.f32 d, a")


def _conversions_of_floats() -> Iterator[str]:
    yield from (f"cvt.{mode}{ftz}.f32.f64 d, a" for mode, ftz in product(MODES, ("", ".ftz")))
    yield from (f"cvt.{mode}.f16.f64 d, a" for mode in MODES)
    yield from (f"cvt.{mode}{more}.f16.f32 d, a" for mode, more in product(("rn", "rz"), ("", ".relu")))
    yield from (f"cvt.{mode}{more}.bf16.f32 d, a" for mode, more in product(("rn", "rz"), ("", ".relu")))
    yield from ("cvt.rm.bf16.f32 d, a", "cvt.rp.bf16.f32 d, a", "cvt.rp.bf16.f64 d, a", "cvt.rz.bf16.f64 d, a")
    yield from ("cvt.rm.f16.f32 d, a", "cvt.rp.ftz.f16.f32 d, a", "cvt.rn.sat.f16.f32 d, a", "cvt.rn.bf16.f64 d, a")
    yield from (
        "cvt.f32.f16 d, a",
        "cvt.ftz.f32.f16 d, a",
        "cvt.f32.bf16 d, a",
        "cvt.f64.f16 d, a",
        "cvt.f64.bf16 d, a",
    )
    yield from ("cvt.f64.f32 d, a", "cvt.ftz.f64.f32 d, a", "cvt.sat.f32.f32 d, a", "cvt.ftz.f32.f32 d, a")
    yield from ("cvt.rn.bf16.f16 d, a", "cvt.rn.f16.bf16 d, a", "cvt.bf16.f16 d, a", "cvt.f16.bf16 d, a")
    yield from ("cvt.sat.f64.f64 d, a", "cvt.sat.f32.f16 d, a")
    for mode, type_ in product(("rni", "rzi", "rmi", "rpi"), ("f16", "f32", "f64")):
        yield f"cvt.{mode}.{type_}.{type_} d, a"
    yield from ("cvt.rni.ftz.f32.f32 d, a", "cvt.rmi.sat.f32.f32 d, a", "cvt.rna.tf32.f32 d, a")
    for type_, mode, relu in product(("f16", "bf16"), ("rn", "rz"), ("", ".relu")):
        yield f"cvt.{mode}{relu}.satfinite.{type_}.f32 d, a"
        yield f"cvt.{mode}{relu}.satfinite.{type_}x2.f32 d, a, b"
    yield "cvt.rna.satfinite.tf32.f32 d, a"
    yield from (f"cvt.{mode}{relu}.tf32.f32 d, a" for mode, relu in product(("rn", "rz"), ("", ".relu")))
    for relu in ("", ".relu"):
        yield from (f"cvt.{m}{relu}.{t}.f32 d, a, b" for m, t in product(("rn", "rz"), ("f16x2", "bf16x2")))
        for type_ in ("e4m3x2", "e5m2x2"):
            yield from (f"cvt.rn.satfinite{relu}.{type_}.f32 d, a, b", f"cvt.rn.satfinite{relu}.{type_}.f16x2 d, a")
            yield f"cvt.rn{relu}.f16x2.{type_} d, a"
    yield from (f"cvt.pack.sat.{type_}.s32.b32 d, a, b, c" for type_ in ("u8", "s8", "u4", "s4", "u2", "s2"))
    yield from (f"cvt.pack.sat.{type_}.s32 d, a, b" for type_ in ("u16", "s16"))


def _moves() -> Iterator[str]:
    yield from ("mov.b64 d, {a, b}", "mov.b64 {d, e}, a", "mov.b32 d, {a, b}", "mov.b32 {d, e}, a")
    yield from ("mov.b64 d, {a, b, c, e}", "mov.b64 {d, e, f, g}, a")
