"""Tests of the GEMM example for every shape, whose variants run on the simulator at sizes that cross edges."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, strategies

from benchmarks.kernels import example
from cuda_tma import simulate

pytest.importorskip("torch")

gemm = example("gemm_every_shape")
# The call of example() makes the modules next to the example importable.
cases, variants = map(__import__, ("_gemm_cases", "_gemm_variants"))
Problem, Case = variants.Problem, cases.Case
Variant = variants.Variant


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs a case of a variant on the simulator, and checks every element of the result."""
    from tests.support.simulated_examples import simulated

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
        (Variant(128, 256, down=2), Case(Problem(136, 264, 136))),
        (Variant(128, 224, across=2), Case(Problem(100, 232, 72), "float16")),
        (Variant(128, 32, down=2, across=2), Case(Problem(260, 56, 72), "bfloat16", True, "relu")),
        (Variant(128, 16, splits=4, is_turned=True), Case(Problem(5, 136, 264), "bfloat16", True, "gelu")),
        (Variant(128, 64, down=2, splits=2, is_turned=True), Case(Problem(24, 136, 136, True, False), "float16", True)),
        (Variant(128, 64, across=2, splits=2), Case(Problem(104, 72, 136, False, False), "bfloat16", True, "silu")),
        (Variant(128, 64, down=2, is_turned=True), Case(Problem(72, 136, 72, False, True), "float16", False, "silu")),
        (Variant(128, 96, splits=3), Case(Problem(100, 88, 200))),
        (Variant(64, 8), Case(Problem(40, 8, 840), "float16", True)),
        (Variant(64, 64, across=4, is_turned=True), Case(Problem(200, 72, 136), "bfloat16", True, "gelu")),
        (Variant(64, 32, down=4), Case(Problem(250, 40, 1000))),
        (Variant(64, 16, splits=2, is_turned=True), Case(Problem(5, 136, 264), "float16", True)),
    ],
    ids=str,
)
def test_a_variant_is_right_in_every_element(run, variant, case):
    assert variant.suits(case.problem)
    run(variant, case)


def test_splits_are_right_in_every_order(run, monkeypatch):
    monkeypatch.setattr(simulate, "Device", partial(simulate.Device, schedules=3))
    run(Variant(128, 32, splits=2), Case(Problem(20, 24, 136)))


# ---- the choice of a variant ----

MULTIPROCESSORS = 132
SIZES = strategies.integers(1, 20_000)
OF_16_BITS = {"batch": strategies.integers(1, 4), "item_bytes": strategies.just(2), "c_bytes": strategies.just(2)}
ANY_BYTES = strategies.sampled_from([1, 2, 4])
MAJORS = strategies.booleans(), strategies.booleans()
PROBLEMS = strategies.builds(
    Problem, SIZES, SIZES, SIZES, *MAJORS, **OF_16_BITS, has_pairs_of_sums=strategies.booleans()
)
PROBLEMS_OF_ANY_TYPE = strategies.builds(
    Problem,
    SIZES,
    SIZES,
    SIZES,
    batch=OF_16_BITS["batch"],
    item_bytes=ANY_BYTES,
    c_bytes=ANY_BYTES,
    has_pairs_of_sums=strategies.booleans(),
)


@given(PROBLEMS | PROBLEMS_OF_ANY_TYPE, strategies.integers(1, 200))
def test_the_chosen_variant_covers_the_product_in_the_least_time(problem, multiprocessors):
    chosen = variants.choose(problem, multiprocessors)
    down, across, steps = chosen.grid(problem)
    rows, columns = (problem.n, problem.m) if chosen.is_turned else (problem.m, problem.n)
    assert chosen.suits(problem)
    assert (down - 1) * chosen.down * chosen.rows < rows <= down * chosen.down * chosen.rows
    assert (across - 1) * chosen.across * chosen.columns < columns <= across * chosen.across * chosen.columns
    assert steps >= chosen.splits and (steps - 1) * 128 < problem.k * problem.item_bytes <= steps * 128
    least = variants.microseconds(chosen, problem, multiprocessors)
    suitable = [variant for variant in variants.VARIANTS if variant.suits(problem)]
    assert least == min(variants.microseconds(variant, problem, multiprocessors) for variant in suitable) > 0


@given(PROBLEMS, strategies.sampled_from(variants.VARIANTS))
def test_a_transposed_product_takes_a_transposed_variant(problem, variant):
    turned = Problem(problem.n, problem.m, problem.k, problem.b_is_k_major, problem.a_is_k_major, *problem[5:])
    other = variant._replace(is_turned=not variant.is_turned)
    assert other.suits(turned) == variant.suits(problem)
    both = (variants.microseconds(v, p, MULTIPROCESSORS) for v, p in ((variant, problem), (other, turned)))
    assert next(both) == pytest.approx(next(both))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ((4096, 4096, 4096), Variant(128, 256, down=2)),
        ((8192, 8192, 1024), Variant(128, 224, down=2)),
        # The 384 tiles of 192 columns fill 2.9 rounds of the GPU. The 288 tiles of 256 columns would fill 2.2 rounds.
        ((3072, 3072, 3072), Variant(128, 192, down=2)),
        # The 920 tiles of 224 columns fill 6.97 rounds of the GPU. The 800 tiles of 256 columns would fill 6.06 rounds.
        ((5120, 5120, 5120), Variant(128, 224, down=2)),
        # The product has only 64 tiles, so two CTAs divide K.
        ((128, 4096, 4096), Variant(128, 64, splits=2)),
        # The product has 96 tiles, so one CTA computes all of K.
        ((16, 6144, 4096), Variant(64, 16, is_turned=True)),
        # For this shape, the kernel reads the larger operand once.
        ((256, 8192, 8192), Variant(128, 128, across=2, is_turned=True)),
        # The bandwidth of L2 limits the speed for this shape.
        (
            (2500, 5000, 3000),
            Variant(128, 224, down=2, across=2, is_turned=True),
        ),
        # The kernel reads the weights once, because the weights are the rows of the product.
        ((1, 14336, 4096), Variant(128, 8, is_turned=True)),
    ],
)
def test_shapes_whose_best_variant_was_measured(sizes, expected):
    assert variants.choose(Problem(*sizes), MULTIPROCESSORS) == expected


def test_more_work_takes_longer():
    variant, sizes = Variant(128, 128), (512, 2048, 8192)
    times = [variants.microseconds(variant, Problem(size, size, size), MULTIPROCESSORS) for size in sizes]
    assert times == sorted(times) and times[0] > variants.LAUNCH_US
