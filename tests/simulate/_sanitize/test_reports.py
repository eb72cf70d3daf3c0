"""Tests that the reports for all kinds of findings and for public bugs equal the files of ``tests/data/reports``."""

import pytest

from tests.support.report_snapshots import REPORTS, on_disk

BLESSED = on_disk()


@pytest.mark.parametrize("name", [name for name in REPORTS if not name.startswith("examples/")])
def test_a_report_equals_its_snapshot(name):
    assert REPORTS[name]() == BLESSED[name], "if the difference is intended: make bless"


def test_each_snapshot_has_a_kernel():
    assert BLESSED.keys() == REPORTS.keys()
