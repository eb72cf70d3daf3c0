"""Tests of two examples on a GPU with operands that have exact results, and of their launches by the sanitizer.

`evaluation/mutation/plant_gpu_faults.py` plants faults that these tests must detect.
"""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from benchmarks.kernels import example
from cuda_tma import simulate

pytest.importorskip("torch")

from tests.support import exact_examples


@pytest.fixture
def few(device):
    """Return the device with a small number of multiprocessors, because the simulator also runs each CTA."""
    return SimpleNamespace(default_stream=device.default_stream, properties=SimpleNamespace(multiprocessor_count=4))


@pytest.mark.parametrize("case", exact_examples.ATTENTIONS)
def test_attention_takes_the_row_of_v(device, case):
    exact_examples.attention(example("attention"), device, case)


@pytest.mark.parametrize("case", exact_examples.PRODUCTS)
def test_gemm_rounds_to_the_nearest_value(device, case):
    exact_examples.product(example("gemm"), device, case)


@pytest.mark.parametrize(
    ("name", "run", "case"),
    [
        ("attention", exact_examples.attention, exact_examples.ATTENTIONS[0]),
        ("gemm", exact_examples.product, exact_examples.PRODUCTS[0]),
    ],
)
def test_the_sanitizer_finds_nothing(few, name, run, case):
    """Hardware gives the right results even without a fence, so that only the sanitizer detects a missing fence."""
    with simulate.watch() as launches:
        run(example(name), few, case)
    (launch,) = launches
    assert not launch.skipped and not launch.report.findings, launch.skipped or str(launch.report)
