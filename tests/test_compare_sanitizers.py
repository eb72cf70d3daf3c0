"""How reports of compute-sanitizer become cells of a table: without a GPU, on what it writes."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "tools"))

import compare_sanitizers

MISALIGNED = """========= COMPUTE-SANITIZER
========= Misaligned shared or local address
=========     at kernel+0x1a0 in kernel.cu:19
========= Target application returned an error
========= ERROR SUMMARY: 34 errors
"""


@pytest.mark.parametrize(
    ("text", "hung", "expected"),
    [
        ("launched\n", False, "ends"),
        ("", True, "hangs"),
        ("cuda.core.CUDAError: CUDA_ERROR_LAUNCH_FAILED: it failed\n", False, "CUDA_ERROR_LAUNCH_FAILED"),
        ("launched\n========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n", False, "0"),
        (MISALIGNED, False, "34 (Misaligned shared or local address)"),
        ("========= Barrier error detected. Missing wait.\n========= ERROR SUMMARY: 1 error\n", False,
         "1 (Barrier error detected. Missing wait.)"),
    ],
)  # fmt: skip
def test_a_cell(text, hung, expected):
    assert compare_sanitizers.cell(text, hung) == expected


def test_our_own_column():
    bug = next(bug for bug in compare_sanitizers.real_bugs() if bug.name == "fuser_5448_store_not_waited_for")
    assert [finding.kind for finding in compare_sanitizers.simulated(bug)] == ["race"]
