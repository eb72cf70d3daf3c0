import tilelang
import tilelang.language as T
import torch

OPTIONS = {tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True}


@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(1, threads=128):
        tile = T.alloc_shared((128,), "float32")
        T.copy(A, tile)
        T.fill(tile[70:86], 7.0)
        T.copy(tile, B)


a, b = torch.arange(128.0, device="cuda"), torch.zeros(128, device="cuda")
tilelang.compile(main, target="cuda", pass_configs=OPTIONS)(a, b)
expected = a.clone()
expected[70:86] = 7.0
torch.testing.assert_close(b, expected)
