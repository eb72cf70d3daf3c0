"""Tests that pictures of synthetic values have the stored elements; ``make bless`` writes these elements."""

import pytest

pytest.importorskip("matplotlib")

from tests.support.picture_snapshots import FOLDER, PICTURES


@pytest.mark.parametrize("name", [*PICTURES])
def test_a_picture_has_the_stored_elements(name):
    assert PICTURES[name]().splitlines() == (FOLDER / name).read_text("utf-8").splitlines()
