"""Tests of the maps that CuTe DSL 4.8.1 encodes without the driver, for sm_100 and sm_120 (`tests/data`).

The bytes are from launches of CUTLASS's examples at 7107b0553, which `cuda-tma sanitize --record` wrote; `example` is a
name in `evaluation/sm100_corpus/run_corpus.py`. The addresses of most maps are zero. The last 64 bytes of these maps
are different in each launch, and are zeros in the test.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_tma import TensorMapDataType, TensorMapSwizzle, check, decode, encode

MAPS = json.loads((Path(__file__).parents[1] / "data" / "maps_of_cute.json").read_text("utf-8"))


def params_of(row: dict):
    return decode(bytes.fromhex(row["digits"]) + bytes(64))


@pytest.mark.parametrize("target", ["sm_100", "sm_120"])
def test_one_bit_of_the_first_64_bytes_is_not_that_of_encode(target):
    rows = [row for row in MAPS if row["target"] == target]
    assert len(rows) >= 6
    for row in rows:
        raw, params = bytes.fromhex(row["digits"]), params_of(row)
        assert params.data_type == TensorMapDataType[row["data_type"]], row
        assert params.swizzle == TensorMapSwizzle[row["swizzle"]], row
        for field in ("global_dim", "global_strides", "box_dim"):
            assert getattr(params, field) == tuple(row[field]), row
        assert params.unexplained[0] == (2, 2), row
        encoded = bytes(encode(replace(params, unexplained=())))
        assert [(at, raw[at] ^ encoded[at]) for at in range(64) if raw[at] != encoded[at]] == [(8, 2)], row


def test_check_accepts_each_map_for_its_target():
    """The 4-bit types of the maps need compute capability 10.0 or later."""
    for row in MAPS:
        params = replace(params_of(row), unexplained=())
        assert check(params, row["target"]) == (), row
        assert bool(check(params, "9.0")) == row["data_type"].startswith("PACKED"), row


def test_the_maps_have_these_types_and_swizzles():
    found = {(row["data_type"], row["swizzle"]) for row in MAPS}
    assert {data_type for data_type, _ in found} == {
        "UINT8", "UINT16", "FLOAT16", "BFLOAT16", "TFLOAT32", "PACKED_16U4_ALIGN8B", "PACKED_16U4_ALIGN16B",
    }  # fmt: skip
    assert {swizzle for _, swizzle in found} == {"NONE", "SWIZZLE_64B", "SWIZZLE_128B"}
