"""Tests of suppressions, which match the source lines or the functions of the two accesses in a finding."""

import pytest

from cuda_tma.simulate import Finding, Place, Suppression

FINDING = Finding(
    "race", "error", "m", (Place("/a/first.cu", 3, 1, "store"),), other=(Place("/a/second.cu", 7, 1, "fetch"),),
    ptx_line=20, other_ptx_line=30,
)  # fmt: skip


@pytest.mark.parametrize(
    "place", ["first.cu:3", "second.cu:7", "a/second.cu:7", "store", "fetch", "PTX line 20", "PTX line 30", "*"]
)
def test_each_place_of_a_finding_is_covered(place):
    assert Suppression("race", place, "why").covers(FINDING)
    assert not Suppression("deadlock", place, "why").covers(FINDING)


@pytest.mark.parametrize("place", ["first.cu:7", "second.cu:3", "b/second.cu:7", "load", "PTX line 7"])
def test_another_place_is_not_covered(place):
    assert not Suppression("race", place, "why").covers(FINDING)
