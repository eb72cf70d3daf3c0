"""Operands for which the kernels of two examples give exact results on a GPU and on the simulator.

The checks of the examples themselves allow the error of a sum, which may hide a wrong row or a wrong rounding.
"""

from __future__ import annotations

import numpy as np

__all__ = ["ATTENTIONS", "PRODUCTS", "attention", "product"]

# Each row is (batch, heads, kv heads, queries, keys, d, causal). The keys fill two or three tiles, and the last tile is
# partial.
ATTENTIONS = ((1, 2, 1, 140, 300, 64, True), (1, 1, 1, 70, 140, 128, False), (1, 1, 1, 90, 70, 64, True))
PRODUCTS = ((136, 264, 200), (40, 520, 72))  # Each row contains m, n and k.


def attention(module, device, case):
    """Assert that the output of each query is one row of V: the query has a large product with one key only."""
    torch, draw = module.torch, np.random.default_rng(7)
    batches, heads, kv_heads, queries, keys, d, causal = case
    k = draw.choice((-1, 1), (batches, kv_heads, keys, d)).repeat(heads // kv_heads, 1)
    v = draw.integers(-128, 128, (batches, kv_heads, keys, d)).repeat(heads // kv_heads, 1)
    seen = np.minimum(np.arange(queries) + 1 + keys - queries, keys) if causal else np.full(queries, keys)
    chosen = draw.integers(0, np.maximum(seen, 1), (batches, heads, queries))[..., None]
    q = 64 * np.take_along_axis(k, chosen, 2)
    expected = np.take_along_axis(v, chosen, 2) * (seen > 0)[:, None]
    kernel, every = module.Attention(device, d, causal), slice(None, None, heads // kv_heads)
    given = [torch.tensor(each, dtype=kernel.dtype, device="cuda") for each in (q, k[:, every], v[:, every])]
    output = torch.full(q.shape, torch.nan, dtype=kernel.dtype, device="cuda")
    sums = torch.full(q.shape[:3], torch.nan, dtype=torch.float32, device="cuda")
    kernel.prepare(*given, output, sums)()
    assert np.array_equal(output.float().cpu().numpy(), expected)


def product(module, device, case):
    """Assert that each sum of small integers, which is exact in float32, is rounded to the nearest value of
    bfloat16.
    """
    torch, draw = module.torch, np.random.default_rng(8)
    m, n, k = case
    a, b = (draw.integers(-8, 9, (rows, k)) for rows in (m, n))
    kernel = module.compiled()
    given = [torch.tensor(each, dtype=torch.bfloat16, device="cuda") for each in (a, b)]
    output = torch.full((m, n), torch.nan, dtype=torch.bfloat16, device="cuda")
    module.prepare(device, kernel, *given, output)()
    exact = torch.tensor((a @ b.T).astype(np.float32))
    assert (exact.to(torch.bfloat16).float() != exact).any(), "no sum needs a rounding"
    assert torch.equal(output.cpu(), exact.to(torch.bfloat16))
