"""Tests of data types: their dtypes, their sizes, and the NumPy dtypes that represent them."""

import sys
import types

import ml_dtypes
import numpy as np
import pytest

from cuda_tma._data_type import (
    DLPACK_DTYPES,
    DLPACK_NAMES,
    ELEMENTS,
    Element,
    _ml_dtype,
    data_type_of,
    dtype_name,
    element_bits,
    is_floating,
    is_packed,
    numpy_dtype,
    parse_data_type,
)
from cuda_tma._enum_members import member_of
from cuda_tma._errors import TensorMapError
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle

FLOATING = ["FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ"]
BITS = {
    4: ["PACKED_16U4_ALIGN8B", "PACKED_16U4_ALIGN16B"],
    6: ["PACKED_16U6_ALIGN16B"],
    8: ["UINT8"],
    16: ["UINT16", "FLOAT16", "BFLOAT16"],
    32: ["UINT32", "INT32", "FLOAT32", "FLOAT32_FTZ", "TFLOAT32", "TFLOAT32_FTZ"],
    64: ["UINT64", "INT64", "FLOAT64"],
}
INFERRED = {
    "UINT8": ["bool", "uint8", "int8", *(name for name in DLPACK_DTYPES if name.startswith("float8"))],
    "UINT16": ["uint16", "int16"],
    "UINT64": ["uint64", "complex64"],
} | {name: [name.lower()] for name in ("UINT32", "INT32", "INT64", "FLOAT16", "BFLOAT16", "FLOAT32", "FLOAT64")}


def test_the_facts_of_each_data_type():
    assert {t.name: element_bits(t) for t in T} == {name: bits for bits, names in BITS.items() for name in names}
    assert [t.name for t in T if is_floating(t)] == FLOATING
    assert [t for t in T if is_packed(t)] == [T(13), T(14), T(15)]


@pytest.mark.parametrize(
    ("name", "smem_bits", "chunk_elements", "align_bytes", "interleaves", "stores"),
    [
        ("UINT8", 8, 16, 16, True, True),
        ("FLOAT64", 64, 2, 16, True, True),
        ("16U4_ALIGN8B", 4, 32, 16, True, True),
        ("16U4_ALIGN16B", 8, 128, 32, True, False),
        ("16U6_ALIGN16B", 8, 128, 32, False, True),
    ],
)
def test_fields_of_a_data_types_card(name, smem_bits, chunk_elements, align_bytes, interleaves, stores):
    element = ELEMENTS[T.parse(name, "data_type")]
    assert (element.smem_bits, element.chunk_elements) == (smem_bits, chunk_elements)
    assert [element.align_bytes(interleave) for interleave in (0, 1, 2)] == [align_bytes, align_bytes, 32]
    assert (element.can_interleave, element.can_store) == (interleaves, stores)


def test_every_data_type_has_a_card_and_a_code_of_its_own():
    assert [*ELEMENTS] == [*T]
    assert len({element.code for element in ELEMENTS.values()}) == len(T)
    # The 64 elements of 6 bits have 48 bytes.
    assert Element(6, code=14).chunk_elements == 64


def test_the_data_type_that_follows_from_a_dtype():
    wanted = {dtype: name for name, dtypes in INFERRED.items() for dtype in dtypes}
    assert {dtype: data_type_of(dtype).name for dtype in wanted} == wanted
    assert {*wanted} == {*DLPACK_DTYPES} - {"complex128", "float4_e2m1fn_x2"}


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("complex128", {}, "the elements are complex128, .* 1, 2, 4 or 8 bytes: pass data_type= to choose a type"),
        ("qint8", {"argument": "dtype"}, "the elements are qint8, .* pass dtype= to choose"),
        ("float4_e2m1fn_x2", {}, "in three ways; pass data_type= to choose one: .*ALIGN16B.* box_dim and coordinates"),
    ],
)
def test_dtypes_without_a_data_type(name, argument, message):
    with pytest.raises(TensorMapError, match=message):
        data_type_of(name, **argument)


def test_dlpacks_names_round_trip():
    assert len(DLPACK_DTYPES) == len(DLPACK_NAMES)
    assert all(DLPACK_NAMES[DLPACK_DTYPES[name]] == name for name in DLPACK_DTYPES)


