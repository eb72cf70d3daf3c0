"""Tests of wrong uses of block scales and narrow elements on sm_120 (`tests/sm120_bugs`).

Each wrong kernel has an error at its marked line, and the fixed twin has no error. Three other mistakes break no rule,
and only change the result.
"""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.sm120_bugs import PRELUDE, WRONG_USES
from tests.tcgen05_bugs import WrongUse

GPU = simulate.Device("12.0", schedules=2)
MAP = GPU.create_tensor_map(
    np.full((8, 64), 0x22, np.uint8), box_dim=(8, 128), data_type="16U4_ALIGN16B", swizzle="none"
)


def launched(use: WrongUse, **defines: int) -> simulate.Report:
    kernel = GPU.compile(use.code, "k", defines=defines)
    arguments = np.zeros(4 * use.block, np.uint32), np.full(4 * use.block, 0x7F7F7F7F, np.uint32), MAP
    return GPU.launch(simulate.Config(1, use.block), kernel, *arguments[: len(kernel.parameters.parameters)])


def lines_of(finding: simulate.Finding) -> set[int]:
    places = (*finding.source[-1:], *(place for _, related in finding.related for place in related[-1:]))
    return {place.line for place in places if place.file.endswith(".cu")}


@pytest.mark.parametrize("use", WRONG_USES, ids=lambda use: use.name)
def test_wrong(use):
    found = [(each.kind, lines_of(each)) for each in launched(use).errors]
    assert [kind for kind, lines in found if kind in use.kinds and lines & use.culprits], found


@pytest.mark.parametrize("use", WRONG_USES, ids=lambda use: use.name)
def test_fixed(use):
    assert launched(use, FIXED=1).errors == ()


def test_two_thirds_are_about_scales_or_narrow_elements():
    words = "scale", "byte-id", "thread-id", "padding", "row"
    assert 3 * sum(any(word in use.bug for word in words) for use in WRONG_USES) >= 2 * len(WRONG_USES) >= 24


# In the right kernel, the scales of A are in byte 0 of lanes 0 and 1 of each group of 4 lanes.
VALUES = """
extern "C" __global__ void k(u32* out) {
    float d[4] = {};
    const u32 of_a = threadIdx.x % 4 < 2 ? 0x7e7d7c80 : 0x7b7b7b7b, elements = 0x02020202;
    MULTIPLY(MXF8, d, elements << SHIFT, elements << 2, of_a, BYTE, PAIR, 0x7f7f7f7f, 0, 0);
    write(out, d);
}
"""


@pytest.mark.parametrize(
    ("change", "expected"), [({}, 64), ({"BYTE": 1}, 4), ({"PAIR": 1}, 2), ({"SHIFT": 0}, 0)], ids=str
)
def test_a_wrong_value_is_not_a_finding(change, expected):
    """A wrong value is not a finding if the instruction permits it: the scale of another block or row, or elements of
    4 bits that are not in bits 2 to 5 of their bytes."""
    defines = {"SHIFT": 2, "BYTE": 0, "PAIR": 0} | change
    out = np.zeros(128, np.uint32)
    report = GPU.launch(simulate.Config(1, 32), GPU.compile(PRELUDE + VALUES, "k", defines=defines), out)
    assert report.findings == ()
    assert np.unique(out.view(np.float32)).tolist() == [expected]
