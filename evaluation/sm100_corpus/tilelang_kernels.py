"""Kernels of TileLang for sm_100.

The kernels are matrix products of four types, with specialized warps, and with A in tensor memory.

TileLang 0.1.15 emits no barrier before it frees tensor memory or multiplies operands in tensor memory, so the kernels
synchronize first. The products have no pipeline stages, because with stages TileLang copies into tiles that a product
still reads.

``python tilelang_kernels.py CASE`` launches a kernel and compares its result with NumPy's. Without a name, the script
lists the cases.
"""

from __future__ import annotations

import sys

import numpy as np
import tilelang
import tilelang.language as T
import torch

DEVICE = "cuda"
PLAIN = {
    tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True,
    tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
}
TMA = {tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True}


def product(M, N, K, bm, bn, bk, in_type, out_type, sum_type, stages, threads=128):
    @T.prim_func
    def main(A: T.Tensor((M, K), in_type), B: T.Tensor((N, K), in_type), C: T.Tensor((M, N), out_type)):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            a = T.alloc_shared((bm, bk), in_type)
            b = T.alloc_shared((bn, bk), in_type)
            sums = T.alloc_tmem((bm, bn), sum_type)
            done = T.alloc_barrier(1)
            local = T.alloc_fragment((bm, bn), sum_type)
            shared = T.alloc_shared((bm, bn), out_type)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[bx * bn, k * bk], b)
                T.tcgen05_gemm(a, b, sums, transpose_B=True, mbar=done, clear_accum=k == 0)
                T.mbarrier_wait_parity(done, k % 2)
            T.copy(sums, local)
            T.copy(local, shared)
            T.copy(shared, C[by * bm, bx * bn])

    return main


