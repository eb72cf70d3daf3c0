"""Tests of layouts in tensor memory, in CuTe's notation."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from cuda_tma import layouts
from cuda_tma._command import cli
from cuda_tma.layouts._notation import parse

SUMS = "tmem.d:f32:((128,128),1,1):((65536,1),0,0)"
STORE = "tmem:bf16x2:(128,64):(65536,1)+32"
FACTOR = "tmem.a:bf16:((128,16),1,4):((64,1),0,16)"


def places(name):
    return layouts.layout(name).places


# ---- the notation ----


@pytest.mark.parametrize(
    ("text", "shape", "stride", "base"),
    [
        ("(128,64):(65536,1)", (128, 64), (65536, 1), 0),
        ("((128,16),1,4):((64,1),0,16)+32", ((128, 16), 1, 4), ((64, 1), 0, 16), 32),
        ("(((32,4),?{div=16}),1):(((65536,2097152),1),0)?=64", (((32, 4), 64), 1), (((65536, 2097152), 1), 0), 0),
        ("( 128 , ? ) : ( ? , 1 )+8?=32,65536", (128, 32), (65536, 1), 8),
    ],
)
def test_notation(text, shape, stride, base):
    found = parse(text)
    assert (found.shape, found.stride, found.base) == (shape, stride, base)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(128,?):(65536,1)", "1 unknown values, but 0 were given; append one value for each ?"),
        ("(128,?):(65536,1)?=64,2", "1 unknown values, but 2 were given"),
        ("(128,?{div=16}):(65536,1)?=40", "the value 40 for ?{div=16}, which is not a multiple of 16"),
        ("(128,64):(65536,1,2)", "nested differently"),
        ("(128,(64)):(65536,1)", "nested differently"),
        ("(128,64:(65536,1)", "parentheses or commas that do not match"),
        ("(128,64)", "pass shape and strides"),
        ("(128,x):(65536,1)", "is not a number"),
        ("(" * 400 + "1" + ")" * 400 + ":1", "is not a layout"),
    ],
)
def test_texts_that_are_not_the_notation(text, message):
    with pytest.raises(ValueError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_printed_tensors_are_read():
    printed = "tmem.d:tensor<ptr<f32, tmem, align<16>> o ((128,128),1,1):((65536,1),0,0)>"
    in_mlir = 'tmem.d:!cute.memref<f32, tmem, align<1024>, "((128,128),1,1):((65536,1),0,0)">'
    for name in (printed, in_mlir):
        assert np.array_equal(places(name), places(SUMS))
    assert np.array_equal(places(printed + "+32"), places(SUMS) + np.array([0, 32]))


# ---- places ----


def test_an_accumulator_of_cute_is_where_the_instruction_leaves_its_sums():
    assert np.array_equal(places(SUMS), places("tmem.d:f32:128x128"))


def test_two_elements_of_16_bits_are_in_each_column():
    rows, columns = np.indices((128, 128))
    expected = np.stack([rows, 32 + columns // 2, columns % 2], axis=-1)
    assert np.array_equal(places(STORE), expected)
    assert np.array_equal(places("tmem:bf16:(128,128):(131072,1)+32"), expected)


def test_elements_of_4_and_6_bits():
    """A column has eight packed elements of e2m1, or four bytes with an element of e3m2 each."""
    rows, columns = np.indices((128, 64))
    printed = "tmem.a:tensor<ptr<f4E2M1FN, tmem, align<16>> o ((128,64),1,1):((64,1),0,0)>"
    for name, each in (
        ("tmem.a:e2m1:((128,64),1,1):((64,1),0,0)", 8),
        (printed, 8),
        ("tmem:e3m2:(128,64):(262144,1)", 4),
    ):
        assert np.array_equal(places(name), np.stack([rows, columns // each, columns % each], axis=-1))
    assert layouts.layout(STORE).said(5, 3) == "lane 5, column 33, half 1"
    assert layouts.layout("tmem:e4m3x4:(128,4):(65536,1)").said(5, 7) == "lane 5, column 1, quarter 3"


def test_row_m_of_an_a_operand_is_in_lane_m():
    rows, columns = np.indices((128, 64))
    expected = np.stack([rows, columns // 2, columns % 2], axis=-1)
    for stride in (64, 131072, 0):
        assert np.array_equal(places(f"tmem.a:bf16:((128,16),1,4):(({stride},1),0,16)"), expected)


def test_scale_factors():
    """The layout of scale factors is Sm1xxBlockScaledConfig of CUTLASS, ((32,4),4):((16,4),1) in bytes."""
    found = places("tmem.scales:ue8m0:128x4")
    rows, columns = np.indices((128, 4))
    byte = rows % 32 * 16 + rows // 32 * 4 + columns
    assert np.array_equal(found, np.stack([byte // 16, byte % 16 // 4, byte % 4], axis=-1))
    assert np.array_equal(places("scales:ue8m0:128x4")[..., 0], byte)


def test_scale_factors_of_256_rows():
    """For 256 rows, each group of 4 scales has 8 columns of tensor memory."""
    in_tensor_memory, in_tiles = places("tmem.scales:ue8m0:256x8"), places("scales:ue4m3:256x8")
    assert in_tensor_memory[200, 5].tolist() == [8, 8 + 6, 1]
    assert in_tiles[200, 5].tolist() == [3 * 512 + 8 * 16 + 2 * 4 + 1]


@pytest.mark.parametrize(
    ("shape", "atom"),
    [("16x64b", "((2,2,8),1):((8,16,1),0)"), ("16x32bx2", "((16,2),1):((1,16),0)")],
)
def test_shapes_of_loads_as_cutlass_has_them(shape, atom):
    """The layouts of the load shapes equal Copy_Traits of SM100_TMEM_LOAD_16dp64b1x and 16dp32b1x in CUTLASS."""
    pytest.importorskip("tensor_layouts")
    of_16_rows = layouts.layout(f"cute:{atom}@16x2")
    assert np.array_equal(places(f"tcgen05.ld.{shape}:b32:32x2")[:16], of_16_rows.places)
    assert np.array_equal(places(f"tcgen05.st.{shape}:b32:32x2"), places(f"tcgen05.ld.{shape}:b32:32x2"))


@pytest.mark.parametrize("shape", ["16x32bx2", "16x64b", "16x128b", "16x256b", "32x32b"])
def test_each_element_of_a_load_has_a_place_of_its_own(shape):
    found = places(f"tcgen05.ld.{shape}:b32:32x16").reshape(-1, 2)
    assert len(np.unique(found, axis=0)) == 32 * 16
    assert found[:, 0].max() == 31 and found[:, 1].max() == 15


# ---- a store that another instruction reads ----


def test_the_columns_that_are_written_are_not_those_that_are_read():
    found = layouts.compare(STORE, FACTOR, loaded=SUMS)
    assert not found.equal and found.same.shape == (128, 64)
    assert found.lost == 128 * 64
    words = str(found)
    assert "columns 0 to 31 are read and not written" in words
    assert "columns 32 to 95 are written and not read" in words
    assert "it loads 128 registers (tcgen05.ld.32x32b.x128), and stores 64 registers" in words
    assert "row m in lane m, for any printed stride of m (PTX ISA 9.0" in words
    assert "here 64 is printed" in words
    assert f"let the read begin at column 32 (32 columns further, 64 elements of its pointer): {FACTOR}+32" in words
    assert (
        "the rows have 128 loaded, 128 written and 64 read elements; one length is right, for a read that begins at "
        "column 32: read tmem.a:bf16:((128,16),1,8):((64,1),0,16)+32; or load 64 elements of each row and write "
        "tmem:bf16x2:(128,32):(65536,1)+32" in words
    )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (STORE, f"{FACTOR}+32"),
        ("tmem:bf16x2:(128,64):(65536,1)", FACTOR),
        (STORE, "tmem.a:bf16:((128,16),1,8):((64,1),0,16)+32"),
        ("tmem:bf16x2:(128,32):(65536,1)+32", f"{FACTOR}+32"),
    ],
)
def test_the_corrections_that_are_named_make_the_one_into_the_other(written, read):
    assert layouts.compare(written, read, loaded=SUMS).equal


@pytest.mark.parametrize("read", [f"{FACTOR}+32", "tmem.a:e4m3:((128,32),1,4):((64,1),0,32)+32"])
def test_a_store_whose_type_has_32_bits_is_one_of_packed_elements(read):
    """CuTe prints the target of a store with the type of its registers, in which threads have packed elements."""
    plain, packed = "tmem:f32:(128,32):(65536,1)+32", "tmem:bf16x2:(128,32):(65536,1)+32"
    packed = packed.replace("bf16x2", "e4m3x4") if "e4m3" in read else packed
    found = layouts.compare(plain, read)
    assert found.equal and found.written.name == packed
    assert f"{plain} has values of 32 bits, which are compared as {32 // found.read.bits}" in str(found)
    assert not layouts.compare(plain, read.removesuffix("+32")).equal
    assert layouts.compare(read, plain).equal


def test_the_remedies_for_lengths_end_in_equal_lengths():
    """Each suggested change of lengths removes the remark about different lengths, and leads to no other remark."""
    full = "tmem:bf16x2:(128,64):(65536,1)", "tmem.a:bf16:((128,16),1,8):((64,1),0,16)"
    half = "tmem:bf16x2:(128,32):(65536,1)", FACTOR
    words = str(layouts.compare(*half, loaded=SUMS))
    assert (
        f"128 loaded, 64 written and 64 read elements; one length is right: write {full[0]} and read {full[1]}" in words
    )
    assert "; or load 64 elements of each row" in words and "store as many" not in words
    for pair, loaded in ((full, SUMS), (half, "tmem.d:f32:(128,64):(65536,1)"), (half, None)):
        assert "the rows have" not in str(layouts.compare(*pair, loaded=loaded))
    assert f"one length is right: write {full[0]}" in str(layouts.compare(half[0], full[1], loaded=SUMS))
    assert f"one length is right: read {full[1]}; or write {half[0]}" in str(layouts.compare(full[0], FACTOR))


def test_elements_in_another_order_have_no_base():
    words = str(layouts.compare("tmem:bf16x2:(128,(2,16)):(65536,(16,1))", FACTOR))
    assert "no base makes the layouts equal" in words


def test_elements_of_two_widths_are_not_compared():
    words = str(layouts.compare(SUMS, FACTOR))
    assert "elements of 32 and 16 bits; compare two layouts of one element width" in words
    assert "A store that packs 2 elements into 32 bits is, for example, tmem:bf16x2:(128,64):(65536,1)" in words


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tmem:bf16:(128,64):(65536,1)", "reaches lane 63, column 32799"),
        ("tmem:bf16:(128,64):(65536,1)", "columns of 32 bits; use CuTe's stride of a lane, 131072"),
        ("tmem.d:f32:(128,600):(65536,1)", "lane 127, column 599, but tensor memory has 128 lanes and 512 columns"),
        ("tmem.d:f32:(128,600):(65536,1)", "columns of 32 bits; shorten the rows, or lower the base"),
        (f"{FACTOR}+500", "column 531, but tensor memory has 128 lanes and 512 columns of 32 bits; shorten the rows"),
        ("tmem:bf16x4:(128,64):(65536,1)", "4 of bf16 have 64 bits, but a column has 32"),
        ("tmem:int:(128,64):(65536,1)", "int is not one of f32"),
        ("tmem.a:bf16:((64,16),1,4):((64,1),0,16)", "has 64 rows, but an A operand in tensor memory has 128"),
        ("tmem:f32:(999999999,999999999):(1,1)", "more than"),
        ("tmem:f32:128:65536", "has one mode"),
        ("tmem:f32:(0,64):(65536,1)", "has no elements; pass extents of 1 or more"),
        *((name, f"'{name}' is not the name of a layout") for name in ("", "tmem", "tmem:f32", "tmem.a:bf16", "atom")),
    ],
)
def test_refusals(name, message):
    began = time.process_time()
    with pytest.raises(ValueError) as caught:
        layouts.layout(name)
    assert message in str(caught.value)
    assert time.process_time() - began < 0.5


def test_the_help_has_the_forms_of_tensor_memory(capsys):
    assert cli.main(["layouts", "--help"]) == 0
    printed = capsys.readouterr().out
    for form in ("tmem:f32:(128,64):(65536,1)+32", "tmem:bf16x2:", "tmem.d:f32:", FACTOR, "(128,?{div=16})", "?=64"):
        assert form in printed
    assert "exit status: 0 if the layouts are equal, 1 if they differ" in printed


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("tensor<ptr<f32, tmem, align<16>> o (128,64):(65536,1)>+32", "tmem:f32:(128,64):(65536,1)+32"),
        ('!cute.memref<f32, tmem, align<1024>, "(128,64):(65536,1)">', "tmem:f32:(128,64):(65536,1)"),
        ("tmem:BF16X2:(128,64):(65536,1)", "tmem:bf16x2:(128,64):(65536,1)"),
    ],
)
def test_a_printed_tensor_needs_no_role(text, name):
    assert layouts.layout(text).name == name


def test_elements_in_one_place_are_named():
    words = str(layouts.compare("tmem:f32:(128,4):(65536,0)", "tmem:f32:(128,4):(65536,1)"))
    assert "384 elements are written to the place of another element" in words
    assert "columns 1 to 3 are read and not written" in words
    assert "in column 0: element (0, 0)" in words
    assert "stores 1 register (tcgen05.st.32x32b.x1)" in words


@pytest.mark.parametrize("shape", ["(1,1)", "(1,96)", "(128,1)"])
def test_a_row_a_column_or_an_element_may_be_the_only_one(shape):
    name = f"tmem:f32:{shape}:(65536,1)"
    words = str(layouts.compare(name, name))
    assert "are equal" in words and "x96" not in words


@pytest.mark.parametrize(("pair", "loaded"), [((STORE, FACTOR), "wgmma.d:f32:64x32"), (("wgmma.d", "wgmma.a"), SUMS)])
def test_a_loaded_layout_of_another_space_is_refused(pair, loaded):
    with pytest.raises(ValueError, match="pass a loaded layout only if all three are in tensor memory"):
        layouts.compare(*pair, loaded=loaded)


def test_one_command_answers(capsys, tmp_path):
    path = tmp_path / "store.svg"
    assert cli.main(["layouts", "--loaded", SUMS, STORE, FACTOR, "--output", str(path)]) == 1
    printed = capsys.readouterr().out
    assert "element (0, 0): written to lane 0, column 32, half 0, and read from lane 0, column 0, half 0" in printed
    assert "L0 c32 h1" in path.read_text()
    assert cli.main(["layouts", STORE, f"{FACTOR}+32", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["equal"] and found["fields"]["read"] == ["lane", "column", "half"]
    assert found["elements"][65] == {
        "row": 1, "column": 1, "written": [1, 32, 1], "read": [1, 32, 1], "found": [1, 1],
    }  # fmt: skip


@pytest.mark.parametrize("name", ["16x32bx2", "16x64b", "16x128b", "16x256b", "32x32b"])
def test_a_load_of_64_rows_is_that_of_32_rows_twice(name):
    """For a tensor-memory load of 64 rows, a warp accesses 32 lanes, and the next warp accesses the next 32 lanes."""
    found = places(f"tcgen05.ld.{name}:b32:64x8")
    assert np.array_equal(found[32:, :, 0], found[:32, :, 0] + 32)
    assert np.array_equal(found[32:, :, 1], found[:32, :, 1]) and found[:32, :, 0].max() < 32


@pytest.mark.parametrize("name", ["ldmatrix.x4:f32", "wgmma.d:e4m3", "ldmatrix.x4.trans:e4m3"])
def test_elements_of_another_width_are_refused(name):
    with pytest.raises(ValueError, match="has elements of .* bits, not"):
        layouts.layout(name)
