"""Tests of ``tensormap.replace`` at dimensions beyond the map's rank, and beyond the largest rank."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import TensorMapIm2colOptions, codec, simulate

ORDINALS = """
extern "C" __global__ void kernel(void* map) {
    const unsigned extents[5] = {96, 50, 7, 8, 9};
    asm volatile("tensormap.replace.tile.FIELD.global.b1024.BITS [%0], ORDINAL, %1;" :: "l"(map), "REGISTER"(VALUE));
    AFTER
}
"""
GPU = simulate.Device()
TENSOR = np.zeros((50, 96), np.uint8)
RANK_2 = bytes(GPU.create_tensor_map(TENSOR, box_dim=(4, 32)))


def launched(descriptor: bytes, field: str, ordinal: int, value: int, after: str = "") -> tuple[simulate.Report, bytes]:
    bits, register = ("b64", "l") if field == "global_stride" else ("b32", "r")
    source = ORDINALS
    for name, text in {"FIELD": field, "BITS": bits, "ORDINAL": str(ordinal), "REGISTER": register,
                       "VALUE": f"{value}{'ull' if register == 'l' else 'u'}", "AFTER": after}.items():  # fmt: skip
        source = source.replace(name, text)
    given = np.zeros(256, np.uint8)
    given[:128] = np.frombuffer(descriptor, np.uint8)
    report = GPU.launch(simulate.Config(1, 1), GPU.compile(source, "kernel"), given)
    return report, given[:128].tobytes()


RANK_5 = 'asm volatile("tensormap.replace.tile.rank.global.b1024.b32 [%0], 4;" :: "l"(map));'
NAMES = {"global_dim": "global_dim", "box_dim": "box_dim", "global_stride": "global_strides",
         "element_stride": "element_strides"}  # fmt: skip


@pytest.mark.parametrize(
    ("field", "ordinal", "value"),
    [
        *(("global_dim", ordinal, 1) for ordinal in (2, 3, 4)),
        *(("global_dim", ordinal, 70 + ordinal) for ordinal in (2, 3, 4)),
        *(("global_stride", ordinal, 160 * ordinal) for ordinal in (1, 2, 3)),
        *(("box_dim", ordinal, 2) for ordinal in (2, 4)),
        *(("element_stride", ordinal, 2) for ordinal in (2, 4)),
    ],
)
def test_a_dimension_beyond_the_rank_counts_from_the_next_rank_on(field, ordinal, value):
    report, same = launched(RANK_2, field, ordinal, value)
    assert report.findings == ()
    before, after = codec.decode(RANK_2), codec.decode(same)
    assert (after.rank, after.global_dim, after.box_dim) == (2, before.global_dim, before.box_dim)
    report, raised = launched(RANK_2, field, ordinal, value, RANK_5)
    assert report.findings == ()
    assert getattr(codec.decode(raised), NAMES[field])[ordinal] == value


@pytest.mark.parametrize(
    ("field", "ordinal", "has"),
    [
        ("global_dim", 5, "0 to 4"),
        ("box_dim", 7, "0 to 4"),
        ("element_stride", 5, "0 to 4"),
        ("global_stride", 4, "0 to 3"),
    ],
)
def test_a_dimension_that_no_map_has(field, ordinal, has):
    report, after = launched(RANK_2, field, ordinal, 16)
    (finding,) = report.errors
    assert (finding.kind, finding.source[0].line) == ("map-mismatch", 4)
    assert f"tensormap.replace sets {field} {ordinal}, but a tensor map has only {field} {has}" in finding.message
    assert after == RANK_2


@pytest.mark.parametrize(("field", "value", "takes"), [("rank", 5, "0 to 4"), ("element_stride", 0, "1 to 8")])
def test_a_value_that_no_map_holds(field, value, takes):
    ordinal = " 1," if field != "rank" else ""
    source = f"""extern "C" __global__ void kernel(void* map) {{
        asm volatile("tensormap.replace.tile.{field}.global.b1024.b32 [%0],{ordinal} {value};" :: "l"(map));
    }}"""
    given = np.zeros(256, np.uint8)
    given[:128] = np.frombuffer(RANK_2, np.uint8)
    (finding,) = GPU.launch(simulate.Config(1, 1), GPU.compile(source, "kernel"), given).errors
    assert finding.kind == "map-mismatch"
    assert f"tensormap.replace sets {field} to {value}; the range is {takes}" in finding.message
    assert given[:128].tobytes() == RANK_2


def test_a_box_of_an_im2col_map():
    options = TensorMapIm2colOptions((-1, -1), (-1, -1), channels_per_pixel=32, pixels_per_column=40)
    descriptor = bytes(GPU.create_tensor_map(np.zeros((2, 7, 9, 32), np.uint8), options))
    report, after = launched(descriptor, "box_dim", 0, 16)
    assert [finding.kind for finding in report.errors] == ["map-mismatch"]
    assert "tensormap.replace.tile sets box_dim, but the map is an im2col map" in report.errors[0].message
    assert after == descriptor
