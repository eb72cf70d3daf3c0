"""Tests of the product with tensor memory for compute capability 10, on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from benchmarks.kernels import example
from cuda_tma import simulate

SOURCE = example("gemm_sm100").SOURCE
M, N, K = 300, 264, 136  # The tiles cross the edges of all three dimensions: 2 x 2 tiles, with 3 steps of K each.


def multiplied(source: str, schedules: int) -> tuple[simulate.Report, np.ndarray, np.ndarray]:
    """Return the report, the product, and NumPy's product of exact operands. A pair of CTAs computes four tiles."""
    gpu = simulate.Device("10.0", multiprocessor_count=2, schedules=schedules)
    kernel = gpu.compile(source, "gemm", constants={"threads": "THREADS"})
    assert kernel.parameters.dynamic_shared_bytes <= 227 << 10
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, (rows, K)).astype(bfloat16) for rows in (M, N))
    c = np.full((M, N), np.nan, bfloat16)
    (half_m, tile_k), (half_n, _) = (kernel.parameters[name].map_type.tile_dim for name in ("a_map", "b_map"))
    down, across, deep = -(-M // (2 * half_m)), -(-N // (2 * half_n)), -(-K // tile_k)
    config = simulate.Config(2 * down * across, kernel.parameters.constants["threads"])
    report = gpu.launch(config, kernel, a, b, c, down, across, deep)
    return report, c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(bfloat16)


@pytest.mark.parametrize("schedules", [1, 4])
def test_the_product_is_that_of_numpy(schedules):
    report, c, expected = multiplied(SOURCE, schedules)
    assert report.findings == ()
    assert np.array_equal(c.astype(float), expected.astype(float))


# Each row contains a statement, the wrong statement in its place, and the line of the error.
WRONG = {
    "sums are overwritten before they are stored": (
        "shared.sums.empty[half.index].wait_cluster(half.parity ^ 1);",
        "",
        "tcgen05::mma<TILE_M, TILE_N, 2>",
    ),
    "a stage is free before its products": (
        "tcgen05::commit_multicast<2>(shared.ring.empty[at.index], 3);",
        "for (int cta = 0; cta < 2; ++cta) shared.ring.empty[at.index].in_cta(cta).arrive();",
        "cta_group2::load(&shared.a[at.index]",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_kernel_has_an_error(name):
    """The error of the wrong kernel has the kind tcgen05-order, and contains the line of the operation that is not
    ordered."""
    right, wrong, line = WRONG[name]
    assert SOURCE.count(right) == 1
    source = SOURCE.replace(right, wrong)
    report, *_ = multiplied(source, 1)
    error = report.errors[0]
    (at,) = (number for number, text in enumerate(source.splitlines(), 1) if line in text)
    assert error.kind == "tcgen05-order"
    assert at in [place.line for place in error.source if place.file.endswith("gemm.cu")]
