"""A kernel in which warpgroup 1 multiplies the tiles without a wait for the copies of warpgroup 0."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(1, threads=256):
            a = T.alloc_shared((M, 64), "float16")
            b = T.alloc_shared((64, N), "float16")
            c = T.alloc_fragment((M, N), "float")
            full = T.alloc_barrier(arrive_count=128)
            empty = T.alloc_barrier(arrive_count=128)
            with T.ws(1):
                T.clear(c)
            for k in T.Pipelined(K // 64, num_stages=0):
                with T.ws(0):
                    T.barrier_wait(empty, (k + 1) % 2)
                    T.tma_copy(A[0, k * 64], a, barrier=full)
                    T.tma_copy(B[k * 64, 0], b, barrier=full)
                    T.barrier_arrive(full)
                with T.ws(1):
                    T.gemm(a, b, c)
                    T.barrier_arrive(empty)
            with T.ws(1):
                T.copy(c, C)

    return main


matmul(64, 64, 128)(*(torch.randn(*shape, device="cuda", dtype=torch.float16) for shape in ((64, 128), (128, 64))))
