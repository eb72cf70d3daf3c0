"""A kernel that updates a sum by a load and a store instead of an atomic operation."""

import torch
import triton
import triton.language as tl


@triton.jit
def total(x, out, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    part = tl.sum(tl.load(x + at))
    before = tl.load(out)
    tl.store(out, before + part)  # wrong


total[(4,)](torch.ones(1024, device="cuda"), torch.zeros(1, device="cuda"), block=256)
