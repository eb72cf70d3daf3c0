"""Tests of the comparison of two layouts. The tests compare the layouts with the simulator's registers."""

from __future__ import annotations

import json
import sys
import time
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from cuda_tma import TensorSpec, layouts, params_of
from cuda_tma._command import cli
from cuda_tma._errors import TensorMapError
from cuda_tma.simulate._matrix.fragments import rows_of_8, rows_of_16, rows_to_sums, sums_to_rows, unpacked
from cuda_tma.simulate._matrix.moves import MatrixMove
from cuda_tma.smem import smem_offset

# The name refers to the layout of an accumulator of wgmma.
C = "wgmma.d:f32"


def compared(written, read):
    return layouts.compare(written, read)


# ---- tables by the simulator's instructions, whose results equal an H200's ----


def numbered(registers, lanes, bits):
    """Return two sets of registers. The elements contain the number of their thread in the first set, and the index of
    their value in the second set."""
    each = 32 // bits
    values = np.arange(registers * each).reshape(registers, 1, each)
    threads = np.arange(lanes).reshape(1, lanes, 1)
    shape, dtype = (registers, lanes, each), f"u{bits // 8}"
    made = (np.ascontiguousarray(np.broadcast_to(found, shape).astype(dtype)) for found in (threads, values))
    return [each.view(np.uint32)[..., 0] for each in made]


def stacked(read, registers, lanes, bits):
    """Return the thread and the value index of each element after an instruction."""
    found = [read(of) for of in numbered(registers, lanes, bits)]
    return np.stack([each.view(f"u{bits // 8}").astype(np.int64) for each in found], axis=-1)


@pytest.mark.parametrize(("type_", "bits"), [("e4m3", 8), ("u8", 8), ("bf16", 16), ("f16", 16), ("tf32", 32)])
def test_operands_are_in_the_places_of_products(type_, bits):
    for name, lanes in (("wgmma.a", 128), ("mma.a", 32)):
        whole = layouts.layout(f"{name}:{type_}:{lanes // 2}x{256 // bits}")
        assert np.array_equal(whole.places, stacked(rows_of_16, 4, lanes, bits))
    half = layouts.layout(f"mma.a:{type_}:16x{128 // bits}")
    assert np.array_equal(half.places, stacked(rows_of_16, 2, 32, bits))
    for registers in (1, 2):
        b = layouts.layout(f"mma.b:{type_}:8x{registers * 128 // bits}")
        assert np.array_equal(b.places, stacked(rows_of_8, registers, 32, bits))


