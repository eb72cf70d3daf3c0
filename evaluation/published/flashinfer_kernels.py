"""Calls of FlashInfer's Triton kernels: ``python flashinfer_kernels.py CLONE CASE``.

The package itself needs a build of its CUDA code. This script imports only its folder of Triton kernels.
"""

from __future__ import annotations

import sys
from types import ModuleType

import torch

for name in ("flashinfer", "flashinfer.triton"):
    package = sys.modules[name] = ModuleType(name)
    package.__path__ = [f"{sys.argv[1]}/{name.replace('.', '/')}"]


def norm() -> None:
    from flashinfer.triton.norm import rms_norm

    x, weight = torch.randn(6, 300, device="cuda"), torch.randn(300, device="cuda")
    out = torch.empty_like(x)
    rms_norm(x, weight, out, 1e-6)
    torch.testing.assert_close(out, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight)


def silu() -> None:
    from flashinfer.triton.activation import silu_and_mul

    x = torch.randn(5, 512, device="cuda")
    expected = torch.nn.functional.silu(x[:, :256]) * x[:, 256:]
    torch.testing.assert_close(silu_and_mul(x), expected)


def merge() -> None:
    from flashinfer.triton.kernels.cascade import merge_state_kernel

    a, b = torch.randn(9, 4, 64, device="cuda"), torch.randn(9, 4, 64, device="cuda")
    m, n = torch.randn(9, 4, device="cuda"), torch.randn(9, 4, device="cuda")
    merged, sums = torch.empty_like(a), torch.empty_like(m)
    merge_state_kernel[(9,)](a, m, b, n, merged, sums, 4, 64, bdx=64, bdy=4)
    total = torch.exp2(m) + torch.exp2(n)
    expected = (a * torch.exp2(m)[..., None] + b * torch.exp2(n)[..., None]) / total[..., None]
    torch.testing.assert_close(merged, expected)
    torch.testing.assert_close(sums, torch.log2(total))


{"norm": norm, "silu": silu, "merge": merge}[sys.argv[2]]()
