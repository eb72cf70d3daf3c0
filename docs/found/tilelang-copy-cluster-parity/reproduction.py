import tilelang
import tilelang.language as T
import torch


@T.prim_func
def main(A: T.Tensor((256, 64), "float16"), B: T.Tensor((256, 128), "float16")):
    with T.ClusterKernel(2, 1, threads=128, cluster_dims=(2, 1, 1)) as (bx, _):
        tile = T.alloc_shared((4, 64, 64), "float16")
        bars = T.alloc_barrier([1, 1, 1, 1])
        for s in T.serial(4):
            T.copy_cluster(
                A[s * 64 : (s + 1) * 64, 0:64], tile[s, 0:64, 0:64], cluster_mask=0b11, remote_barrier=bars[s]
            )
            T.copy(tile[s, 0:64, 0:64], B[s * 64 : (s + 1) * 64, bx * 64 : (bx + 1) * 64])


a, b = torch.randn(256, 64, device="cuda").half(), torch.zeros(256, 128, device="cuda").half()
tilelang.compile(main, target="cuda")(a, b)
torch.testing.assert_close(b, torch.cat([a, a], 1))
