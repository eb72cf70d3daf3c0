"""Calls of Liger's Triton kernels, forward and backward: ``python liger_kernels.py CLONE CASE``."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import torch

sys.path.insert(0, f"{sys.argv[1]}/src")
# The real __init__ would import every kernel.
package = sys.modules["liger_kernel.ops"] = ModuleType("liger_kernel.ops")
package.__path__ = [f"{sys.argv[1]}/src/liger_kernel/ops"]


def of(name: str) -> ModuleType:
    return importlib.import_module(f"liger_kernel.ops.{name}")


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda").requires_grad_()


def compare(ours: torch.Tensor, expected: torch.Tensor, *inputs: torch.Tensor) -> None:
    """Compare two results and their gradients."""
    torch.testing.assert_close(ours, expected, rtol=1e-4, atol=1e-4)
    weight = torch.randn_like(ours)
    found = torch.autograd.grad(ours, inputs, weight, retain_graph=True)
    wanted = torch.autograd.grad(expected, inputs, weight)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def rms() -> None:
    x, w = leaf(7, 320), leaf(320)
    ours = of("rms_norm").LigerRMSNormFunction.apply(x * 1, w, 1e-6, 0.0, "llama", False)
    compare(ours, x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w, x, w)


def layer() -> None:
    x, w, b = leaf(7, 320), leaf(320), leaf(320)
    ours = of("layer_norm").LigerLayerNormFunction.apply(x, w, b, 1e-6)
    compare(ours, torch.nn.functional.layer_norm(x, (320,), w, b, 1e-6), x, w, b)


def swiglu() -> None:
    a, b = leaf(5, 384), leaf(5, 384)
    ours = of("swiglu").LigerSiLUMulFunction.apply(a * 1, b * 1)
    compare(ours, torch.nn.functional.silu(a) * b, a, b)


def softmax() -> None:
    x = leaf(5, 700)
    compare(of("softmax").LigerSoftmaxFunction.apply(x), torch.softmax(x, -1), x)


{"rms": rms, "layer": layer, "swiglu": swiglu, "softmax": softmax}[sys.argv[2]]()
