"""Tests that params contain plain ints from any input, so that equal params have the same meaning to every function."""

import copy
import dataclasses
import pickle
from enum import IntEnum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuda_tma import TensorSpec, check, decode, emulate, encode, params_of
from cuda_tma import smem as smem
from cuda_tma._errors import TensorMapError
from cuda_tma.codec import diff
from cuda_tma.enums import TensorMapDataType
from cuda_tma.params import Im2colWideParams, TiledParams
from tests._given import LARGE, LARGE_SHOWN, refuses
from tests.support.descriptors import LEGAL, LEGAL_IM2COL

LEGAL_WIDE = Im2colWideParams(
    **{f.name: getattr(LEGAL_IM2COL, f.name) for f in dataclasses.fields(LEGAL_IM2COL) if "corner" not in f.name},
    pixel_box_lower_corner_width=-1,
    pixel_box_upper_corner_width=1,
)
ALL_MODES = [LEGAL, LEGAL_IM2COL, LEGAL_WIDE]
BYTES_64 = params_of(TensorSpec((64, 64), "bfloat16"), box_dim=(64, 64))


class Index:
    """A class of integers that is not a subclass of Python's int."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


KINDS = {
    "int8": np.int8,
    "uint8": np.uint8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "0-d array": lambda value: np.array(value, np.int32),
    "__index__": Index,
    "enum": lambda value: IntEnum("Number", {"N": value}).N,
    "bool": lambda value: bool(value) if value in (0, 1) else value,
}


def fields_of(params):
    return {f.name: getattr(params, f.name) for f in dataclasses.fields(params)}


def of_kind(params, kind):
    """Return the fields as numbers of a given type, if the type can represent the numbers."""

    def convert(value):
        if isinstance(value, tuple):
            return tuple(map(convert, value))
        try:
            converted = kind(value)
            return converted if converted.__index__() == value else value
        except OverflowError:
            return value

    return {name: convert(value) for name, value in fields_of(params).items()}


def types_of(params):
    values = [v for value in fields_of(params).values() for v in (value if isinstance(value, tuple) else (value,))]
    return {*map(type, values)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("params", ALL_MODES)
def test_integers_of_any_kind_become_ints(params, kind):
    given = of_kind(params, KINDS[kind])
    # At least one value has a type other than int and tuple, so the test covers conversions.
    assert {type(v) for v in given.values()} != {int, tuple}
    made = type(params)(**given)
    assert made == params and types_of(made) == {int} and repr(made) == repr(params)
    assert encode(made) == encode(params) and diff(made, params) == () and check(made) == check(params)


def test_one_foreign_number_in_one_field_is_found():
    for params in ALL_MODES:
        for name, value in fields_of(params).items():
            if name != "unexplained":
                foreign = tuple(map(np.int64, value)) if isinstance(value, tuple) else np.int64(value)
                made = dataclasses.replace(params, **{name: foreign})
                assert types_of(made) == {int} and made == params


@pytest.mark.parametrize("arrays", [True, False])
@pytest.mark.parametrize("params", ALL_MODES)
def test_foreign_numbers_in_all_arrays_or_in_all_other_fields_are_found(params, arrays):
    fields = {name: v for name, v in fields_of(params).items() if isinstance(v, tuple) is arrays and v != ()}
    foreign = {name: tuple(map(Index, value)) if arrays else Index(value) for name, value in fields.items()}
    made = dataclasses.replace(params, **foreign)
    assert types_of(made) == {int} and made == params


def test_defaults_are_the_drivers_none():
    arrays = {"global_dim": (64,), "global_strides": (), "element_strides": (1,)}
    tiled = TiledParams(data_type=0, global_address=0, box_dim=(64,), **arrays)
    assert tiled.rank == 1 and fields_of(tiled) == {
        "data_type": 0,
        "global_address": 0,
        **arrays,
        "interleave": 0,
        "swizzle": 0,
        "l2_promotion": 0,
        "oob_fill": 0,
        "allocation_class": 1,
        "unexplained": (),
        "box_dim": (64,),
    }
    assert LEGAL_WIDE.mode == 0


def test_a_field_that_a_subclass_adds_is_its_own():
    kind = dataclasses.make_dataclass(
        "Named", [("label", str, "none"), ("more", list, None)], bases=(TiledParams,), frozen=True
    )
    foreign = kind(**fields_of(LEGAL) | {"swizzle": np.int8(3)}, label="mine", more=[1.5])
    assert (foreign.label, foreign.more, type(foreign.swizzle)) == ("mine", [1.5], int)


def test_a_tuple_of_another_class_becomes_a_tuple():
    class Size(tuple):
        pass

    made = dataclasses.replace(LEGAL, global_dim=Size(LEGAL.global_dim))
    assert type(made.global_dim) is tuple and made == LEGAL


def test_a_foreign_number_changes_no_answer_about_plain_ones():
    """Params that compare equal share cached results."""
    foreign = dataclasses.replace(BYTES_64, box_dim=(np.uint8(64), np.uint8(64)))
    assert (smem.tx_bytes(foreign), smem.smem_bytes(foreign)) == (8192, 8192)
    assert type(smem.tx_bytes(foreign)) is type(smem.tx_bytes(BYTES_64)) is int
    assert (smem.tx_bytes(BYTES_64), smem.smem_bytes(BYTES_64)) == (8192, 8192)
    memory = np.arange(8192, dtype=np.uint16).astype(np.uint8)
    for params in (foreign, BYTES_64):
        assert np.array_equal(emulate.load(params, memory, (0, 0)).smem, memory)


NO_INTEGERS = [0.0, 64.0, 64.5, float("nan"), float("inf"), None, "64", b"64", [64], LARGE, 1j, np.float32(64)]
NO_TUPLES = [64, np.int64(32), None, "64", [64, 48, 40], {1: 2}, {1, 2}, range(3), iter((1, 2, 3)), LARGE, np.arange(3)]


@pytest.mark.parametrize("params", ALL_MODES)
def test_invalid_integer_is_refused_with_its_field(params):
    for name, value in fields_of(params).items():
        for wrong in NO_INTEGERS if name != "unexplained" else ():
            if isinstance(value, tuple):
                for i in range(len(value)):
                    values = (*value[:i], wrong, *value[i + 1 :])
                    refuses(rf"{name} is \(.*\); pass a tuple of integers$", replaced, params, name, values)
            else:
                refuses(f"{name} is .*; pass an integer$", replaced, params, name, wrong)


@pytest.mark.parametrize("wrong", NO_TUPLES)
def test_invalid_tuple_is_refused_with_its_field(wrong):
    for params in ALL_MODES:
        for name, value in fields_of(params).items():
            if isinstance(value, tuple) and name != "unexplained":
                refuses(f"{name} is .*; pass a tuple of integers$", replaced, params, name, wrong)


def replaced(params, name, value):
    return dataclasses.replace(params, **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("global_dim", [64, 48, 40], r"global_dim is \[64, 48, 40\]; pass a tuple of integers"),
        ("global_dim", LARGE, f"global_dim is {LARGE_SHOWN}; pass a tuple of integers"),
        ("box_dim", ("32", 16, 2), r"box_dim is \('32', 16, 2\); pass a tuple of integers"),
        ("global_address", None, "global_address is None; pass an integer"),
        ("swizzle", "128B", "swizzle is '128B'; pass an integer"),
        ("unexplained", 5, "unexplained is 5; pass pairs of a word's index, 0 to 31, and a mask of its 32 bits"),
        ("unexplained", (5,), r"unexplained is \(5,\); pass pairs"),
        ("unexplained", ((5, 6, 7),), r"unexplained is \(\(5, 6, 7\),\); pass pairs"),
        ("unexplained", ((5, 0.5),), r"unexplained is \(\(5, 0.5\),\); pass pairs"),
        ("unexplained", ((32, 1),), r"unexplained is \(\(32, 1\),\); pass pairs"),
        ("unexplained", ((-1, 1),), r"unexplained is \(\(-1, 1\),\); pass pairs"),
        ("unexplained", ((0, -1),), r"unexplained is \(\(0, -1\),\); pass pairs"),
        ("unexplained", ((0, 2**32),), r"unexplained is \(\(0, 4294967296\),\); pass pairs"),
        ("unexplained", None, "unexplained is None; pass pairs"),
    ],
)
def test_the_message(name, value, message):
    refuses(message, replaced, LEGAL, name, value)


def test_pairs_of_any_kind_are_pairs_of_ints():
    pairs = [[np.int64(31), np.uint32(2**32 - 1)], (np.int8(0), True)]
    made = dataclasses.replace(LEGAL, unexplained=pairs)
    assert made.unexplained == ((31, 2**32 - 1), (0, 1))
    assert {type(v) for pair in made.unexplained for v in pair} == {int}
    word_31 = replaced(LEGAL, "unexplained", pairs[:1])
    assert decode(encode(word_31)) == word_31 and encode(word_31)[124:] == b"\xff" * 4


WIDE = {"data_type": 7, "global_address": 0, "global_dim": (256, 256), "global_strides": (1024,)}


@pytest.mark.parametrize("kind", [np.int16, np.uint8, np.uint16, np.int32, np.int64])
@pytest.mark.parametrize("extent", [252, 256])
def test_narrow_integers_get_the_verdict_of_ints(kind, extent):
    try:
        narrow = kind(extent)
    except OverflowError:
        pytest.skip("does not hold the number")
    for box in ((extent, extent), (extent, 1), (1, extent)):
        plain = TiledParams(**WIDE, box_dim=box, element_strides=(1, 1))
        made = TiledParams(**WIDE, box_dim=tuple(narrow if n == extent else n for n in box), element_strides=(1, 1))
        assert check(made) == check(plain)
    (broken,) = check(TiledParams(**WIDE, box_dim=(narrow, narrow), element_strides=(1, 1)))
    assert broken.message.endswith(f"at most 233472 bytes in one load (it is {4 * extent**2}). Shrink the box.")


@given(st.integers(), st.lists(st.integers(), max_size=6).map(tuple))
def test_any_integers_are_kept_unchanged(number, numbers):
    made = dataclasses.replace(LEGAL, global_address=number, box_dim=numbers)
    assert (made.global_address, made.box_dim) == (number, numbers)


@pytest.mark.parametrize("params", [*ALL_MODES, dataclasses.replace(LEGAL, unexplained=((3, 4),))])
def test_params_are_copied_and_pickled(params):
    for again in (copy.copy(params), copy.deepcopy(params), pickle.loads(pickle.dumps(params))):
        assert again == params and type(again) is type(params)


@pytest.mark.parametrize("params", ALL_MODES)
def test_the_rules_of_a_subclass_are_those_of_its_mode(params):
    kind = dataclasses.make_dataclass("Named", [("label", str, "none")], bases=(type(params),), frozen=True)
    named = kind(**fields_of(params) | {"global_strides": (8, *params.global_strides[1:])}, label="mine")
    plain = dataclasses.replace(params, global_strides=named.global_strides)
    assert named.label == "mine" and named.rank == params.rank
    assert check(named, (10, 0), warnings=True) == check(plain, (10, 0), warnings=True) != ()
    assert encode(named) == encode(plain) and diff(named, plain) == ()
    assert smem.tx_bytes(named) == smem.tx_bytes(plain)


def test_enum_members_are_kept_as_their_values():
    made = dataclasses.replace(LEGAL, data_type=TensorMapDataType.FLOAT32)
    assert type(made.data_type) is int and made == LEGAL


@pytest.mark.parametrize("digits", [40, 5000])
def test_unreadably_long_numbers(digits):
    """Python refuses to convert integers of more than 4300 digits to text."""
    for name, value in fields_of(LEGAL).items():
        if name != "unexplained":
            huge = (*value[:-1], 10**digits) if isinstance(value, tuple) else 10**digits
            refuses(f"{name} is .*; pass numbers of at most 128 bits$", check, replaced(LEGAL, name, huge))
    with pytest.raises(TensorMapError, match="^data_type=.* cannot be encoded in a tensor map"):
        encode(replaced(LEGAL, "data_type", 10**digits))


@pytest.mark.parametrize(("sign", "bits"), [(1, 128), (-1, 128), (1, 20_000), (-1, 20_000)])
def test_the_repr_of_unreadably_long_numbers(sign, bits):
    number = sign * 2**bits
    for name, value in fields_of(LEGAL).items():
        # The masks of unexplained bits have only 32 bits.
        if name != "unexplained":
            huge, written = number, hex(number)
            if isinstance(value, tuple):
                huge, written = (number,), f"({written},)"
            assert f"{name}={written}" in repr(replaced(LEGAL, name, huge))
    assert repr(replaced(LEGAL, "unexplained", ((2, 1), (3, 4)))).count("unexplained=((2, 1), (3, 4))") == 1
    assert "box_dim=(1, 2)" in repr(replaced(LEGAL, "box_dim", (1, 2)))
    assert f"box_dim=({2**128 - 1},)" in repr(replaced(LEGAL, "box_dim", (2**128 - 1,)))
    assert f"box_dim=({1 - 2**128},)" in repr(replaced(LEGAL, "box_dim", (1 - 2**128,)))


def test_numbers_of_128_bits_are_checked():
    (broken,) = check(replaced(LEGAL, "global_address", 2**128 - 32))
    assert broken.rule == "global_address_range" and str(2**128 - 32) in broken.message
    (broken,) = check(dataclasses.replace(LEGAL, l2_promotion=-(2**128) + 1))
    assert broken.rule == "l2_promotion"
    refuses("l2_promotion is .*; pass numbers", check, dataclasses.replace(LEGAL, l2_promotion=-(2**128)))
