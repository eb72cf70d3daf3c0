"""Tests of compute capabilities in every valid form, and of invalid values."""

import numpy as np
import pytest

from cuda_tma._compute_capability import NEWEST_MAJOR, parse_compute_capability
from cuda_tma._errors import TensorMapError


@pytest.mark.parametrize(
    ("spellings", "pair"),
    [
        (
            ["9.0", "90", "9", "sm_90", "sm_90a", "9.0a", "90a", "SM_90A", "compute_90", " 9.0\n", (9, 0), [9, 0]],
            (9, 0),
        ),
        (["10.0", "100", "10", "sm_100", "sm_100a", "sm_100f", "10.0f", "compute_100f"], (10, 0)),
        (["10.3", "103", "sm_103a"], (10, 3)),
        (["12.0", "120", "12", "sm_120"], (12, 0)),
        (["12.1", "121", (np.int64(12), np.uint8(1))], (12, 1)),
        (["8.9", "89", "sm_89", (8, 9)], (8, 9)),
        (["1.0", "sm_10", "1"], (1, 0)),
    ],
)
def test_spellings(spellings, pair):
    for value in spellings:
        found = parse_compute_capability(value)
        assert found == pair and type(found) is tuple and list(map(type, found)) == [int, int]


@pytest.mark.parametrize(
    "value",
    [
        *[
            (90, 0),
            (9,),
            (9, 0, 0),
            (),
            (float("nan"), 0),
            (9.0, 0),
            (9, None),
            (9, True),
            (0, 9),
            (9, -1),
            (9, 10),
            (-9, 0),
        ],
        *[(NEWEST_MAJOR + 1, 0), None, 90, 9.0, {9: 0, 1: 1}, b"90"],
        *[
            "",
            "x",
            "9.",
            ".0",
            "9.00",
            "90.0",
            "9.0b",
            "sm_9.0",
            "sm90",
            "130",
            "900",
            "1000",
            "-9.0",
            "9" * 5000,
            "٩.0",
        ],
        *["9" * 5000, "٩.0", "19", "sm_9", "0", "00", "0.9", "13", "13.0", "9 0", "9.0aa"],
    ],
)
def test_anything_else_is_refused_with_the_spellings(value):
    with pytest.raises(
        TensorMapError, match=r'compute_capability is .*; pass \(major, minor\), such as \(9, 0\).*"sm_90a"'
    ):
        parse_compute_capability(value)
