"""Ten public issues about the synchronization of TileLang's kernels, each as a small kernel.

``python tilelang_issues.py CASE`` compiles and launches a kernel; run it below ``cuda-tma sanitize``. Without a name,
the script lists the cases. ``README.md`` has the result with each release.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import tilelang
import tilelang.language as T
import torch

PLAIN = {
    tilelang.PassConfigKey.TL_DISABLE_TMA_LOWER: True,
    tilelang.PassConfigKey.TL_DISABLE_WARP_SPECIALIZED: True,
}
DEVICE = "cuda"


def launch(kernel, *tensors, configs=None) -> None:
    tilelang.disable_cache()
    compiled = tilelang.compile(kernel, target="cuda", pass_configs=configs)
    if "--source" in sys.argv:
        print(compiled.get_kernel_source())
    compiled(*tensors)


def case_2556() -> None:
    """In the kernel, 48 of 64 threads write a tile, and read values that other threads wrote."""

    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((64,), "float32")
            if tx < 48:
                for step in T.serial(4):
                    tile[tx] = A[tx] + step
                    B[tx] = B[tx] + tile[47 - tx]

    launch(main, torch.arange(64.0, device=DEVICE), torch.zeros(64, device=DEVICE), configs=PLAIN)


def case_2566() -> None:
    """A pipelined loop of one iteration, with specialized warps."""
    size = 128

    @T.prim_func
    def main(
        A: T.Tensor((size, 64), "float16"), B: T.Tensor((64, size), "float16"), C: T.Tensor((size, size), "float16")
    ):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((size, 64), "float16"), T.alloc_shared((64, size), "float16")
            sums = T.alloc_fragment((size, size), "float32")
            T.clear(sums)
            for k in T.Pipelined(1, num_stages=2):
                T.copy(A[0:size, k * 64 : (k + 1) * 64], a)
                T.copy(B[k * 64 : (k + 1) * 64, 0:size], b)
                T.gemm(a, b, sums)
            T.copy(sums, C)

    a, b = torch.ones(size, 64, device=DEVICE).half(), torch.ones(64, size, device=DEVICE).half()
    launch(main, a, b, torch.zeros(size, size, device=DEVICE).half())


def case_2566_rows() -> None:
    """A pipelined loop of one iteration over rows, with specialized warps: the copy of a row is one-dimensional."""

    @T.prim_func
    def main(A: T.Tensor((1, 64, 64), "float16"), C: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float16")
            T.clear(sums)
            for k in T.Pipelined(1, num_stages=2):
                T.copy(A[k, 0:64, 0:64], a)
                for i, j in T.Parallel(64, 64):
                    sums[i, j] += a[i, j]
            T.copy(sums, C)

    launch(main, torch.ones(1, 64, 64, device=DEVICE).half(), torch.zeros(64, 64, device=DEVICE).half())


def case_2612() -> None:
    """A loop in a condition of the thread writes a tile, and reads values that other threads wrote."""

    @T.prim_func
    def main(A: T.Tensor((128,), "int32"), B: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            tile = T.alloc_shared((128,), "int32")
            if tx % 4 == 0:
                for step in T.serial(4):
                    tile[tx] = A[tx] + step
                    B[tx] = B[tx] + tile[(tx + 64) % 128]

    numbers = torch.arange(128, dtype=torch.int32, device=DEVICE)
    launch(main, numbers, torch.zeros(128, dtype=torch.int32, device=DEVICE), configs=PLAIN)


def case_2613() -> None:
    """Two groups of warps multiply one tile, which all threads copy in each iteration."""
    steps = 4

    @T.prim_func
    def main(
        A: T.Tensor((64, 64 * steps), "float16"),
        B: T.Tensor((64 * steps, 128), "float16"),
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
            for k in T.serial(steps):
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

    a, b = torch.ones(64, 64 * steps, device=DEVICE).half(), torch.ones(64 * steps, 128, device=DEVICE).half()
    launch(main, a, b, torch.zeros(64, 128, device=DEVICE), configs=PLAIN)


def case_2634() -> None:
    """A sparse product of tiles that the threads wrote."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 32), "float16"),
        E: T.Tensor((128, 8), "uint8"),
        B: T.Tensor((64, 128), "float16"),
        C: T.Tensor((128, 128), "float32"),
    ):
        with T.Kernel(1, threads=128):
            a, b = T.alloc_shared((128, 32), "float16"), T.alloc_shared((64, 128), "float16")
            e = T.alloc_shared((128, 8), "uint8")
            sums = T.alloc_fragment((128, 128), "float32")
            T.clear(sums)
            T.copy(A, a)
            T.copy(E, e)
            T.copy(B, b)
            T.gemm_sp(a, e, b, sums, transpose_A=False, transpose_B=False)
            T.copy(sums, C)

    a, b = torch.ones(128, 32, device=DEVICE).half(), torch.ones(64, 128, device=DEVICE).half()
    e = torch.full((128, 8), 0x44, dtype=torch.uint8, device=DEVICE)
    launch(main, a, e, b, torch.zeros(128, 128, device=DEVICE), configs=PLAIN)


def case_2698() -> None:
    """A fill of a part of a tile follows a copy into the tile."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((128,), "float32")
            T.copy(A, tile)
            T.fill(tile[70:86], 7.0)
            T.copy(tile, B)

    launch(main, torch.arange(128.0, device=DEVICE), torch.zeros(128, device=DEVICE), configs=PLAIN)


def case_2699() -> None:
    """A tile is cleared after other threads read it; sm_100 and later clear it by st.bulk."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float32")
            local = T.alloc_fragment((64, 64), "float32")
            T.copy(A, tile)
            for i, j in T.Parallel(64, 64):
                local[i, j] = tile[63 - i, j]
            T.clear(tile)
            T.copy(local, B)
            T.copy(tile, C)

    a = torch.ones(64, 64, device=DEVICE)
    launch(main, a, torch.zeros_like(a), torch.zeros_like(a), configs=PLAIN)


def case_2703() -> None:
    """A tile is cleared by st.bulk, and then partly written by other threads."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            tile = T.alloc_shared((64, 64), "float32")
            T.clear(tile)
            for i, j in T.Parallel(64, 64):
                if i < 40:
                    tile[i, j] = A[i, j]
            T.copy(tile, B)

    a = torch.ones(64, 64, device=DEVICE)
    launch(main, a, torch.zeros_like(a), configs=PLAIN)


def case_2927() -> None:
    """A copy to all CTAs of a cluster in a loop, with another barrier in each iteration."""

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

    a = torch.arange(256 * 64, device=DEVICE).reshape(256, 64).half()
    launch(main, a, torch.zeros(256, 128, device=DEVICE).half())


def case_3030() -> None:
    """A barrier that expects no arrival."""

    @T.prim_func
    def main(A: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            bar = T.alloc_barrier(0)
            T.mbarrier_arrive(bar)
            T.mbarrier_wait_parity(bar, 0)
            A[tx] = 1.0

    launch(main, torch.zeros(128, device=DEVICE))


CASES: dict[str, Callable[[], None]] = {
    name.removeprefix("case_"): each for name, each in list(globals().items()) if name.startswith("case_")
}

if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.exit("\n".join(CASES))
    CASES[sys.argv[1]]()
    print("launched with", tilelang.__version__)
