"""Tests that ``docs/sanitizer.md`` contains the simulator's report for every kind of finding."""

import sys
from pathlib import Path

import pytest

from cuda_tma import simulate

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tools"))

import finding_kernels  # noqa: E402
import write_findings  # noqa: E402


def test_every_kind_has_a_kernel():
    assert finding_kernels.KERNELS.keys() == simulate.KINDS.keys() - {"leak", "hardware-difference"}
    assert finding_kernels.LAUNCHES.keys() <= simulate.KINDS.keys()


@pytest.mark.parametrize("kind", finding_kernels.KERNELS)
def test_the_wrong_kernel_has_that_finding_and_the_fixed_one_has_no_finding(kind):
    assert [finding.kind for finding in write_findings.reported(kind, "-").findings] == [kind]
    assert write_findings.reported(kind, "+").findings == ()


def test_the_page_is_current():
    page = (ROOT / "docs" / "sanitizer.md").read_text()
    assert page == write_findings.page(), "run: python tools/write_findings.py"
