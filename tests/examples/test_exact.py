"""Tests of two examples on the simulator with operands that have exact results; `tests/gpu` runs them on a GPU."""

from __future__ import annotations

import pytest

from benchmarks.kernels import example

pytest.importorskip("torch")

from tests.support import exact_examples
from tests.support.simulated_examples import simulated


@pytest.fixture
def hosted(monkeypatch):
    """Return an example that uses the simulator in place of the GPU, and the simulated device."""

    def made(name):
        module = example(name)
        for attribute, value in simulated().items():
            monkeypatch.setattr(module, attribute, value)
        return module, module.cuda_tma.Device()

    return made


@pytest.mark.parametrize("case", exact_examples.ATTENTIONS)
def test_attention_takes_the_row_of_v(hosted, case):
    exact_examples.attention(*hosted("attention"), case)


@pytest.mark.parametrize("case", exact_examples.PRODUCTS)
def test_gemm_rounds_to_the_nearest_value(hosted, case):
    exact_examples.product(*hosted("gemm"), case)
