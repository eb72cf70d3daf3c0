"""Tests of bugs of public repositories (`tests/real_bugs`). The sanitizer finds each bug, and the fixed kernel has no
finding."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cuda_tma import simulate
from tests.real_bugs import RealBug, real_bugs

BUGS = real_bugs()
GPU = simulate.Device()
STRICT = simulate.Device(strict=True, schedules=4)


def launched(bug: RealBug, gpu: simulate.Device = GPU, **defines: int) -> simulate.Report:
    kernel = gpu.compile(bug.source, "kernel", defines=defines)
    given, out = np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)
    shape = (-1, *bug.box[1:])
    maps = [gpu.create_tensor_map(array.reshape(shape), box_dim=bug.box) for array in (given, out)]
    config = simulate.Config(bug.grid // bug.cluster, bug.block, bug.cluster)
    return gpu.launch(config, kernel, *maps, given, out, bug.tiles, order=bug.order)


def lines_of(finding: simulate.Finding) -> set[int]:
    return {place.line for place in finding.source[-1:]}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_found_before_the_fix(bug):
    finding = next(found for found in launched(bug).findings if found.severity == bug.severity)
    assert (finding.kind, lines_of(finding)) == (bug.kind, {bug.culprit}), finding


DISPUTED = [bug for bug in BUGS if (bug.kind, bug.severity) == ("missing-proxy-fence", "advice")]


@pytest.mark.parametrize("bug", DISPUTED, ids=lambda bug: bug.name)
def test_a_disputed_finding_is_an_error_if_strict(bug):
    finding = launched(bug, STRICT).errors[0]
    assert (finding.kind, lines_of(finding)) == (bug.kind, {bug.culprit})


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_no_finding_after_the_fix(bug):
    assert launched(bug, STRICT, FIXED=1).findings == ()


def test_each_names_its_thread():
    assert all(re.fullmatch(r"[\w-]+/[\w-]+#\d+", bug.thread) for bug in BUGS)
    assert {bug.kind for bug in BUGS} <= simulate.KINDS.keys()
