import tilelang
import tilelang.language as T
import torch

STEPS = 4
OPTIONS = {tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True, "tl.disable_warp_specialized": True}


@T.prim_func
def main(
    A: T.Tensor((64, 64 * STEPS), "float16"),
    B: T.Tensor((64 * STEPS, 128), "float16"),
    C: T.Tensor((64, 128), "float32"),
):
    with T.Kernel(1, threads=256):
        a = T.alloc_shared((64, 64), "float16")
        b0, b1 = T.alloc_shared((64, 64), "float16"), T.alloc_shared((64, 64), "float16")
        c0, c1 = T.alloc_fragment((64, 64), "float32"), T.alloc_fragment((64, 64), "float32")
        with T.ws(0):
            T.clear(c0)
        with T.ws(1):
            T.clear(c1)
        for k in T.serial(STEPS):
            T.copy(A[0:64, k * 64 : (k + 1) * 64], a)
            with T.ws(0):
                T.copy(B[k * 64 : (k + 1) * 64, 0:64], b0)
                T.gemm(a, b0, c0)
            with T.ws(1):
                T.copy(B[k * 64 : (k + 1) * 64, 64:128], b1)
                T.gemm(a, b1, c1)
        with T.ws(0):
            T.copy(c0, C[0:64, 0:64])
        with T.ws(1):
            T.copy(c1, C[0:64, 64:128])


a, b = torch.randn(64, 64 * STEPS, device="cuda").half(), torch.randn(64 * STEPS, 128, device="cuda").half()
c = torch.zeros(64, 128, device="cuda")
tilelang.compile(main, target="cuda", pass_configs=OPTIONS)(a, b, c)
torch.testing.assert_close(c, a.float() @ b.float(), rtol=1e-2, atol=1e-1)
