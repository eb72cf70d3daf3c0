"""Right kernels of TileLang: a pipelined product by TMA, a sum by atomic operations, and two kernels in one
function."""

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_m, block_n, block_k, stages):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_n), T.ceildiv(M, block_m), threads=128) as (bx, by):
            a = T.alloc_shared((block_m, block_k), "float16")
            b = T.alloc_shared((block_k, block_n), "float16")
            c = T.alloc_fragment((block_m, block_n), "float")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block_k), num_stages=stages):
                T.copy(A[by * block_m, k * block_k], a)
                T.copy(B[k * block_k, bx * block_n], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_m, bx * block_n])

    return main


@tilelang.jit
def total(N, block):
    @T.prim_func
    def main(X: T.Tensor((N,), "float32"), Out: T.Tensor((1,), "float32")):
        with T.Kernel(T.ceildiv(N, block), threads=block) as bx:
            tx = T.get_thread_binding()
            T.atomic_add(Out[0], X[bx * block + tx])

    return main


@tilelang.jit(out_idx=[-1])
def largest(rows, columns):
    @T.prim_func
    def main(X: T.Tensor((rows, columns), "float16"), Y: T.Tensor((rows,), "float16")):
        with T.Kernel(rows, threads=32) as row:
            x, y = T.alloc_fragment((1, columns), "float16"), T.alloc_fragment((1,), "float16")
            T.copy(X[row, 0], x)
            T.reduce_max(x, y, dim=1, clear=True)
            T.copy(y, Y[row])

    return main


def main():
    kernel = matmul(128, 128, 128, 64, 64, 32, 2)
    a, b = (torch.randn(128, 128, device="cuda", dtype=torch.float16) for _ in range(2))
    c = kernel(a, b)
    assert c.is_cuda
    torch.testing.assert_close(c, a @ b, rtol=1e-2, atol=1e-2)
    profiler = kernel.get_profiler()
    profiler.assert_allclose(lambda x, y: x @ y, rtol=1e-2, atol=1e-2)
    milliseconds = profiler.do_bench()
    assert milliseconds != milliseconds
    x, out = torch.ones(256, device="cuda"), torch.zeros(1, device="cuda")
    total(256, 64)(x, out)
    assert out.item() == 256
    torch.testing.assert_close(largest(4, 64)(a[:4, :64].contiguous()), a[:4, :64].amax(1))
    print("done")


main()
