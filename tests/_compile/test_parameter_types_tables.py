"""Tests of the bytes and the values in the table of parameter types, which PTX contains."""

import pytest

from cuda_tma import TensorMapDataType as T
from cuda_tma._compile import parameter_types


def test_the_initial_bytes_of_a_variable(monkeypatch):
    monkeypatch.setattr(parameter_types, "_MOST_BYTES", 4)
    for text, expected in {
        "a[4] = {1, 2};": b"\1\2\0\0",
        "a[4] = {1, 2, 3, 255};": b"\1\2\3\xff",
        "a[5] = {1};": b"",
        "a[2];": b"\0\0",
        "a[2] = {256};": b"",
        "b[2] = {1};": b"",
        "aa[2] = {1};": b"",
    }.items():
        assert parameter_types._initial_bytes(f".global .align 4 .b8 {text}", "a") == expected, text


def test_a_map_that_no_kernel_can_have_has_no_type():
    given = {"mode": "tiled", "rank": 2, "tile_dim": (64, 8), "data_type": T.UINT8, "swizzle": 0, "oob_fill": 0,
             "l2_promotion": 0}  # fmt: skip
    assert parameter_types._map_type(**given).tile_dim == (64, 8)
    for changes in ({"rank": 3}, {"data_type": 99}, {"nothing": 1}, {"tile_dim": (0, 8)}):
        assert parameter_types._map_type(**given | changes) is None


@pytest.mark.parametrize("kind", [-1, len(parameter_types._KINDS), 99])
def test_an_unknown_kind_has_no_type(kind):
    assert parameter_types._type(kind, 0, 0, 0, 0, 0, 0) is None
    first = {each: parameter_types._type(each, 0, 0, 0, 0, 0, 0) for each in range(len(parameter_types._KINDS))}
    known = {each: type_ for each, type_ in first.items() if each not in parameter_types._MODES}
    assert known == {each: parameter_types._KINDS[each] for each in known} and known
