"""Calls of flash-linear-attention's Triton kernels: ``python fla_kernels.py CLONE CASE``."""

from __future__ import annotations

import sys

import torch

sys.path.insert(0, sys.argv[1])


def l2norm() -> None:
    from fla.modules.l2norm import l2norm_fwd

    x = torch.randn(40, 64, device="cuda")
    found = l2norm_fwd(x, 1e-6)
    expected = x * torch.rsqrt((x * x).sum(-1, keepdim=True) + 1e-6)
    torch.testing.assert_close(found[0] if isinstance(found, tuple) else found, expected, rtol=1e-4, atol=1e-4)


def cumsum() -> None:
    from fla.ops.utils.cumsum import chunk_local_cumsum

    x = torch.randn(1, 128, 2, device="cuda")
    expected = torch.cat([x[:, :64].cumsum(1), x[:, 64:].cumsum(1)], 1)
    torch.testing.assert_close(chunk_local_cumsum(x, 64), expected, rtol=1e-4, atol=1e-4)


def linear() -> None:
    from fla.ops.linear_attn import chunk_linear_attn

    q, k, v = (torch.randn(1, 128, 1, 64, device="cuda") for _ in range(3))
    found, _ = chunk_linear_attn(q, k, v, scale=1.0, normalize=False)
    scores = torch.tril(torch.einsum("bthd,bshd->bhts", q, k))
    torch.testing.assert_close(found, torch.einsum("bhts,bshd->bthd", scores, v), rtol=2e-2, atol=2e-1)


{"l2norm": l2norm, "cumsum": cumsum, "linear": linear}[sys.argv[2]]()
