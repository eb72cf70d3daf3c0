"""Tests of the headers that tma.cuh does not include. Each function is the documented instruction on every target with
the instruction."""

from __future__ import annotations

import re

import pytest

from cuda_tma._data_type import ELEMENTS
from cuda_tma.codec._fields import SWIZZLE_REPEAT_BYTES, TRANSFER_BYTES
from cuda_tma.enums import TensorMapDataType, TensorMapSwizzle
from tests.include._header import FOLDER, TARGETS, cubin, defined_in, nvcc, ptx, words
from tests.support.ptx_interpreter import effects, source_of

PARAMETERS = {
    "tile": "void*",
    "memory": "void*",
    "full": "Barrier*",
    "response": "LaunchResponse*",
    "map": "TensorMap*",
    "there": "TensorMap*",
    **dict.fromkeys(("bytes", "rank", "value", "elements"), "unsigned"),
    **dict.fromkeys(("flag", "word"), "unsigned*"),
    **dict.fromkeys(("wide_flag", "out"), "unsigned long long*"),
    "wide": "unsigned long long",
    "words": "uint4",
}
SCOPES = ("cta", "cluster", "gpu", "sys")
SCOPE = {
    statement: text
    for scope in SCOPES
    for flag, value, kind, result in (("flag", "value", "u32", "word"), ("wide_flag", "wide", "u64", "out"))
    for statement, text in {
        f"store_release<Scope::{scope}>({flag}, {value});": f"st.release.{scope}.global.{kind} [{flag}], {value}",
        f"add_release<Scope::{scope}>({flag}, {value});": f"red.release.{scope}.global.add.{kind} [{flag}], {value}",
        f"*{result} = load_acquire<Scope::{scope}>({flag});": (
            f"ld.acquire.{scope}.global.{kind} [{flag}]; st.global.{kind} [{result}], 1"
        ),
        f"*{result} = fetch_add<Scope::{scope}>({flag}, {value});": (
            f"atom.acq_rel.{scope}.global.add.{kind} [{flag}], {value}; st.global.{kind} [{result}], 1"
        ),
    }.items()
} | {
    "store_release(flag, value);": "st.release.gpu.global.u32 [flag], value",
    "*word = load_acquire(flag);": "ld.acquire.gpu.global.u32 [flag]; st.global.u32 [word], 1",
}

REMOTE = "[mapa.shared::cluster.u32(shared({}), rank)]"
TO, COUNTED = REMOTE.format("tile"), REMOTE.format("full")
ST_ASYNC = "st.async.shared::cluster.mbarrier::complete_tx::bytes"
RED_ASYNC = "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes"
C_TYPES = {"u32": "unsigned", "s32": "int", "b32": "unsigned", "u64": "unsigned long long", "s64": "long long"}
REDUCTIONS = {
    "add": "u32 s32 u64 s64", "min": "u32 s32", "max": "u32 s32", "inc": "u32", "dec": "u32",
    "bit_and": "b32", "bit_or": "b32", "bit_xor": "b32",
}  # fmt: skip
STORE_ASYNC = {
    "store_async((unsigned*)tile, rank, value, *full);": f"{ST_ASYNC}.b32 {TO}, value, {COUNTED}",
    "store_async((float*)tile, rank, 1.0f, *full);": f"{ST_ASYNC}.b32 {TO}, {0x3F800000}, {COUNTED}",
    "store_async((unsigned long long*)tile, rank, wide, *full);": f"{ST_ASYNC}.b64 {TO}, wide, {COUNTED}",
    "store_async((double*)tile, rank, 2.0, *full);": f"{ST_ASYNC}.b64 {TO}, {1 << 62}, {COUNTED}",
    "store_async((ulonglong2*)tile, rank, ulonglong2{wide, 7}, *full);": (
        f"{ST_ASYNC}.v2.b64 {TO}, {{wide, 7}}, {COUNTED}"
    ),
    **{
        f"reduce_async<Reduction::{op}>(({C_TYPES[kind]}*)tile, rank, ({C_TYPES[kind]}){value}, *full);": (
            f"{RED_ASYNC}.{op.removeprefix('bit_')}.{kind} {TO}, {value}, {COUNTED}"
        )
        for op, kinds in REDUCTIONS.items()
        for kind in kinds.split()
        for value in ["wide" if "64" in kind else "value"]
    },
}

