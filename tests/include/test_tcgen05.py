"""Tests that functions of tcgen05.cuh, tcgen05_scaled.cuh and tensor_memory.cuh are the documented instructions, and
that they refuse wrong uses."""

from __future__ import annotations

import re
from itertools import product

import pytest

from cuda_tma.simulate._tensor_memory.form import form_of
from cuda_tma.simulate._tensor_memory.scaled_form import scaled_form_of
from tests.include._header import cubin, defined_in, ptx, words
from tests.support.ptx_interpreter import effects

PARAMETERS = {
    "slot": "void*",
    "full": "Barrier*",
    **dict.fromkeys(("d", "x", "y"), "unsigned"),
    **dict.fromkeys(("p", "q"), "unsigned long long"),
    "mask": "unsigned short",
}
AT = "tcgen05::Address{d}"
NO_REGISTERS = {
    "tcgen05::alloc<64>(*(unsigned*)slot);": (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [shared(slot)], 64"
    ),
    "tcgen05::alloc<512, 2>(*(unsigned*)slot);": (
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [shared(slot)], 512"
    ),
    f"tcgen05::dealloc<32>({AT});": "tcgen05.dealloc.cta_group::1.sync.aligned.b32 d, 32",
    f"tcgen05::dealloc<256, 2>({AT});": "tcgen05.dealloc.cta_group::2.sync.aligned.b32 d, 256",
    "tcgen05::relinquish_alloc_permit();": "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned",
    "tcgen05::relinquish_alloc_permit<2>();": "tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned",
    "tcgen05::fence_before_thread_sync();": "tcgen05.fence::before_thread_sync",
    "tcgen05::fence_after_thread_sync();": "tcgen05.fence::after_thread_sync",
    "float r[2] = {}; tcgen05::wait_ld(r);": "tcgen05.wait::ld.sync.aligned",
    "tcgen05::wait_st();": "tcgen05.wait::st.sync.aligned",
    "tcgen05::commit(*full);": ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [shared(full)]"),
    "tcgen05::commit_multicast<2>(*full, mask);": (
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [shared(full)], mask"
    ),
}
TYPES = {
    "f16": ("f16", "bf16"),
    "tf32": ("tf32",),
    "f8f6f4": ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1"),
    "i8": ("u8", "s8"),
}
# Each row contains the kind of a product, the types of A and B, and the type of the sums.
FORMS = [
    (kind, a, b, sums)
    for kind, types in TYPES.items()
    for a, b in product(types, types)
    for sums in (("s32",) if kind == "i8" else ("f32", "f16"))
    if not (kind == "f16" and (a != b or (a, sums) == ("bf16", "f16"))) and not (kind == "tf32" and sums == "f16")
]


def statement(form: tuple[str, str, str, str], a: str = "{p}", more: str = "128, 64, 1", rest: str = ", x") -> str:
    _, a_type, b_type, sums = form
    return (
        f"tcgen05::mma<{more}, Sums::{sums}>({AT}, tcgen05::Matrix<Input::{a_type}>{a}, "
        f"tcgen05::Matrix<Input::{b_type}>{{q}}{rest});"
    )


def bits_of(text: str) -> int:
    """Return the instruction descriptor of the only tcgen05.mma in an effect."""
    return int(re.search(r"q, (\d+),", text)[1])


def test_function_is_its_instruction():
    assert effects("tcgen05_scaled.cuh", PARAMETERS, NO_REGISTERS, target="compute_100a") == NO_REGISTERS


def test_the_instruction_descriptor_of_each_type():
    """The instruction of each product has the operands in order.

    The simulator decodes the instruction's descriptor to the same types."""
    calls = {statement(form): form for form in FORMS}
    for call, text in effects("tcgen05_scaled.cuh", PARAMETERS, calls, target="compute_100a").items():
        kind, a, b, sums = calls[call]
        assert text.startswith(f"tcgen05.mma.cta_group::1.kind::{kind} [d], p, q, {bits_of(text)}, "), text
        assert "ne.b32(x, 0)" in text
        found = form_of(kind, bits_of(text), 1, False)
        assert (found.a_type, found.b_type, found.sums, found.m, found.n) == (a, b, sums, 128, 64)


