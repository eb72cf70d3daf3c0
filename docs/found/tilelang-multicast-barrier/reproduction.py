import tilelang
import tilelang.language as T
import torch


@T.prim_func
def main(A: T.Tensor((128, 64), "float16"), B: T.Tensor((128, 128), "float16")):
    with T.ClusterKernel(2, 1, threads=128, cluster_dims=(2, 1, 1)) as (bx, _):
        tile = T.alloc_shared((128, 64), "float16")
        T.copy_cluster(A[0:128, 0:64], tile, cluster_mask=0b11)
        T.copy(tile, B[0:128, bx * 64 : (bx + 1) * 64])


a, b = torch.randn(128, 64, device="cuda").half(), torch.zeros(128, 128, device="cuda").half()
tilelang.compile(main, target="cuda")(a, b)
torch.testing.assert_close(b, torch.cat([a, a], 1))