# The instruction tensormap.replace takes the codes of a tensor map, except for the codes of TF32 and of the packed
# types.
CLEAR_TF32 = "red.shared::cta.and.b32 [shared(map) + 8], -65537; "
TF32 = {TensorMapDataType.TFLOAT32: 11, TensorMapDataType.TFLOAT32_FTZ: 12}
REPLACE = "tensormap.replace.tile.{}.shared::cta.b1024.{} [shared(map)], {}"
TENSOR_MAP_REPLACE = {
    "replace_global_address(*map, memory);": REPLACE.format("global_address", "b64", "memory"),
    "replace_rank(*map, 3);": REPLACE.format("rank", "b32", 2),
    **{
        f"replace_{name}<{i}>(*map, elements);": REPLACE.format(name, "b32", f"{i}, elements")
        for name in ("global_dim", "box_dim", "element_stride")
        for i in range(5)
    },
    **{
        f"replace_global_stride<{i}>(*map, wide);": REPLACE.format("global_stride", "b64", f"{i}, wide")
        for i in range(4)
    },
    **{
        f"replace_data_type<{int(t)}>(*map);": ("" if t in TF32 else CLEAR_TF32)
        + REPLACE.format("elemtype", "b32", TF32.get(t, ELEMENTS[t].code))
        for t in TensorMapDataType
        if t < TensorMapDataType.PACKED_16U4_ALIGN8B
    },
    **{
        f"replace_{name}<{i}>(*map);": REPLACE.format(field, "b32", i)
        for name, field, count in (("interleave", "interleave_layout", 3), ("oob_fill", "fill_mode", 2))
        for i in range(count)
    },
    **{f"replace_swizzle<{i}>(*map);": REPLACE.format("swizzle_mode", "b32", i) for i in range(4)},
    **{
        f"copy_tensor_map_release{template}(there, *map);": (
            f"tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.{scope}.sync.aligned"
            " [there], [shared(map)], 128"
        )
        for template, scope in (("", "gpu"), ("<Scope::gpu>", "gpu"), ("<Scope::sys>", "sys"))
    },
}
# Targets after sm_90 also have the packed types and the atomicity of a swizzle. A change of the swizzle also sets the
# atomicity.
PACKED = {
    f"replace_data_type<{int(t)}>(*map);": CLEAR_TF32 + REPLACE.format("elemtype", "b32", int(t))
    for t in TensorMapDataType
    if t >= TensorMapDataType.PACKED_16U4_ALIGN8B
} | {
    f"replace_swizzle<{int(swizzle)}>(*map);": "; ".join(
        [
            REPLACE.format("swizzle_mode", "b32", min(swizzle, 3)),
            REPLACE.format("swizzle_atomicity", "b32", max(swizzle - 3, 0)),
        ]
    )
    for swizzle in TensorMapSwizzle
}

WORDS = "{words, words+4, words+8, words+12}"
MULTIMEM = {
    **{
        f"*reinterpret_cast<uint4*>(memory) = multimem_load_add<MultimemType::{kind}>(out);": (
            f"multimem.ld_reduce.relaxed.sys.global.add{qualifiers} [out]; st.v4.u32 [memory], {{1, 1, 1, 1}}"
        )
        for kind, qualifiers in (
            ("f32x4", ".v4.f32"), ("f16x8", ".acc::f32.v4.f16x2"), ("bf16x8", ".acc::f32.v4.bf16x2"),
        )
    },
    **{
        f"multimem_add<MultimemType::{kind}>(out, uint4{{value, 2, 3, 4}});": (
            f"multimem.red.relaxed.sys.global.add.v4.{element} [out], {{value, 2, 3, 4}}"
        )
        for kind, element in (("f32x4", "f32"), ("f16x8", "f16x2"), ("bf16x8", "bf16x2"))
    },
    "multimem_store(out, uint4{value, 2, 3, 4});": "multimem.st.relaxed.sys.global.v4.f32 [out], {value, 2, 3, 4}",
    "multimem_add_release(flag, value);": "multimem.red.release.sys.global.add.u32 [flag], value",
}  # fmt: skip

