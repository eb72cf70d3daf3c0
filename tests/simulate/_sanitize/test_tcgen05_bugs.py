"""Tests of wrong uses of tensor memory and tcgen05 (`tests/tcgen05_bugs`). Each wrong kernel has an error at its marked
line, and the fixed twin has no error."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.tcgen05_bugs import WrongUse, wrong_uses

PUBLIC, RULES, SCALES = wrong_uses("public"), wrong_uses("rules"), wrong_uses("scales")
FOUND = [use for use in (*PUBLIC, *RULES, *SCALES) if not use.missed]
GPU = simulate.Device("10.0", schedules=4)


def launched(use: WrongUse, **defines: int) -> simulate.Report:
    kernel = GPU.compile(use.code, "k", defines=defines)
    arguments = np.zeros(use.block * use.cluster, np.uint32), np.full(4 * use.block, 0x3C003C00, np.uint32)
    config = simulate.Config(1, use.block, cluster=use.cluster if use.cluster > 1 else None)
    return GPU.launch(config, kernel, *arguments[: len(kernel.parameters.parameters)])


def lines_of(finding: simulate.Finding) -> set[int]:
    places = (*finding.source[-1:], *(place for _, related in finding.related for place in related[-1:]))
    return {place.line for place in places if place.file.endswith(".cu")}


@pytest.mark.parametrize("use", FOUND, ids=lambda use: use.name)
def test_wrong(use):
    found = [(each.kind, lines_of(each)) for each in launched(use).errors]
    assert [kind for kind, lines in found if kind in use.kinds and lines & use.culprits], found


@pytest.mark.parametrize("use", [*PUBLIC, *RULES, *SCALES], ids=lambda use: use.name)
def test_fixed(use):
    assert launched(use, FIXED=1).errors == ()


def test_19_of_20_are_found():
    total = len(PUBLIC) + len(RULES) + len(SCALES)
    assert 20 * len(FOUND) >= 19 * total
    # If this assertion fails, remove the reason from the table.
    assert all(launched(use).errors == () for use in (*PUBLIC, *RULES, *SCALES) if use.missed)


def test_half_are_public():
    assert len(PUBLIC) + len(RULES) >= 24
    assert 2 * len(PUBLIC) + 1 >= len(PUBLIC) + len(RULES)
    assert all("#" in use.source or "generated code" in use.source for use in PUBLIC)
    assert {kind for use in (*PUBLIC, *RULES) for kind in use.kinds} <= simulate.KINDS.keys()
