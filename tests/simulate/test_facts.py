"""Tests that the simulator gives the results of an H200 for the kernels of `tests/gpu/test_facts.py`."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.gpu.fact_kernels import FACTS, THREADS, source_of


@pytest.mark.parametrize("name", FACTS)
def test_a_fact(name):
    fact, gpu = FACTS[name], simulate.Device()
    given, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    maps = [gpu.create_tensor_map(each, box_dim=(64,)) for each in (given, out)]
    kernel = gpu.compile(source_of(fact), "fact")
    report = gpu.launch(simulate.Config(1, THREADS, 2), kernel, *maps, given, out)
    if fact.error:
        assert [(each.kind, each.ends_launch) for each in report.errors][:1] == [("cluster", True)]
    else:
        assert out[: len(fact.first)].tolist() == [*fact.first], report
