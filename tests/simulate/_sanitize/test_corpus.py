"""Tests of the two corpora in tests/corpus. The sanitizer finds 95 % of the wrong kernels, and reports no error in a
right kernel."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.support.corpus_kernels import CorpusKernel, kernels, run

SCHEDULES = 4
# The table contains the wrong kernels without the expected error, and a reason for each kernel.
MISSED: dict[str, str] = {
    "first/private_histogram_two_bins_short": "its values, drawn from 0 to 7, all fall into the first of its bins",
    "first/wgmma_without_barrier_after_the_fill": "advice: an H200 synchronizes a warpgroup at wgmma",
}


def is_found(kernel: CorpusKernel, report: simulate.Report) -> bool:
    """Return whether a finding of the report is an error of an expected kind at a marked line."""
    named = (
        place
        for finding in report.errors
        if finding.kind in kernel.kinds
        for places in (finding.source, finding.other, *(places for _, places in finding.related))
        for place in places
    )
    return any(place.line in kernel.marked and place.file.endswith(kernel.path.name) for place in named)


WRONG = [kernel for kernel in kernels() if kernel.kinds]
RIGHT = [kernel for kernel in kernels() if not kernel.kinds]


@pytest.mark.parametrize("kernel", WRONG, ids=lambda kernel: kernel.name)
def test_a_wrong_kernel_is_found(kernel: CorpusKernel) -> None:
    report, *_ = run(kernel, schedules=SCHEDULES)
    assert is_found(kernel, report) == (kernel.name not in MISSED), str(report)


@pytest.mark.parametrize("kernel", RIGHT, ids=lambda kernel: kernel.name)
def test_a_right_kernel_has_no_error(kernel: CorpusKernel) -> None:
    report, before, after = run(kernel, schedules=SCHEDULES)
    assert report.errors == (), str(report)
    assert kernel.result, "a right kernel states its result"
    argument, expression = kernel.result
    expected = eval(expression, {"np": np, **{f"a{index}": value for index, value in enumerate(before)}})
    np.testing.assert_allclose(np.asarray(after[argument], float), np.asarray(expected, float), rtol=1e-3, atol=1e-3)


def test_at_most_one_wrong_kernel_in_twenty_is_missed() -> None:
    assert len(MISSED) <= 0.05 * len(WRONG)
    assert MISSED.keys() <= {kernel.name for kernel in WRONG}