@pytest.mark.parametrize("columns", [8, 32, 256])
def test_accumulators_are_in_the_places_of_products(columns):
    threads, values = np.broadcast_arrays(np.arange(128), np.arange(columns // 2)[:, None])
    expected = np.stack([sums_to_rows(threads), sums_to_rows(values)], axis=-1)
    assert np.array_equal(layouts.layout(f"{C}:64x{columns}").places, expected)
    assert np.array_equal(layouts.layout(f"wgmma.c:f16:64x{columns}").places, expected)
    halves = [unpacked(of) for of in numbered(columns // 4, 128, 16)]
    assert np.array_equal(np.stack([*map(sums_to_rows, halves)], axis=-1), expected)


@pytest.mark.parametrize("turned", [False, True])
def test_matrices_have_the_places_of_ldmatrix_and_stmatrix(turned):
    def tile(registers):
        rows = MatrixMove(4, turned).to_rows(registers.reshape(4, 1, 32)).view(np.uint16).reshape(2, 2, 8, 8)
        # The tile has two matrices in each direction, and the stacked matrices have consecutive registers.
        return rows.transpose(1, 2, 0, 3).reshape(16, 16)

    suffix = ".trans" * turned
    expected = stacked(tile, 4, 32, 16)
    for name in ("ldmatrix", "stmatrix"):
        assert np.array_equal(layouts.layout(f"{name}.x4{suffix}:b16").places, expected)


def test_layouts_of_cute_are_the_same():
    pytest.importorskip("tensor_layouts")
    for atom, name in {
        "SM80_16x8x16_F32BF16BF16F32_TN.a": "mma.a:bf16",
        "SM80_16x8x16_F32BF16BF16F32_TN.b": "mma.b:bf16",
        "SM80_16x8x16_F32BF16BF16F32_TN.c": "mma.d:f32",
        "SM89_16x8x32_F32E4M3E4M3F32_TN.a": "mma.a:e4m3",
        "SM89_16x8x32_F32E4M3E4M3F32_TN.b": "mma.b:e4m3",
        "SM80_16x8x8_F32TF32TF32F32_TN.a": "mma.a:tf32",
        "SM90_64x32x16_F16F16F16_SS.c": C,
    }.items():
        assert compared(f"atom:{atom}", name).equal, atom
    assert not compared("cute:((4,8),(2,2)):((32,1),(8,16))@16x8", "mma.d").equal


@pytest.mark.parametrize("swizzle", ["NONE", "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B"])
def test_a_tile_has_the_place_of_its_load(swizzle):
    found = layouts.layout(f"tile:f32:8x8:{swizzle}")
    spec = TensorSpec((8, 8), "float32")
    params = params_of(spec, box_dim=(8, 8), swizzle=swizzle)
    assert [found.place(row, 5)[0] for row in range(8)] == [smem_offset(params, (5, row)) for row in range(8)]
    assert np.array_equal(layouts.tile(params).places, found.places)


# ---- elements of 4 and 6 bits, and scales ----


@pytest.mark.parametrize(("name", "rows"), [("mma.a", 16), ("mma.b", 8)])
def test_two_elements_of_4_bits_have_the_place_of_a_byte(name, rows):
    halves, whole = layouts.layout(f"{name}:e2m1:{rows}x64"), layouts.layout(f"{name}:b8:{rows}x32")
    assert np.array_equal(halves.places[..., 0], np.repeat(whole.places[..., 0], 2, axis=1))
    assert np.array_equal(halves.places[..., 1], np.repeat(2 * whole.places[..., 1], 2, axis=1) + np.arange(64) % 2)
    assert np.array_equal(layouts.layout(f"{name}:e3m2:{rows}x32").places, whole.places)


@pytest.mark.parametrize(
    ("type_", "data_type", "bits"),
    [("e2m1", "16U4_ALIGN8B", 4), ("u4_align16b", "16U4_ALIGN16B", 4), ("e2m3", "16U6_ALIGN16B", 6)],
)
def test_a_tile_of_packed_elements_has_the_places_of_its_load(type_, data_type, bits):
    found = layouts.layout(f"tile:{type_}:8x128:128B")
    spec = TensorSpec((8, 64 if bits == 4 else 96), "uint8")
    params = params_of(spec, box_dim=(8, 128), swizzle="128B", data_type=data_type)
    assert (found.bits, found.fields) == (bits, ("byte", "bit"))
    for row, column in ((0, 1), (1, 17), (5, 127)):
        assert found.place(row, column) == (smem_offset(params, (column, row)), column % 16 * bits % 8)


def test_scales_of_mma_are_in_a_lane_of_each_row():
    """PTX ISA: the thread-id of A selects two lanes of each quad, and the thread-id of B selects one lane."""
    places = layouts.layout("mma.scales:ue4m3:32x4").places
    assert np.array_equal(places[:16, 0, 0], np.arange(16) % 8 * 4 + np.arange(16) // 8)
    assert np.array_equal(places[16:, 0, 0], places[:16, 0, 0] + 2)
    assert np.array_equal(places[8:16, 3], np.stack([np.arange(8) * 4 + 1, np.full(8, 3)], axis=-1))


# ---- pairs with a known answer ----


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_a_converted_accumulator_is_a_16_bit_operand(type_):
    """In attention kernels, the accumulator S = Q K^T in registers becomes P, the operand A of the product P V."""
    found = compared(f"{C}:64x128", f"wgmma.a:{type_}")
    assert found.equal and found.exchange is None
    assert str(found).splitlines() == [
        f"wgmma.d:f32:64x128 and wgmma.a:{type_}:64x128 are equal: all 8,192 elements have the same thread and value",
        "so a thread's values pass on once they are converted from 32 to 16 bits, 2 in each register, in their order",
    ]


def test_an_accumulator_is_not_an_8_bit_operand():
    found = compared(C, "wgmma.a:e4m3")
    assert not found.equal and found.same.sum() == 256 and found.lost == 0
    assert found.found[0, 2].tolist() == [8, 0] and found.found[0, 4].tolist() == [0, 2]
    # In each group of four lanes, the first and the last lane have the right element in a quarter of their values.
    assert {thread: kept for thread, (kept, of) in found.threads().items() if of == 16} == {
        thread: (4, 0, 0, 4)[thread % 4] for thread in range(128)
    }
    words = str(found)
    assert "differ: 256 of 2,048 elements have the same thread and value" in words
    assert (
        "element (0, 2): written to thread 1, value 0, and read from thread 0, value 2, where element (8, 0) lies"
        in words
    )
    assert "1,536 elements must come from another thread of its quad of lanes" in words


def test_the_suggested_fix_works():
    """The fix that the report suggests converts the registers of an accumulator to the operand A."""
    found = compared(C, "wgmma.a:e4m3")
    sums = np.random.default_rng(0).integers(0, 255, (64, 32)).astype(np.uint8)
    # The array has the shape (16, 128), for 16 values of each thread.
    values = rows_to_sums(sums)
    as_they_are = values.reshape(4, 4, 128).swapaxes(1, 2)
    wrong = rows_of_16(np.ascontiguousarray(as_they_are).view(np.uint32)[..., 0])
    assert np.array_equal(wrong, sums[found.found[..., 0], found.found[..., 1]]) and (wrong != sums).any()
    ordered = values[[*found.exchange.values]].reshape(4, 4, 128).swapaxes(1, 2)
    right = rows_of_16(np.ascontiguousarray(ordered).view(np.uint32)[..., 0])
    assert found.exchange.values[:8] == (0, 1, 4, 5, 2, 3, 6, 7)
    assert np.array_equal(right, sums[:, found.exchange.columns])


def test_ldmatrix_gives_the_operands_of_mma():
    assert compared("ldmatrix.x4:b16", "mma.a:bf16").equal
    assert compared("ldmatrix.x4:b8", "mma.a:e4m3").equal
    assert compared("ldmatrix.x2:b16", "mma.a:f16").equal and compared("ldmatrix.x1:b16", "mma.b:f16").equal
    turned = compared("ldmatrix.x4.trans", "mma.a:bf16")
    assert turned.same.sum() == 32 and turned.exchange.within == 32 and turned.exchange.values is None
    assert "of its warp: by shuffles, or through shared memory" in str(turned)


def test_stmatrix_takes_the_sums_of_wgmma_in_pairs():
    found = compared("stmatrix.x4:b16:64x256", C)
    assert found.equal
    places = found.written.places
    assert (places[:, ::2, 1] % 2 == 0).all() and np.array_equal(places[:, 1::2, 1], places[:, ::2, 1] + 1)


def test_tiles_of_two_swizzles_differ():
    found = compared("tile:bf16:64B", "tile:bf16:128B")
    assert found.read.shape == (8, 32) and found.exchange is None
    # Rows of 64 bytes have pitches of 64 and 128 bytes in the two layouts. Only the first row is in the same place in
    # both layouts, and half of the read bytes are not written.
    assert found.same.sum() == 32 and found.same[0].all() and found.lost == 128
    assert found.read.place(1, 0) == (144,) and found.found[1, 0].tolist() == [2, 0]
    assert "128 elements are read where nothing was written: earlier content, perhaps NaN" in str(found)


def test_tensor_memory_is_distinguished():
    """In the test, a tcgen05 instruction of one shape writes a fragment, and an instruction of another shape reads the
    fragment."""
    found = compared("tcgen05.ld.32x32b:b32:128x32", "tcgen05.ld.16x256b")
    assert not found.equal and found.exchange.within == 32
    assert layouts.layout("tmem.d:f32:128x8").place(77, 5) == (77, 5)
    assert layouts.layout("tmem.d:f32:64x8").place(17, 5) == (33, 5)
    assert "not verified on hardware" in found.read.source
    # The layout of the first 16 rows equals the layout of mma's accumulators.
    sixteen = layouts.layout("tcgen05.ld.16x256b:b32:32x32").places[:16]
    assert np.array_equal(sixteen, layouts.layout("mma.d:f32:16x32").places)


def test_elements_in_two_spaces_cannot_be_equal():
    found = compared("tile:bf16:8x8", "ldmatrix.x1")
    assert not found.is_comparable and not found.equal
    assert str(found) == (
        "tile:bf16:8x8:NONE and ldmatrix.x1:b16:8x8 are in different spaces, shared memory and registers; "
        "compare two layouts of one space\n"
        "element (0, 0): byte 0; thread 0, value 0"
    )


# ---- integers of several elements ----


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("wgmma.x", "'wgmma.x' is not the name of a layout; use one of wgmma.d, wgmma.a"),
        ("wgmma.a:f64", "wgmma.a:f64: f64 is not one of f32, tf32"),
        ("wgmma.d:e4m3", "wgmma.d:e4m3: wgmma.d has elements of 32 or 16 bits, not 8"),
        ("wgmma.a:e4m3:64x16", "64 x 16, but wgmma.a of e4m3 has pieces of 64 x 32 elements"),
        ("mma.b:f16:16x16", "16 x 16, but mma.b of f16 has pieces of 8 x 8 elements"),
        ("mma.a:f16:16x16:128B", "only for tiles in shared memory; leave it out"),
        ("tile:bf16:8x64:64B", "has rows of 128 bytes, but with this swizzle a row has at most 64; use 32 columns"),
        ("cute:(4,8):(1,4)", "has no shape; append the shape to the layout"),
        ("cute:(4,8):(1,4)@3x3", "reaches 32 elements, up to number 31, but the matrix of 3 x 3 has 9"),
        ("cute:((4,8):(1,4)@4x8", "its parentheses do not match"),
        ("atom:SM80_NONE.a", "is not an operand of an atom"),
        ("cute:((2,2),1):((1,3),0)@2x2", "reaches 4 elements, up to number 4"),
    ],
)
def test_missing_features_are_refused_with_a_reason(name, words):
    if name.startswith(("atom", "cute")):
        pytest.importorskip("tensor_layouts")
    with pytest.raises(ValueError, match="^") as refused:
        layouts.layout(name)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cute:(999,9999):(1,1)@16x8", "has more than 1,048,576 elements"),
        ("cute:(9999999,99999999):(1,1)@16x8", "has more than 1,048,576 elements"),
        ("cute:(4,8):(1,4)@99999x99999", "has more than 1,048,576 elements"),
        (f"cute:((1024,{'1,' * 2000}),1024):((1,{'1,' * 2000}),1024)@16x8", "elements, the limit of a comparison"),
        ("cute:(4,8):(1,4)@8x8", "contains 32 values, but the matrix of 8 x 8 has 64"),
        ("cute:(4,8):(1,4)@8x" + "9" * 5000, "append the shape"),
        ("wgmma.d:f32:64x99999992", "has more than 2,097,152 elements"),
        ("tile:f32:256x99999999", "has more than 2,097,152 elements"),
        ("tile:f32:256x" + "9" * 5000, "is not the name of a layout"),
    ],
)
def test_sizes_are_compared_before_any_element(name, words):
    if name.startswith(("atom", "cute")):
        pytest.importorskip("tensor_layouts")
    begun = time.process_time()
    with pytest.raises(ValueError, match="^") as refused:
        layouts.layout(name)
    assert words in str(refused.value)
    assert time.process_time() - begun < 2


def test_refusals_of_values(monkeypatch):
    with pytest.raises(ValueError, match="is 64 x 8, and wgmma.d:f32:64x16 64 x 16: use one shape for both"):
        compared(f"{C}:64x8", f"{C}:64x16")
    packed = params_of(TensorSpec((4, 4, 8), "float32"), box_dim=(2, 4, 8))
    with pytest.raises(TensorMapError, match="whose box has one extent above 1 besides the innermost"):
        layouts.tile(packed)
    monkeypatch.setitem(sys.modules, "tensor_layouts", None)
    with pytest.raises(ImportError, match=r"need tensor-layouts \(.*\): pip install tensor-layouts"):
        layouts.layout("cute:(4,8):(1,4)@4x8")


def test_names_are_compared_as_layouts_are():
    by_value = compared(C, "wgmma.a:e4m3")
    for names in ((C, "wgmma.a:e4m3"), (by_value.written, "wgmma.a:e4m3"), (C, by_value.read)):
        assert str(layouts.compare(*names)) == str(by_value)
    with pytest.raises(TypeError, match=r"read is 3; pass a layout or its name, such as 'wgmma.d:f32:64x32'"):
        layouts.compare(C, 3)


# ---- pictures and the command ----


def test_the_picture_marks_differences_and_names_the_elements():
    found = compared(C, "wgmma.a:e4m3")
    root = ElementTree.fromstring(found.svg())
    words = [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]
    rims = [each for each in root.iter() if "differs" in each.get("class", "")]
    assert len(rims) == 2 * int((~found.same[:16, :16]).sum()) and "T0 v2" in words and "8,0" in words
    assert words[0] == str(found).splitlines()[0]
    equal = compared("ldmatrix.x4", "mma.a").svg()
    assert "differs" not in equal.split("</style>")[1]


def test_the_command(capsys, tmp_path):
    def run(*arguments):
        return cli.main(["layouts", *map(str, arguments)]), *capsys.readouterr()

    picture = tmp_path / "fp8.svg"
    status, out, _ = run(C, "wgmma.a:e4m3", "--output", picture)
    assert status == 1 and out.startswith("wgmma.d:f32:64x32 and wgmma.a:e4m3:64x32 differ") and picture.exists()
    status, out, _ = run(C, "wgmma.a:bf16:64x16", "--json")
    told = json.loads(out)
    assert (status, told["equal"], len(told["elements"])) == (0, True, 1024)
    assert told["elements"][17] == {"row": 1, "column": 1, "written": [4, 1], "read": [4, 1], "found": [1, 1]}
    assert run()[0] == 0 and "ldmatrix.x4" in json.loads(run("--json")[1])
    assert run(C)[0] == run(C, "no.such")[0] == run(C, "wgmma.a", "--output", "x.png")[0] == 2
