"""Errors name what was given in a few words: the words, and every public function that takes params."""

import dataclasses

import numpy as np
import pytest

import cuda_tma
from cuda_tma import emulate, explain, given, plot, swizzle, testing
from cuda_tma.errors import TensorMapError
from cuda_tma.params import Params, TiledParams

from .descriptors import LEGAL, LEGAL_IM2COL

LARGE = np.zeros((100, 700), np.int64)
LARGE_SHOWN = r"a numpy.ndarray of shape \(100, 700\) and dtype int64"


def refuses(message, call, *arguments):
    """A TensorMapError that begins so, in a few words however large the arguments are."""
    with pytest.raises(TensorMapError, match=f"^{message}") as refusal:
        call(*arguments)
    assert len(str(refusal.value)) < 400


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (LARGE, "a numpy.ndarray of shape (100, 700) and dtype int64"),
        (LARGE.tolist(), "[[0, 0, 0, 0, 0, 0, ...], [0, 0, 0, 0, 0, 0, ...], "),
        ((1, 2), "(1, 2)"),
        (10**1000, "100000000000000000...0000000000000000000"),
        ("text" * 100, "'texttextte"),
        (bytearray(5), "a bytearray of 5 values"),
        (LEGAL, "a cuda_tma.TiledParams"),
        (TiledParams, "the class cuda_tma.TiledParams"),
        (np.ndarray, "the class numpy.ndarray"),
        (object(), "an object"),
        (None, "None"),
    ],
)
def test_shown(value, words):
    assert given.shown(value).startswith(words) and len(given.shown(value)) < 200


def test_no_values_are_the_default_if_there_is_one():
    for none in (None, (), [], np.zeros(0, int)):
        assert given.integers("offsets", none, 2, "W, H", default=(0, 0)) == (0, 0)
    refuses("offsets is None; give 2 integers: W, H", given.integers, "offsets", None, 2, "W, H")
    refuses(r"offsets=\(\) has 0 values, and needs 2: W, H", given.integers, "offsets", (), 2, "W, H")


@pytest.mark.parametrize("params", [LEGAL, LEGAL_IM2COL])
def test_wrong_field_is_the_one_that_is_wrong(params):
    assert given.wrong_field(params) is None
    for field in dataclasses.fields(params):
        if field.name != "unexplained":
            wanted = "an integer" if isinstance(getattr(params, field.name), int) else "a tuple of integers"
            error = given.wrong_field(dataclasses.replace(params, **{field.name: LARGE}))
            assert str(error) == f"{field.name} is {given.shown(LARGE)}; give {wanted}"


COORDINATES, MEMORY = (0, 0, 0), np.zeros(64, np.uint8)
TAKE_PARAMS = {
    "check": cuda_tma.check,
    "encode": cuda_tma.encode,
    "refusal": lambda p: explain.refusal(p, ()),
    "plot.tile": plot.tile,
    "plot.banks": plot.banks,
    "plot.box": plot.box,
    "assert_tile_equal": lambda p: testing.assert_tile_equal(p, MEMORY, emulate.Tile(MEMORY, MEMORY, 64)),
    "load": lambda p: emulate.load(p, MEMORY, COORDINATES),
    "gather4": lambda p: emulate.gather4(p, MEMORY, (0,) * 5),
    "store": lambda p: emulate.store(p, MEMORY, MEMORY, COORDINATES),
    "scatter4": lambda p: emulate.scatter4(p, MEMORY, MEMORY, (0,) * 5),
    "reduce": lambda p: emulate.reduce(p, MEMORY, MEMORY, COORDINATES, "add"),
    "tensor_index": lambda p: emulate.tensor_index(p, COORDINATES, COORDINATES),
    "box_extents": swizzle.box_extents,
    "rows": swizzle.rows,
    "tx_bytes": swizzle.tx_bytes,
    "smem_bytes": swizzle.smem_bytes,
    "smem_alignment": swizzle.smem_alignment,
    "smem_layout": swizzle.smem_layout,
    "slice_bytes": swizzle.slice_bytes,
    "group_bytes": swizzle.group_bytes,
    "unit_bytes": swizzle.unit_bytes,
    "linear_offset": lambda p: swizzle.linear_offset(p, (0, 0)),
    "smem_offset": lambda p: swizzle.smem_offset(p, (0, 0)),
    "smem_index": lambda p: swizzle.smem_index(p, 0),
    "bank_conflicts": lambda p: swizzle.bank_conflicts(p, "row"),
    "worst_read": lambda p: swizzle.worst_read(p, "row"),
}
NO_PARAMS = [
    (LARGE, LARGE_SHOWN),
    (LARGE.tolist(), r"\[\[0, 0, 0, 0, 0, 0, ...\], .*\]"),
    (bytes(128), "a bytes of 128 values"),
    ({}, "a dict of 0 values"),
    (None, "None"),
    (TiledParams, "the class cuda_tma.TiledParams"),
    (Params(data_type=0, global_address=0, global_dim=(), global_strides=(), element_strides=()), "a cuda_tma.Params"),
]


@pytest.mark.parametrize("name", TAKE_PARAMS)
@pytest.mark.parametrize(("params", "words"), NO_PARAMS)
def test_what_is_no_params(name, params, words):
    message = f"params is {words}; give TiledParams, .* the `.params` of a descriptor, or what cuda_tma.decode"
    refuses(message, TAKE_PARAMS[name], params)


NO_MAP = [
    (LARGE, LARGE_SHOWN),
    ([0] * 128, r"\[0, 0, 0, 0, 0, 0, \.\.\.\]"),
    ("00" * 128, "'000"),
    (bytes(127), "a bytes of 127 values"),
    (128, "128"),
    (None, "None"),
    (object(), "an object"),
]


@pytest.mark.parametrize(("raw", "words"), NO_MAP)
def test_what_is_no_tensor_map(raw, words):
    refuses(f"a is {words}.*; a tensor map is 128 bytes: ", lambda: cuda_tma.diff(raw, LEGAL))
    refuses(f"b is {words}.*; a tensor map is 128 bytes: ", lambda: cuda_tma.diff(LEGAL, raw))
    given = len(raw) if isinstance(raw, bytes) else words
    refuses(f"a tensor map is 128 bytes, not {given}.*; pass the whole CUtensorMap", cuda_tma.decode, raw)
