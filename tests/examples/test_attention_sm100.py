"""Tests of attention with weights in tensor memory, for compute capability 10, on the simulator."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

from benchmarks.kernels import example
from cuda_tma import simulate

EXAMPLE = example("attention_sm100")


def attention(q, k, v, scale, causal):
    """Return the expected output in float64."""
    q, k, v = (
        each.astype(float) for each in (q, *(np.repeat(each, q.shape[1] // k.shape[1], axis=1) for each in (k, v)))
    )
    scores = scale * q.astype(float) @ k.swapaxes(2, 3)
    if causal:
        scores[..., ~np.tri(*scores.shape[2:], scores.shape[3] - scores.shape[2], dtype=bool)] = -np.inf
    greatest = scores.max(axis=3, keepdims=True)
    weights = np.exp(scores - np.where(np.isinf(greatest), 0, greatest))
    return weights @ v / np.maximum(weights.sum(axis=3, keepdims=True), 1e-9)


def attended(schedules, source, heads, kv_heads, queries, keys, causal):
    """Return the findings of a launch, and the largest error of its output."""
    gpu = simulate.Device("10.0", schedules=schedules)
    kernel = gpu.compile(source, f"attention<{str(causal).lower()}>", constants=EXAMPLE.CONSTANTS)
    rows, width, threads = (kernel.parameters.constants[name] for name in ("rows", "width", "threads"))
    random = np.random.default_rng(1)
    shapes = (1, heads, queries, width), *2 * [(1, kv_heads, keys, width)]
    q, k, v = (random.standard_normal(shape).astype(bfloat16) for shape in shapes)
    output, scale = np.full_like(q, np.nan), width**-0.5
    problem = np.array((queries, keys, heads // kv_heads, scale), EXAMPLE.PROBLEM).tobytes()
    config = simulate.Config((-(-queries // rows), heads), threads)
    findings = gpu.launch(config, kernel, q, k, v, output, problem).findings
    return findings, np.abs(output.astype(float) - attention(q, k, v, scale, causal)).max()


@pytest.mark.parametrize(
    ("schedules", "case"),
    [
        (1, (2, 1, 140, 200, True)),  # Two heads share a kv head, and a tile has keys that only some queries see.
        (4, (1, 1, 70, 300, False)),  # The tiles of queries and keys cross the ends of the sequence.
    ],
)
def test_attention_equals_numpy(schedules, case):
    findings, error = attended(schedules, EXAMPLE.SOURCE, *case)
    assert findings == () and error < 0.01


def test_weights_of_two_tiles_in_the_same_columns_are_found():
    """The weights of a tile overwrite those of the preceding tile, which a product may still read."""
    right, wrong = "2 * ROWS + D + i * ROWS / 2", "2 * ROWS + D"
    assert EXAMPLE.SOURCE.count(right) == 1
    findings, _ = attended(1, EXAMPLE.SOURCE.replace(right, wrong), 1, 1, 20, 140, False)
    errors = [(each.kind, each.message) for each in findings if each.severity == "error"]
    assert [kind for kind, _ in errors] == ["tcgen05-order"]
    assert (
        "tcgen05.st of thread 0 (warp 0) writes columns 384 to 399 of tensor memory, which tcgen05.mma" in errors[0][1]
    )


def test_the_script_runs(monkeypatch, capsys):
    """In this case, the first queries see no key, and their output is 0."""
    pytest.importorskip("torch")
    from tests.support.simulated_examples import simulated

    module = example("attention_sm100")
    for name, value in simulated("10.0").items():
        monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(module, "SIZES", ((1, 1, 1, 150, 100, True),))
    module.main()
    assert capsys.readouterr().out == "ok: 150 queries and 100 keys of 1 heads, causal\n"
