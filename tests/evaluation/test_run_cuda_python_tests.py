"""Tests of the tool that runs other projects' test suites, and counts the results by reason."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import pytest

EVALUATION = Path(__file__).parents[2] / "evaluation"
if str(EVALUATION) not in sys.path:
    sys.path.append(str(EVALUATION))

import run_cuda_python_tests as suites  # noqa: E402

DOCUMENT = """<testsuites><testsuite>
<testcase name="a"/>
<testcase name="b"><failure message="error 801 at 0xdead0000&#10;more"/></testcase>
<testcase name="c"><failure message="error 802 at 0xbeef0000"/></testcase>
<testcase name="d"><skipped message="needs 2 GPUs"/></testcase>
<testcase name="e"><error message=""/></testcase>
</testsuite></testsuites>
"""


def test_counts_of_a_document(tmp_path):
    (tmp_path / "tests.xml").write_text(DOCUMENT, "utf-8")
    counts = suites.counts_of(tmp_path / "tests.xml")
    assert counts.outcomes == {"passed": 1, "failed": 3, "skipped": 1}
    assert counts.reasons == {
        "failed: error N at N": 2,
        "skipped: needs N GPUs": 1,
        "failed: no message": 1,
    }


@pytest.mark.parametrize("passed, below", [(3, 0), (4, 0), (2, 1)])
def test_the_number_that_passes_is_a_floor(tmp_path, monkeypatch, passed, below):
    recorded = tmp_path / "counts.json"
    recorded.write_text(json.dumps({"counts": {"cuda_core": {"passed": 3}}}), "utf-8")
    monkeypatch.setattr(suites, "RECORDED", recorded)
    assert suites.compare({"cuda_core": Counter(passed=passed)}, write=False) == below


def test_the_recorded_counts_have_a_commit_and_requirements():
    recorded = json.loads(suites.RECORDED.read_text("utf-8"))
    assert len(recorded["commit"]) == 40 and "cuda-core[cu13]==1.2.2" in recorded["requirements"]
    assert recorded["counts"].keys() == {"cuda_bindings", "cuda_core"}
    assert all(counts["passed"] > 200 for counts in recorded["counts"].values())
