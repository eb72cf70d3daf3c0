"""A kernel that sets a flag without release and acquire, so that the flag does not order the data."""

import torch
import triton
import triton.language as tl


@triton.jit
def hand_over(data, flag, out):
    if tl.program_id(0) == 0:
        tl.store(data, 7)
        tl.atomic_xchg(flag, 1, sem="relaxed")
    else:
        while tl.atomic_add(flag, 0, sem="relaxed") == 0:
            pass
        tl.store(out, tl.load(data))  # wrong


data, flag, out = (torch.zeros(1, dtype=torch.int32, device="cuda") for _ in range(3))
hand_over[(2,)](data, flag, out)
