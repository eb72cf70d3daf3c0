"""A kernel with an unmasked load, which reads beyond the tensor in the last block."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at)  # wrong
    tl.store(out + at, value * 2, mask=at < n)


x = torch.randn(1000, device="cuda")
scale[(4,)](x, torch.empty_like(x), 1000, block=256)