def test_the_other_fields_of_the_instruction_descriptor():
    bf16, matrix = "tcgen05::Matrix<Input::bf16>{q}", "tcgen05::Matrix<Input::{}, Major::{}>{{{}}}"
    a, b = matrix.format("e4m3", "MN", "p"), matrix.format("e5m2", "MN", "q")
    calls = {
        f"tcgen05::mma<256, 32, 2>({AT}, -{a}, {b}.advance(0));": ("f8f6f4", (256, 32, True, False, True, True)),
        f"tcgen05::mma<64, 8>({AT}, tcgen05::MatrixInLanes<Input::bf16>{{{{x}}}}, -{bf16}, false);": (
            "f16", (64, 8, False, True, False, False)
        ),
    }  # fmt: skip
    found = effects("tcgen05.cuh", PARAMETERS, calls, target="compute_100a")
    for (call, text), ctas in zip(found.items(), (2, 1), strict=True):
        kind, fields = calls[call]
        form = form_of(kind, bits_of(text), ctas, False)
        assert (form.m, form.n, form.a_negative, form.b_negative, form.a_mn_major, form.b_mn_major) == fields
        assert f"cta_group::{ctas}.kind::{kind}" in text
    assert " [d], [x], q, " in text


def test_products_with_block_scales():
    rows = [
        ("e4m3", "e2m1", "false", "ue8m0", "mxf8f6f4.block_scale.block32", 1, 3),
        ("e2m1", "e2m1", "true", "ue8m0", "mxf4.block_scale.block32", 2, 2),
        ("e2m1", "e2m1", "true", "ue4m3", "mxf4nvf4.block_scale.block16", 4, 0),
    ]
    calls = {
        f"constexpr auto T = tcgen05::ScaleType::{scale}; tcgen05::Scales<T> s{{{{x}}}}, t{{{{y}}}};"
        f"tcgen05::mma_block_scale<128, 48>({AT}, tcgen05::Matrix<Input::{a}, Major::k, 1, {packed}>{{p}},"
        f" tcgen05::Matrix<Input::{b}, Major::k, 1, {packed}>{{q}}, s.skip({byte}), t, x);": row
        for row in rows
        for a, b, packed, scale, _, _, byte in [row]
    }
    for call, text in effects("tcgen05_scaled.cuh", PARAMETERS, calls, target="compute_100a").items():
        a, b, packed, scale, kind, count, byte = calls[call]
        bits = bits_of(text)
        assert text.startswith(f"tcgen05.mma.cta_group::1.kind::{kind} [d], p, q, {bits}, [x], [y], ")
        form = scaled_form_of(kind.split(".")[0], count, bits % 2**32, 1)
        assert (form.m, form.n) == (128, 48) and (form.scales.type, form.scales.a_byte) == (scale, byte)
        assert packed == "true" or (form.a_type, form.b_type) == (a, b)
    call = f"tcgen05::cp_scales<2>({AT}, slot);"
    (text,) = effects("tcgen05_scaled.cuh", PARAMETERS, [call], target="compute_100a").values()
    assert text.startswith("tcgen05.cp.cta_group::2.32x128b.warpx4 [d], ")


def accepts(kind: str, m: int, n: int, ctas: int) -> bool:
    """Return whether the simulator accepts the shape of a product, whose types are valid."""
    d, code = {"f16": (1, 0), "tf32": (1, 2), "f8f6f4": (1, 0), "i8": (2, 0)}[kind]
    try:
        form_of(kind, m >> 4 << 24 | n >> 3 << 17 | d << 4 | code << 7 | code << 10, ctas, False)
    except ValueError:
        return False
    return n % 8 == 0 and m % 16 == 0


def test_the_shapes_are_those_of_the_simulator():
    cases = product(TYPES, (32, 64, 96, 128, 192, 256), (*range(0, 265, 8), 4, 12, 100), (1, 2))
    checks = [
        f"static_assert((has_rows({m}, {ctas}) && has_columns(Kind::{kind}, {n}, {ctas})) == "
        f"{str(accepts(kind, m, n, ctas)).lower()});"
        for kind, m, n, ctas in cases
    ]
    ptx("\n".join(["#include <cuda_tma/tcgen05.cuh>", "using namespace cuda_tma::tcgen05;", *checks]), "compute_100a")


# ---- registers ----

SHAPES = {(32, 32): 1, (16, 64): 1, (16, 128): 2, (16, 256): 4}


def transfers(value: str, ld: str, st: str, counts: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128)) -> dict[str, str]:
    """Return statements that load and store registers, and the qualifiers of the loads."""
    return {
        f"{{ {value} r[{n}]; tcgen05::{ld}<{lanes}, {bits}>(r, at); tcgen05::wait_ld(r);"
        f" tcgen05::{st}<{lanes}, {bits}>(at, r); }}": f"{lanes}x{bits}b.x{n // least}"
        for ((lanes, bits), least), n in product(SHAPES.items(), counts)
        if n >= least
    }