TRY_CANCEL = "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
QUERY = "clusterlaunchcontrol.query_cancel"
CLUSTER_LAUNCH = {
    "try_cancel_launch(*response, *full);": f"{TRY_CANCEL}.b128 [shared(response)], [shared(full)]",
    "try_cancel_launch_multicast(*response, *full);": (
        f"{TRY_CANCEL}.multicast::cluster::all.b128 [shared(response)], [shared(full)]"
    ),
    "*word = is_launch_canceled(LaunchResponse{{wide, 5}});": (
        f"{QUERY}.is_canceled.pred.b128 {{wide, 5}}; st.global.u32 [word], 1"
    ),
    "*word = first_canceled_cta(LaunchResponse{{wide, 5}}).y;": (
        f"{QUERY}.get_first_ctaid.v4.b32.b128 {{wide, 5}}; st.global.u32 [word], 1"
    ),
}

# For each header, the table contains the functions, the target of their PTX, and a predicate for targets that support
# the header.
HEADERS = {
    "scope.cuh": (SCOPE, "compute_90", lambda target: True),
    "store_async.cuh": (STORE_ASYNC, "compute_90", lambda target: True),
    "tensor_map_replace.cuh": (TENSOR_MAP_REPLACE, "compute_90a", lambda target: target[-1] in "af"),
    "multimem.cuh": (MULTIMEM, "compute_90", lambda target: True),
    "cluster_launch.cuh": (CLUSTER_LAUNCH, "compute_100a", lambda target: target[-1] in "af" and "90" not in target),
}
# The set contains functions that are not instructions.
OTHERS = {"set_derived_bytes"}
EVERY = "".join(
    f"#include <cuda_tma/{path.name}>\n" for path in sorted(FOLDER.glob("*.cuh")) if "macros" not in path.name
)


def of(header: str) -> dict[str, str]:
    """Return the parameters of the kernel that need only a given header."""
    from_tma = {"Barrier*": "store_async.cuh cluster_launch.cuh", "TensorMap*": "tensor_map_replace.cuh"}
    needs = from_tma | {"LaunchResponse*": "cluster_launch.cuh"}
    return {name: kind for name, kind in PARAMETERS.items() if header in needs.get(kind, header)}


@pytest.mark.parametrize("header", HEADERS)
def test_function_is_its_instruction(header):
    """Each function of an optional header is one instruction. The test compares the instruction's name and all operands
    in order."""
    table, target, _ = HEADERS[header]
    found = effects(header, of(header), table, target=target)
    # CUDA 13 writes .b where earlier versions write .u.
    assert {key: re.sub(r"(st\.global)\.b", r"\1.u", text) for key, text in found.items()} == table


def test_function_is_its_instruction_beyond_sm90():
    header = "tensor_map_replace.cuh"
    assert effects(header, of(header), PACKED, target="compute_100a") == PACKED


@pytest.mark.parametrize("header", HEADERS)
def test_nothing_is_left_out(header):
    table, *_ = HEADERS[header]
    assert defined_in(header) - OTHERS <= words(list(table))


@pytest.mark.parametrize("target", TARGETS)
def test_everything_compiles(target):
    """All headers of the package compile in one translation unit, with each function that the target has."""
    there = [statement for table, _, has in HEADERS.values() if has(target) for statement in table]
    source = source_of("tma.cuh", PARAMETERS, there).replace("#include <cuda_tma/tma.cuh>\n", EVERY)
    assert cubin(source, target).startswith(b"\x7fELF")


def test_nvcc(tmp_path):
    """Both passes of nvcc accept the functions of the optional headers."""
    there = [statement for table, _, has in HEADERS.values() if has("sm_90a") for statement in table]
    source = source_of("tma.cuh", PARAMETERS, there).replace("#include <cuda_tma/tma.cuh>\n", EVERY)
    done = nvcc(source, "sm_90a", tmp_path)
    assert done.returncode == 0, done.stderr


