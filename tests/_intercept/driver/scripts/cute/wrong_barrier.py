"""A kernel of CuTe DSL that reverses values through shared memory without a barrier."""

import cutlass
import cutlass.utils
import torch
from cutlass import cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def reverse(values: cute.Tensor):
    smem = cutlass.utils.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout(64))
    thread, _, _ = cute.arch.thread_idx()
    tile[thread] = values[thread]
    values[thread] = tile[63 - thread]  # wrong


@cute.jit
def run(values: cute.Tensor):
    reverse(values).launch(grid=[1, 1, 1], block=[64, 1, 1], smem=256)


run(from_dlpack(torch.arange(64, dtype=torch.float32, device="cuda")))