def registers_kernel(statements: list[str]) -> str:
    return (
        "#include <cuda_tma/tensor_memory.cuh>\nusing namespace cuda_tma;\n"
        'extern "C" __global__ void kernel(unsigned x) { const tcgen05::Address at{x};' + "\n".join(statements) + "}"
    )


@pytest.mark.parametrize(
    ("value", "ld", "st", "qualifier"),
    [("float", "ld", "st", ""), ("unsigned", "ld_pack_16b", "st_unpack_16b", "pack::16b.")],
)
def test_registers(value, ld, st, qualifier):
    """Each transfer has its shape and its number of registers. ptxas checks that these two agree."""
    calls = transfers(value, ld, st, (1, 2, 4, 16, 32, 64))
    text = ptx(registers_kernel(list(calls)), "compute_100a")
    for kind, extra in (("ld", qualifier), ("st", qualifier and f"un{qualifier}")):
        found = re.findall(rf"tcgen05\.{kind}\.sync\.aligned\.(\S+?\.x\d+)\.({extra})b32 .*?;", text)
        assert [shape for shape, _ in found] == list(calls.values())
    of_a_load = re.findall(r"tcgen05\.ld\S+ \{(.*?)\}", text)
    assert [names.count("%") for names in of_a_load] == [int(re.search(r"r\[(\d+)\]", call)[1]) for call in calls]
    assert all(re.fullmatch(r"(%\w+)(, %\w+)*", names) for names in of_a_load)


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_everything_compiles(target):
    calls = [*transfers("float", "ld", "st", (8, 128)), *transfers("unsigned", "ld_pack_16b", "st_unpack_16b", (4, 32))]
    assert cubin(registers_kernel(calls), target).startswith(b"\x7fELF")
    forms = [statement(form) for form in FORMS if form[0] != "i8" or target == "sm_100a"]
    source = "#include <cuda_tma/tcgen05_scaled.cuh>\nusing namespace cuda_tma;\n"
    source += 'extern "C" __global__ void kernel(unsigned d, unsigned x, unsigned long long p, unsigned long long q) {'
    assert cubin(f"{source} {' '.join(forms)} }}", target).startswith(b"\x7fELF")


def test_nothing_is_left_out():
    """This module calls each function of the headers that is an instruction."""
    parts = {"require_group", "require_columns", "of_warp", "column", "lane", "is_narrow", "code_of", "kind_of", "code"}
    tested_on_the_simulator = {"k_major", "mn_major", "descriptor_bits", "advance", "skip"}
    headers = ("tensor_memory.cuh", "tcgen05.cuh", "tcgen05_scaled.cuh")
    called = [*NO_REGISTERS, statement(FORMS[0]), *transfers("int", "ld", "st"), "ld_pack_16b st_unpack_16b"]
    called += ["mma_block_scale cp_scales has_rows has_columns TensorMemory"]
    assert set().union(*map(defined_in, headers)) - words(called) <= parts | tested_on_the_simulator


# ---- wrong uses ----