@pytest.mark.parametrize("name", [name for name in DLPACK_DTYPES if name != "float4_e2m1fn_x2"])
def test_every_dtype_by_its_name_and_by_its_type(name, monkeypatch):
    code, bits, lanes = DLPACK_DTYPES[name]
    dtype = numpy_dtype(name)
    assert (dtype.name, dtype.itemsize * 8, lanes) == (name, bits, 1)
    assert (
        dtype_name(dtype) == dtype_name(dtype.type) == dtype_name(name.upper()) == dtype_name(f"torch.{name}") == name
    )
    if hasattr(ml_dtypes, name):
        assert dtype == np.dtype(getattr(ml_dtypes, name))
        assert _ml_dtype(name) == dtype
        # The value None simulates a missing ml_dtypes package.
        monkeypatch.setitem(sys.modules, "ml_dtypes", None)
        assert _ml_dtype(name) == np.dtype(f"u{bits // 8}")
    else:
        assert code in (0, 1, 2, 5, 6)


def test_a_name_unknown_to_numpy_is_looked_up_in_ml_dtypes(monkeypatch):
    """NumPy has names such as bfloat16 only after an import of ml_dtypes, which the package imports only when it needs
    one of these names."""

    def dtype(value):
        if value == "bfloat16":
            raise TypeError(f"data type {value!r} not understood")
        return np.dtype(value)

    monkeypatch.setattr("cuda_tma._data_type.np", types.SimpleNamespace(dtype=dtype, uint8=np.uint8))
    assert numpy_dtype("bfloat16") == np.dtype(ml_dtypes.bfloat16) and numpy_dtype("float16") == np.dtype("f2")


def test_two_elements_per_byte_are_shown_as_bytes():
    assert numpy_dtype("float4_e2m1fn_x2") == np.dtype("uint8")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(np.int64(7), T.FLOAT32), (np.uint8(0), T.UINT8), (True, None), (np.bool_(True), None), (T.INT32, T.INT32),
     ("tfloat32", T.TFLOAT32), ("UINT32", T.UINT32), ("uint32", T.UINT32), (16, None), (np.int8(-1), None),
     (TensorMapSwizzle.SWIZZLE_32B, None), (np.float32(3), None), ([], None), ("f4,f4", None), (7.0, None)],
)  # fmt: skip
def test_data_types_by_number_and_name(value, wanted):
    if wanted is not None:
        assert parse_data_type(value) is wanted
    else:
        with pytest.raises(
            (TensorMapError, TypeError, ValueError), match="data_type=|data_type takes|the elements are"
        ):
            parse_data_type(value)


def test_a_name_of_both_kinds_is_offered_once():
    with pytest.raises(TensorMapError) as error:
        parse_data_type("float7", "dtype")
    choices = str(error.value).partition("choose one of ")[2].split(", ")
    assert str(error.value).startswith(
        "dtype='float7' is neither a dtype nor a TensorMapDataType; choose one of int8, "
    )
    assert len({choice.lower() for choice in choices}) == len(choices) == len(DLPACK_DTYPES) + 6
    assert {"float32", "TFLOAT32", "16U6_ALIGN16B"} <= {*choices}


def test_byte_orders():
    for swapped in (">f4", np.dtype(">i2"), np.dtype("u8").newbyteorder()):
        with pytest.raises(TensorMapError, match=r"data_type=.* is not in native byte order, which TMA needs"):
            parse_data_type(swapped)
    assert parse_data_type(np.dtype(">u1")) is T.UINT8


def test_members_of_parameters():
    assert member_of("swizzle", 3) is TensorMapSwizzle.SWIZZLE_128B
    assert member_of("swizzle", 7) is member_of("swizzle", -1) is member_of("box_dim", 3) is None
    assert {name for name in ("interleave", "l2_promotion", "oob_fill", "mode", "data_type") if member_of(name, 1)} == {
        "interleave", "l2_promotion", "oob_fill", "mode", "data_type",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("bf16", T.BFLOAT16), ("BF16", T.BFLOAT16), ("fp16", T.FLOAT16), ("fp32", T.FLOAT32), ("fp64", T.FLOAT64),
        ("tf32", T.TFLOAT32), ("e4m3", T.UINT8), ("e5m2", T.UINT8), ("f4", T.FLOAT32), ("u8", T.UINT64),
    ],
)  # fmt: skip
def test_short_names_are_accepted_unless_numpy_has_them(name, wanted):
    assert parse_data_type(name) is wanted


def test_each_name_of_dlpack_has_its_own_type():
    """The codes, bits and lanes are from DLDataTypeCode in dlpack.h of DLPack 1.1."""
    codes = {11: "float8_e4m3fnuz", 12: "float8_e5m2", 13: "float8_e5m2fnuz", 10: "float8_e4m3fn", 7: "float8_e3m4"}
    assert {code: DLPACK_NAMES[code, 8, 1] for code in codes} == codes
    assert len(DLPACK_DTYPES) == len(DLPACK_NAMES)
