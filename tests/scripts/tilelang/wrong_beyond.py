"""A load beyond the tensor, in a kernel that TileLang compiles without bounds checks."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(pass_configs={tilelang.PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS: True})
def scale(N, block):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Out: T.Tensor((N + block,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
            at = bx * block + T.get_thread_binding()
            Out[at] = X[at] * 2

    return main


scale(100, 64)(torch.ones(100, device="cuda"), torch.zeros(164, device="cuda"))