BF16, E4M3, S8 = (f"Matrix<Input::{name}>{{0}}" for name in ("bf16", "e4m3", "s8"))
FP4 = "Matrix<Input::e2m1, Major::k, 1, true>{0}"
SCALED = "Scales<ScaleType::ue8m0> s{at}; Scales<ScaleType::ue4m3> t{at};"
TILE = "auto& tile = *reinterpret_cast<Tile<%s>*>(storage);"
BYTES = TILE % "UINT8, Box<8, 128>, SWIZZLE_128B"
WRONG = {
    "columns": ("alloc<96>(slot);", "a number of allocated columns is 32, 64, 128, 256 or 512"),
    "an object's columns": ("TensorMemory<16> memory(slot);", "a number of allocated columns is 32, 64, 128"),
    "a copy": ("TensorMemory<32> memory(slot); auto other = memory;", "deleted function"),
    "CTAs": ("commit<4>(full);", "the instructions are those of 1 CTA, or of a pair of 2 CTAs"),
    "a shape": ("float r[4]; ld<32, 64>(r, at);", "the shape of ld and st is 32 x 32, 16 x 64, 16 x 128"),
    "a number": ("float r[48]; ld(r, at);", "a power of two up to 128"),
    "too few": ("unsigned r[2]; st<16, 256>(at, r);", "2 for 16 x 128 and 4 for 16 x 256"),
    "doubles": ("double r[4]; ld(r, at);", "the registers of ld and st are float, unsigned or int"),
    "M": (f"mma<192, 64>(at, {BF16}, {BF16});", "M is 64 or 128, with a pair of CTAs 128 or 256"),
    "M of one CTA": (f"mma<256, 64>(at, {BF16}, {BF16});", "M is 64 or 128, with a pair of CTAs 128 or 256"),
    "N": (f"mma<128, 260>(at, {BF16}, {BF16});", "N is a multiple of 8 up to 256"),
    "N of a pair": (f"mma<256, 24, 2>(at, {BF16}, {BF16});", "with a pair of CTAs of 16"),
    "N of s8": (f"mma<128, 40>(at, {S8}, {S8});", "N is 8, 24 or a multiple"),
    "types": (f"mma<128, 64>(at, {BF16}, {E4M3});", "A and B are of one type of bf16, f16 and tf32"),
    "sums": (f"mma<128, 64, 1, Sums::f16>(at, {BF16}, {BF16});", "sums are f32, for f16 and the types of 8 bits"),
    "negative integers": (
        f"mma<128, 64>(at, -{S8}, {S8});", "s8 and u8 have no -x",
    ),
    "B in tensor memory": (
        f"mma<128, 64>(at, {BF16}, MatrixInLanes<Input::bf16>{{at}});", "only A may be in tensor memory",
    ),
    "packed elements": (f"mma<128, 64>(at, {FP4}, {FP4});", "e2m1 needs a tile of U4_ALIGN16B"),
    "tf32 with M innermost": (
        "Matrix<Input::tf32, Major::mn> m{0};", "only types of 8 and 16 bits are read with M or N innermost",
    ),
    "another element": (BYTES + "k_major<Input::bf16>(tile);", "other elements"),
    "padded e2m3": (BYTES + "k_major<Input::e2m3>(tile);", "need U6_ALIGN16B"),
    "a swizzle": (
        TILE % "BFLOAT16, Box<8, 64>, SWIZZLE_128B_ATOM_32B" + "k_major(tile);", "the swizzle NONE, 32B, 64B or 128B",
    ),
    "no swizzle": (TILE % "BFLOAT16, Box<8, 64>" + "k_major(tile);", "without a swizzle: k_major<Type, SWIZZLE"),
    "M of scales": (f"{SCALED} mma_block_scale<64, 64>(at, {E4M3}, {E4M3}, s, s);", "M is 128, with a pair"),
    "N of scales": (f"{SCALED} mma_block_scale<128, 4>(at, {E4M3}, {E4M3}, s, s);", "N is a multiple of 8"),
    "types of scales": (f"{SCALED} mma_block_scale<128, 64>(at, {BF16}, {BF16}, s, s);", "A and B are of e4m3"),
    "scales of ue4m3": (f"{SCALED} mma_block_scale<128, 64>(at, {E4M3}, {E4M3}, t, t);", "scales of ue4m3 are for"),
    "packed and in lanes": (
        f"{SCALED} mma_block_scale<128, 64>(at, MatrixInLanes<Input::e4m3>{{at}}, {FP4}, s, s);",
        "multiplies only e2m1",
    ),
    "packed and padded": (f"{SCALED} mma_block_scale<128, 64>(at, {E4M3}, {FP4}, s, s);", "only another"),
}  # fmt: skip


def wrong_kernel(body: str, name: str = "kernel") -> str:
    return f"""
#include <cuda_tma/tcgen05_scaled.cuh>
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using namespace tcgen05;
#line 1 "{name}"
extern "C" __global__ void {name}(unsigned x) {{
    __shared__ unsigned slot;
    __shared__ Barrier full;
    __shared__ alignas(1024) char storage[16384];
    const Address at{{x}};
    {body}
}}
"""


def test_each_wrong_use_is_named():
    """One compilation reports each wrong use at its place, with its sentence."""
    names = {f"use_{number}_": name for number, name in enumerate(WRONG)}
    with pytest.raises(AssertionError) as refused:
        ptx("".join(wrong_kernel(WRONG[name][0], use) for use, name in names.items()), "compute_100a")
    records = re.split(r"\n(?=\S+\(\d+\): (?:error|warning))", str(refused.value))
    for use, name in names.items():
        assert any(use in record and WRONG[name][1] in record for record in records if "error" in record), name


@pytest.mark.parametrize("target", ["compute_100", "compute_120a", "compute_90a"])
def test_a_target_without_tensor_memory_is_named(target):
    with pytest.raises(AssertionError, match="tcgen05 needs sm_100a, sm_103a"):
        ptx(wrong_kernel("tcgen05::fence_after_thread_sync();"), target)


def test_integers_need_their_targets():
    call = f"mma<128, 64>(at, {S8}, {S8});"
    with pytest.raises(AssertionError, match="kind::i8 of tcgen05.mma needs sm_100a or sm_110a"):
        ptx(wrong_kernel(call), "compute_103a")