def specialized(M, N, K, bm, bn, bk, stages):
    """Return a kernel with a warp that loads, a warp that multiplies, and four warps that store."""

    @T.prim_func
    def main(A: T.Tensor((M, K), "bfloat16"), B: T.Tensor((K, N), "bfloat16"), C: T.Tensor((M, N), "bfloat16")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=256) as (bx, by):
            a = T.alloc_shared((stages, bm, bk), "bfloat16")
            b = T.alloc_shared((stages, bk, bn), "bfloat16")
            sums, full = T.alloc_tmem([bm, bn], "float"), T.alloc_barrier([1])
            local, shared = T.alloc_fragment((bm, bn), "float"), T.alloc_shared((bm, bn), "bfloat16")
            loaded, consumed = T.alloc_barrier([32] * stages), T.alloc_barrier([1] * stages)
            tx = T.get_thread_binding()
            if tx < 32:
                for k in T.serial(T.ceildiv(K, bk)):
                    T.mbarrier_wait_parity(consumed[k % stages], ((k // stages) & 1) ^ 1)
                    T.tma_copy(
                        A[by * bm : (by + 1) * bm, k * bk : (k + 1) * bk],
                        a[k % stages, :, :],
                        barrier=loaded[k % stages],
                    )
                    T.tma_copy(
                        B[k * bk : (k + 1) * bk, bx * bn : (bx + 1) * bn],
                        b[k % stages, :, :],
                        barrier=loaded[k % stages],
                    )
                    T.mbarrier_arrive(loaded[k % stages])
            elif tx < 64:
                for k in T.serial(T.ceildiv(K, bk)):
                    T.mbarrier_wait_parity(loaded[k % stages], (k // stages) & 1)
                    T.tcgen05_gemm(
                        a[k % stages, :, :], b[k % stages, :, :], sums, mbar=consumed[k % stages], clear_accum=k == 0
                    )
                T.tcgen05_mma_arrive(full)
            elif tx >= 128:
                T.mbarrier_wait_parity(full, 0)
                T.copy(sums, local)
                T.copy(local, shared)
                T.copy(shared, C[by * bm, bx * bn])
            T.sync_threads()

    return main


def automatic(M, N, K, bm, bn, bk, in_type, stages, threads=128):
    """Return a kernel with ``T.gemm``, for which the compiler selects the instruction and the place of the sums."""

    @T.prim_func
    def main(A: T.Tensor((M, K), in_type), B: T.Tensor((N, K), in_type), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, bn), T.ceildiv(M, bm), threads=threads) as (bx, by):
            a, b = T.alloc_shared((bm, bk), in_type), T.alloc_shared((bn, bk), in_type)
            sums = T.alloc_fragment((bm, bn), "float")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(K, bk), num_stages=stages):
                T.copy(A[by * bm, k * bk], a)
                T.copy(B[bx * bn, k * bk], b)
                T.gemm(a, b, sums, transpose_B=True)
            T.copy(sums, C[by * bm, bx * bn])

    return main


def chained(M, K, N, D):
    """Return a kernel in which the first product's sums become the A operand of the second product, in tensor
    memory."""

    @T.prim_func
    def main(
        Q: T.Tensor((M, K), "bfloat16"),
        Ks: T.Tensor((N, K), "bfloat16"),
        V: T.Tensor((N, D), "bfloat16"),
        Out: T.Tensor((M, D), "float32"),
    ):
        with T.Kernel(1, threads=128):
            q, k = T.alloc_shared((M, K), "bfloat16"), T.alloc_shared((N, K), "bfloat16")
            v = T.alloc_shared((N, D), "bfloat16")
            s, p, o = T.alloc_tmem((M, N), "float"), T.alloc_tmem((M, N), "bfloat16"), T.alloc_tmem((M, D), "float")
            sl, pl = T.alloc_fragment((M, N), "float"), T.alloc_fragment((M, N), "bfloat16")
            ol = T.alloc_fragment((M, D), "float")
            first, second = T.alloc_barrier(1), T.alloc_barrier(1)
            T.copy(Q, q)
            T.copy(Ks, k)
            T.copy(V, v)
            T.tcgen05_gemm(q, k, s, transpose_B=True, mbar=first, clear_accum=True)
            T.mbarrier_wait_parity(first, 0)
            T.copy(s, sl)
            T.copy(sl, pl)
            T.copy(pl, p)
            T.sync_threads()
            T.tcgen05_gemm(p, v, o, mbar=second, clear_accum=True)
            T.mbarrier_wait_parity(second, 0)
            T.copy(o, ol)
            T.copy(ol, Out)
            T.sync_threads()

    return main


def numbers(seed: int, shape: tuple[int, ...], dtype: torch.dtype, high: int = 4) -> torch.Tensor:
    """Return small integers, which every type represents exactly."""
    found = np.random.default_rng(seed).integers(0 if dtype == torch.uint8 else -high + 1, high, shape)
    return torch.from_numpy(found.astype(np.float32)).to(dtype).to(DEVICE)


def wide(tensor: torch.Tensor) -> np.ndarray:
    return tensor.cpu().to(torch.float64).numpy()


def same(found: torch.Tensor, expected: np.ndarray) -> None:
    expected = torch.from_numpy(expected).to(found.dtype).to(torch.float64).numpy()
    off = np.abs(wide(found) - expected).max()
    print(f"largest difference {off:.3g}, bound 0")
    if off != 0:
        sys.exit("the result differs from NumPy's")


def run(kernel, a, b, c, configs=None, transposed=True):
    tilelang.compile(kernel, target="cuda", pass_configs=configs)(a, b, c)
    same(c, wide(a) @ (wide(b).T if transposed else wide(b)))


def run_product(dtype, out=torch.float32, M=128, N=128, K=128, block=(128, 128, 64), stages=0, configs=PLAIN):
    names = {torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2"}
    of = lambda each: names.get(each, str(each).removeprefix("torch."))  # noqa: E731
    sums = "int32" if out == torch.int32 else "float"
    kernel = product(M, N, K, *block, of(dtype), of(out), sums, stages)
    a, b = numbers(0, (M, K), dtype), numbers(1, (N, K), dtype)
    run(kernel, a, b, torch.empty((M, N), dtype=out, device=DEVICE), configs)


def run_specialized(M=128, N=128, K=256, stages=2):
    a, b = numbers(0, (M, K), torch.bfloat16), numbers(1, (K, N), torch.bfloat16)
    run(
        specialized(M, N, K, 128, 128, 64, stages),
        a,
        b,
        torch.empty((M, N), dtype=torch.bfloat16, device=DEVICE),
        None,
        False,
    )


def run_automatic(dtype=torch.float16, stages=2, configs=TMA):
    a, b = numbers(0, (128, 128), dtype), numbers(1, (64, 128), dtype)
    kernel = automatic(128, 64, 128, 128, 64, 64, str(dtype).removeprefix("torch."), stages)
    run(kernel, a, b, torch.empty((128, 64), dtype=torch.float32, device=DEVICE), configs)


def run_chained():
    q, k = numbers(0, (128, 64), torch.bfloat16, 2), numbers(1, (64, 64), torch.bfloat16, 2)
    v, o = numbers(2, (64, 64), torch.bfloat16), torch.empty((128, 64), dtype=torch.float32, device=DEVICE)
    tilelang.compile(chained(128, 64, 64, 64), target="cuda", pass_configs=PLAIN)(q, k, v, o)
    same(o, wide(q) @ wide(k).T @ wide(v))


CASES = {
    "bf16": lambda: run_product(torch.bfloat16),
    "bf16-tma": lambda: run_product(torch.bfloat16, configs=TMA),
    "bf16-512": lambda: run_product(torch.bfloat16, M=256, N=256, K=256),
    "f16": lambda: run_product(torch.float16, out=torch.float16),
    "f16-m64": lambda: run_product(torch.float16, M=64, N=64, block=(64, 64, 64)),
    "f16-n256": lambda: run_product(torch.float16, N=256, block=(128, 256, 64)),
    "s8": lambda: run_product(torch.int8, out=torch.int32),
    "u8": lambda: run_product(torch.uint8, out=torch.int32),
    "e4m3": lambda: run_product(torch.float8_e4m3fn),
    "e5m2": lambda: run_product(torch.float8_e5m2),
    "specialized": run_specialized,
    "specialized-4": lambda: run_specialized(K=512, stages=4),
    "automatic": run_automatic,
    "automatic-bf16": lambda: run_automatic(torch.bfloat16, stages=0),
    "chained": run_chained,
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(CASES))
    for name in sys.argv[1:]:
        CASES[name]()
