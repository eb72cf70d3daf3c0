import tilelang
import tilelang.language as T
import torch

OPTIONS = {tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True}


@T.prim_func
def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
    with T.Kernel(1, threads=128):
        tx = T.get_thread_binding()
        tile = T.alloc_shared((128,), "int32")
        if tx % 4 == 0:
            for step in T.serial(4):
                tile[tx] = A[tx] + step
                B[tx] = B[tx] + tile[(tx + 64) % 128]


a, b = torch.arange(128, dtype=torch.int32, device="cuda"), torch.zeros(128, dtype=torch.int32, device="cuda")
tilelang.compile(main, target="cuda", pass_configs=OPTIONS)(a, b)
index = torch.arange(128, dtype=torch.int32, device="cuda")
expected = torch.where(index % 4 == 0, 4 * ((index + 64) % 128) + 6, 0)
torch.testing.assert_close(b, expected)
