"""A kernel in which each program also stores half of the next program's block."""

import torch
import triton
import triton.language as tl


@triton.jit
def number(out, block: tl.constexpr):
    program = tl.program_id(0)
    at = program * (block // 2) + tl.arange(0, block)
    tl.store(out + at, at * 0 + program)  # wrong


number[(4,)](torch.zeros(640, dtype=torch.int32, device="cuda"), block=256)
