"""Tests of the short descriptions of arguments in errors, for every public function that takes params."""

from dataclasses import replace

import numpy as np
import pytest

import cuda_tma
from cuda_tma import _given as given
from cuda_tma import emulate, testing
from cuda_tma import smem as smem
from cuda_tma._show import plot
from cuda_tma.params import Params, TiledParams
from cuda_tma.rules import _explain as explain
from cuda_tma.smem import _layout
from tests._given import LARGE, LARGE_SHOWN, refuses
from tests.support.descriptors import LEGAL


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (LARGE, "a numpy.ndarray of shape (100, 700) and dtype int64"),
        (LARGE.tolist(), "[[0, 0, 0, 0, 0, 0, ...], [0, 0, 0, 0, 0, 0, ...], "),
        ((1, 2), "(1, 2)"),
        (10**1000, "100000000000000000...0000000000000000000"),
        (2**4095 - 1, "522194440706576253...2354170201577095167"),
        (2**4095, "<int of 4096 bits>"),
        ((1, -(10**5000)), "(1, <int of 16610 bits>)"),
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
    refuses("offsets is None; pass 2 integers: W, H", given.integers, "offsets", None, 2, "W, H")
    refuses(r"offsets=\(\) has length 0; it needs length 2: W, H", given.integers, "offsets", (), 2, "W, H")


@pytest.mark.parametrize("known", [(9, 0), tuple(map(np.int64, (9, 0))), [9, 0], "9.0", "sm_90a", (True * 9, 0)])
def test_a_compute_capability_by_any_spelling(known):
    atom = replace(LEGAL, swizzle=4)
    assert cuda_tma.check(atom, known) == cuda_tma.check(atom, (9, 0)) != () == cuda_tma.check(atom, (10, 0))


NO_CAPABILITY = [
    *(90, "ninety", "sm_", 9.0, None, (), (9,), (90,), (9, 0, 0), (90, 0), (100, 0), (13, 0), (0, 9), (-9, 0), (9, -1)),
    *(
        (9, 10),
        (9, "0"),
        (None, None),
        (9.0, 0),
        (float("nan"), 0),
        (9, float("nan")),
        (9, False),
        {9: 0},
        10**5000,
        (10**5000, 0),
    ),
    *(LARGE, LARGE.tolist()),
]


@pytest.mark.parametrize("value", NO_CAPABILITY, ids=range(len(NO_CAPABILITY)))
def test_invalid_compute_capability(value):
    message = r"compute_capability is .*; pass \(major, minor\), such as \(9, 0\), or a str, such as "
    refuses(message, cuda_tma.check, LEGAL, value)


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
    "box_extents": smem.box_extents,
    "rows": _layout.rows,
    "tx_bytes": smem.tx_bytes,
    "smem_bytes": smem.smem_bytes,
    "smem_alignment": smem.smem_alignment,
    "smem_layout": smem.smem_layout,
    "slice_bytes": _layout.slice_bytes,
    "group_bytes": _layout.group_bytes,
    "unit_bytes": _layout.unit_bytes,
    "linear_offset": lambda p: _layout.linear_offset(p, (0, 0)),
    "smem_offset": lambda p: smem.smem_offset(p, (0, 0)),
    "smem_index": lambda p: smem.smem_index(p, 0),
    "bank_conflicts": lambda p: smem.bank_conflicts(p, "row"),
    "worst_read": lambda p: smem.worst_read(p, "row"),
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
def test_invalid_params(name, params, words):
    message = f"params is {words}; pass TiledParams, .* the `.params` of a descriptor, or the result of cuda_tma.decode"
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
def test_invalid_tensor_map(raw, words):
    refuses(f"a is {words}.*; pass the 128 bytes of a tensor map, ", lambda: cuda_tma.diff(raw, LEGAL))
    refuses(f"b is {words}.*; pass the 128 bytes of a tensor map, ", lambda: cuda_tma.diff(LEGAL, raw))
    given = len(raw) if isinstance(raw, bytes) else words
    refuses(f"a tensor map has 128 bytes, not {given}.*; pass all bytes of the CUtensorMap", cuda_tma.decode, raw)


@pytest.mark.parametrize("values", [(2**31, 0), (0, -(2**31) - 1), (0, 2**40)])
def test_a_value_of_more_than_32_bits(values):
    with pytest.raises(cuda_tma.TensorMapError, match="has a value of more than 32 bits"):
        given.integers("coordinates", values, 2, "one for each dimension")
    assert given.integers("coordinates", (2**31 - 1, -(2**31)), 2, "") == (2**31 - 1, -(2**31))
