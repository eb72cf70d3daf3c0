"""The GEMM for every shape: its variants on the simulator, at sizes that hang over edges, and which one is chosen."""

from __future__ import annotations

from functools import partial

import pytest

from benchmarks.kernels import example
from cuda_tma import simulate

pytest.importorskip("torch")

gemm = example("gemm_every_shape")
Problem, Case = gemm.Problem, gemm.Case
variants = __import__("_gemm_variants")  # beside it, and importable since
Variant = variants.Variant


@pytest.fixture
def run(monkeypatch):
    """run(variant, case): on the simulator, with its check of every element."""
    from .simulated_examples import simulated

    def run(variant, case):
        for name, value in {**simulated(), "choose": lambda problem, multiprocessors: variant}.items():
            monkeypatch.setattr(gemm, name, value)
        for _, ours, rivals, *_ in gemm.cases([case]):
            for each in (ours, *rivals.values()):
                each()

    return run


@pytest.mark.parametrize(
    ("variant", "case"),
    [
        (Variant(256, down=2), Case(Problem(136, 264, 136))),
        (Variant(224, across=2), Case(Problem(100, 232, 72), "float16")),
        (Variant(32, down=2, across=2), Case(Problem(260, 56, 72), "bfloat16", True, "relu")),
        (Variant(16, splits=4, is_turned=True), Case(Problem(5, 136, 264), "bfloat16", True, "gelu")),
        (Variant(64, down=2, splits=2, is_turned=True), Case(Problem(24, 136, 136, True, False), "float16", True)),
        (Variant(64, across=2, splits=2), Case(Problem(104, 72, 136, False, False), "bfloat16", True, "silu")),
        (Variant(64, down=2, is_turned=True), Case(Problem(72, 136, 72, False, True), "float16", False, "silu")),
        (Variant(96, splits=3), Case(Problem(100, 88, 200))),
    ],
    ids=str,
)
def test_a_variant_is_right_in_every_element(run, variant, case):
    assert variant.suits(case.problem)
    run(variant, case)


def test_splits_are_right_in_every_order(run, monkeypatch):
    monkeypatch.setattr(simulate, "Device", partial(simulate.Device, schedules=3))
    run(Variant(32, splits=2), Case(Problem(20, 24, 136)))


