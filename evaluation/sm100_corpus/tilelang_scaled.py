"""Kernels of TileLang for sm_100 whose products have block scales: mxfp8, with a scale for each 128 elements of K.

One warp moves the scales to tensor memory and multiplies; all warps copy the tiles, and wait for each product.

``python tilelang_scaled.py CASE`` launches a kernel and compares its result with NumPy's. Without a name, the script
lists the cases.
"""

from __future__ import annotations

import sys

import numpy as np
import tilelang
import tilelang.language as T
import torch

DEVICE = "cuda"
BLOCK = 128
CONFIGS = {
    tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True,
    tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
}
NAMES = {torch.float8_e4m3fn: "float8_e4m3fn", torch.float8_e5m2: "float8_e5m2"}


# fmt: off
def scaled(M, N, K, bn, a_type, b_type):
    """Return a kernel whose words of scales contain the scales of four blocks of K."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), a_type), B: T.Tensor((N, K), b_type), OfA: T.Tensor((-(-K // 512), M), "uint32"),
        OfB: T.Tensor((-(-K // 512), N), "uint32"), C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(N // bn, M // BLOCK, threads=128) as (bx, by):
            a, b = T.alloc_shared((BLOCK, BLOCK), a_type), T.alloc_shared((bn, BLOCK), b_type)
            of_a, of_b = T.alloc_shared((BLOCK,), "uint32"), T.alloc_shared((bn,), "uint32")
            sums, a_scales = T.alloc_tmem([BLOCK, bn], "float"), T.alloc_tmem([BLOCK, 4], "uint32")
            b_scales = T.alloc_tmem([BLOCK, bn // 128 * 4], "uint32")
            done, local = T.alloc_barrier(1), T.alloc_fragment((BLOCK, bn), "float")
            thread = T.get_thread_binding()
            for k in T.serial(K // BLOCK):
                T.copy(A[by * BLOCK, k * BLOCK], a)
                T.copy(B[bx * bn, k * BLOCK], b)
                if k % 4 == 0:
                    T.copy(OfA[k // 4, by * BLOCK : (by + 1) * BLOCK], of_a)
                    T.copy(OfB[k // 4, bx * bn : (bx + 1) * bn], of_b)
                T.sync_threads()
                if thread < 32:  # noqa: SIM102 (TileLang translates each condition)
                    if k % 4 == 0:
                        T.tcgen05_sf_warp_transpose(of_a)
                        T.tcgen05_sf_warp_transpose(of_b)
                        T.fence_proxy_async()
                        T.sync_warp()
                        T.tcgen05_cp_warpx4(of_a, a_scales)
                        T.tcgen05_cp_warpx4(of_b, b_scales)
                T.fence_proxy_async()
                T.sync_threads()
                if thread < 32:
                    T.tcgen05_gemm_blockscaled(a, b, sums, a_scales, b_scales, transpose_B=True, mbar=done,
                        clear_accum=k == 0, k_start=k * BLOCK, sf_a_granularity_k=BLOCK, sf_b_granularity_k=BLOCK)
                T.mbarrier_wait_parity(done, k % 2)
            T.copy(sums, local)
            T.copy(local, C[by * BLOCK, bx * bn])
            T.sync_threads()

    return main
# fmt: on


def factor(rows: int, K: int, dtype: torch.dtype, seed: int) -> torch.Tensor:
    """Return small integers, which every type represents exactly."""
    numbers = np.random.default_rng(seed).integers(-4, 5, (rows, K)).astype(np.float32)
    return torch.from_numpy(numbers).to(dtype).to(DEVICE)


def scales(rows: int, K: int, seed: int) -> tuple[torch.Tensor, np.ndarray]:
    """Return the words of scales, [K / 512, rows], and the scales as numbers, [rows, K / 128]."""
    codes = np.random.default_rng(seed).integers(125, 129, (rows, -(-K // 512) * 4), np.uint8)
    words = np.ascontiguousarray(codes.view(np.uint32).T)
    return torch.from_numpy(words.view(np.int32)).view(torch.uint32).to(DEVICE), np.exp2(codes[:, : K // BLOCK] - 127.0)


def run(a_type=torch.float8_e4m3fn, b_type=torch.float8_e4m3fn, M=128, N=128, K=256, bn=128):
    a, b = factor(M, K, a_type, 0), factor(N, K, b_type, 1)
    (of_a, a_numbers), (of_b, b_numbers) = scales(M, K, 2), scales(N, K, 3)
    c = torch.empty((M, N), dtype=torch.float32, device=DEVICE)
    kernel = scaled(M, N, K, bn, NAMES[a_type], NAMES[b_type])
    tilelang.compile(kernel, target="cuda", pass_configs=CONFIGS)(a, b, of_a, of_b, c)
    left, right = (
        each.cpu().double().numpy() * np.repeat(numbers, BLOCK, 1) for each, numbers in ((a, a_numbers), (b, b_numbers))
    )
    off = np.abs(c.cpu().double().numpy() - left @ right.T).max()
    print(f"largest difference {off:.3g}, bound 0")
    if off != 0:
        sys.exit("the result differs from NumPy's")


CASES = {
    "mxfp8": run,
    "mxfp8-e5m2": lambda: run(torch.float8_e5m2, torch.float8_e4m3fn),
    "mxfp8-n256": lambda: run(N=256, bn=256),
    "mxfp8-k640": lambda: run(M=256, K=640),
}

if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("\n".join(CASES))
    for name in sys.argv[1:]:
        CASES[name]()