def test_derived_bytes_are_the_drivers():
    """The device header computes words 16 and 18 of a tensor map at compile time, and does not change the other
    words."""
    check = """
__device__ constexpr bool agrees() {
    TensorMap map{};
    for (auto& words : map.opaque) words = 0x7777777788888888;
    set_derived_bytes(map, 5, 6);
    for (int i = 0; i < 16; ++i)
        if (map.opaque[i] != (0x7777777700000000 | (i == 8 ? 5 : i == 9 ? 6 : 0x88888888))) return false;
    return true;
}
static_assert(agrees());"""
    assert [field.pieces[0].word for field in (TRANSFER_BYTES, SWIZZLE_REPEAT_BYTES)] == [2 * 8, 2 * 9]
    cubin(f"#include <cuda_tma/tensor_map_replace.cuh>\nusing namespace cuda_tma;{check}", "sm_90a")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("store_release((char*)tile, 'a');", "a flag is an unsigned or an unsigned long long"),
        ("load_acquire((int*)tile);", "a flag is an unsigned or an unsigned long long"),
        ("store_async((short*)tile, rank, short(1), *full);", "store_async: 4, 8 or 16 bytes"),
        ("reduce_async<Reduction::add>((float*)tile, rank, 1.0f, *full);", "no such reduction: add has unsigned, int"),
        ("reduce_async<Reduction::bit_or>((int*)tile, rank, 1, *full);", "no such reduction: add has unsigned, int"),
        ("replace_global_dim<5>(*map, 1);", "a tensor map has the dimensions 0 to 4, innermost first"),
        ("replace_box_dim<-1>(*map, 1);", "a tensor map has the dimensions 0 to 4, innermost first"),
        ("replace_element_stride<5>(*map, 1);", "a tensor map has the dimensions 0 to 4, innermost first"),
        ("replace_global_stride<4>(*map, 16);", "strides 0 to 3 are those of dimensions 1 to 4: dimension 0 has none"),
        ("replace_data_type<16>(*map);", "a data type is a value of CUtensorMapDataType, 0 to 15"),
        ("replace_interleave<3>(*map);", "an interleave is a value of CUtensorMapInterleave, 0 to 2"),
        ("replace_swizzle<7>(*map);", "a swizzle is a value of CUtensorMapSwizzle, 0 to 6"),
        ("replace_oob_fill<2>(*map);", "a fill is a value of CUtensorMapFloatOOBfill, 0 or 1"),
        ("replace_rank(*full, 1);", "a tensor map is 128 bytes"),
        ("copy_tensor_map_release<Scope::cta>(there, *map);", "Scope::gpu or Scope::sys"),
    ],
)
def test_misuse_is_named(statement, message):
    source = source_of("tma.cuh", PARAMETERS, [statement]).replace("#include <cuda_tma/tma.cuh>\n", EVERY)
    with pytest.raises(AssertionError, match=message):
        cubin(source, "sm_90a")


def test_reductions_of_other_ctas_are_all_there_are():
    """ptxas accepts exactly the operations and types in the tables of store_async.cuh and of send_reduce_bulk()."""
    bulk = "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{}.{} [%0], [%0], 16, [%0];"
    single = RED_ASYNC + ".{}.{} [%0], {}, [%0];"
    operations = [op.removeprefix("bit_") for op in REDUCTIONS]
    kinds = ("u32", "s32", "u64", "s64", "b32", "b64", "f32", "f16", "bf16")

    def taken(instruction: str) -> set[tuple[str, str]]:
        pairs = [(op, kind) for op in operations for kind in kinds]
        texts = [instruction.format(op, kind, "%1" if "64" in kind else "%0") for op, kind in pairs]
        body = "".join(f'asm("{text}" ::"r"(a), "l"(b));\n' for text in texts)
        source = f'extern "C" __global__ void kernel(unsigned a, unsigned long long b) {{ {body} }}'
        with pytest.raises(AssertionError, match="Ptx assembly aborted due to errors") as refused:
            cubin(source, "sm_90a")
        numbers = sorted({int(n) for n in re.findall(r"line (\d+); error", str(refused.value))})
        lines = ptx(source).splitlines()
        first = next(i for i, line in enumerate(lines, 1) if texts[0].split(" ")[0] in line)
        gone = {re.search(r"\.([a-z]+)\.(\w+) \[", lines[n - 1]).groups() for n in numbers if n >= first}
        return set(pairs) - gone

    table = {(op.removeprefix("bit_"), kind) for op, kinds in REDUCTIONS.items() for kind in kinds.split()}
    assert taken(single) == table
    assert taken(bulk) == table - {("add", "s64")}
