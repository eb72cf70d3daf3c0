"""A kernel in which each block also stores half of the next block's elements."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit
def number(blocks, block):
    @T.prim_func
    def main(Out: T.Tensor((blocks * block,), "int32")):
        with T.Kernel(blocks - 1, threads=block) as bx:
            tx = T.get_thread_binding()
            Out[bx * (block // 2) + tx] = bx

    return main


number(4, 128)(torch.zeros(512, device="cuda", dtype=torch.int32))
