"""Tests of the part of a dimension that a picture of a box shows."""

import pytest

pytest.importorskip("matplotlib")

from cuda_tma._show.plot import _span


@pytest.mark.parametrize(
    ("start", "extent", "dim", "shown"),
    [
        (0, 4, 32, (0, 32)),
        (0, 4, 33, (0, 18)),
        (29, 4, 33, (15, 33)),
        (-3, 4, 29, (-3, 29)),
        (-3, 4, 10_000, (-3, 15)),
        (500, 4, 10_000, (486, 518)),
        (9_998, 4, 10_000, (9_984, 10_002)),
        (2, 4, 10_000, (0, 20)),
        (-8, 4, 16, (-8, 16)),
    ],
)
def test_only_the_part_around_a_small_box_is_shown(start, extent, dim, shown):
    assert _span(start, extent, dim) == shown
