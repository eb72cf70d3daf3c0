"""Record the sums and the rounding of tensor cores of compute capability 9.0, by wgmma and mma.sync of every kind of
types.

The script needs ``cuda.core`` and ``cuda_tma`` (installed, or ``PYTHONPATH=.``). For each form of ``wgmma_cases.py``,
the output contains the bits of all results: ``<form>/wgmma`` (blocks, 64, 8), and ``<form>/mma``. The results of
mma.sync are for the same operands, and are stored as the exclusive or with the results of wgmma. ``facts`` is JSON.
``facts`` contains the device, a digest of the operands, and the number of results with other bits in several variants.

A child process runs the kernels. The script ends the child process after a time limit.

Counts of other results
-----------------------
- ``registers``: with A in registers;
- ``columns``: in the last 8 of 64 columns, with B's 8 columns repeated;
- ``chained``: for two instructions in one group, compared with two groups that pass their sums through memory;
- ``again``: in a second run.

Examples
--------
    python record_wgmma.py wgmma_sm90.npz      # less than a minute, most of it for compilation
    python replay_wgmma.py wgmma_sm90.npz      # compare a model with it, without a GPU
"""

from __future__ import annotations

import functools
import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable

import numpy as np
from wgmma_cases import FORMATS, FORMS, Block, Form, blocks

SECONDS = 120

SOURCE = r"""
#include <cuda_tma/mma.cuh>
#include <cuda_tma/wgmma.cuh>
#include <cuda_tma/wgmma_f16.cuh>
#include <cuda_tma/wgmma_fp8.cuh>
#include <cuda_tma/wgmma_s8.cuh>
#include <cuda_tma/wgmma_tf32.cuh>
using namespace cuda_tma;

enum class Way { shared, registers, columns, chained, warp };

template <bool Satfinite, typename Sum, int Count, typename A, typename B>
__device__ void multiply(Sum (&sums)[Count], const A& a, const B& b) {
    if constexpr (Satfinite) wgmma_satfinite(sums, a, b);
    else wgmma(sums, a, b);
}

// Rows of 32 bytes as core matrices without a swizzle: the second 16 bytes of all rows follow the first.
template <int Rows>
__device__ void fill(unsigned* tile, const unsigned* rows, int repeat) {
    for (int i = threadIdx.x; i < Rows * 8; i += 128)
        tile[i % 8 / 4 * Rows * 4 + i / 8 * 4 + i % 4] = rows[i / 8 % repeat * 8 + i % 8];
}

// Each CTA has one block of operands; a chained product also takes the next one.
template <Way Path, Input A, Input B, typename Sum, bool Satfinite>
__global__ void once(const unsigned* all_a, const unsigned* all_b, const Sum* all_c, Sum* all_d) {
    constexpr int N = Path == Way::columns ? 64 : 8, PAIR = sums_of<Sum> == Sums::f16 ? 2 : 1, COUNT = N / 2 / PAIR;
    constexpr int TURNS = Path == Way::chained ? 2 : 1;
    __shared__ alignas(128) unsigned a_tile[2][64 * 8], b_tile[2][64 * 8];
    const int t = threadIdx.x, lane = t % 32, row = t / 32 * 16 + lane / 4;
    const auto block = [&](int turn) { return (blockIdx.x + turn) % gridDim.x; };
    for (int turn = 0; turn < TURNS; ++turn) {
        fill<64>(a_tile[turn], all_a + block(turn) * 64 * 8, 64);
        fill<N>(b_tile[turn], all_b + block(turn) * 8 * 8, 8);
    }
    fence_proxy_async();
    __syncthreads();
    const auto place = [&](int i) {   // the place of accumulator i, among those of 8 columns
        const int each = i * PAIR;
        return (blockIdx.x * 64 * 8 + (row + each / 2 % 2 * 8) * 8 + lane % 4 * 2 + each % 2) / PAIR;
    };
    Sum sums[COUNT];
    for (int i = 0; i < COUNT; ++i) sums[i] = all_c[place(i)];
    const unsigned *a = all_a + block(0) * 64 * 8 + lane % 4, *b = all_b + block(0) * 8 * 8 + lane / 4 * 8 + lane % 4;
    unsigned part[4] = {a[row * 8], a[(row + 8) * 8], a[row * 8 + 4], a[(row + 8) * 8 + 4]};
    if constexpr (Path == Way::warp) {
        if constexpr (Satfinite) mma_satfinite<A, B>(sums, part, b[0], b[4]);
        else mma<A, B>(sums, part, b[0], b[4]);
    } else {
        wgmma_fence(sums, part);
        for (int turn = 0; turn < TURNS; ++turn) {
            const MatrixOf<A> x{k_major<SWIZZLE_NONE>(a_tile[turn], 64 * 16, 128)};
            const MatrixOf<B> y{k_major<SWIZZLE_NONE>(b_tile[turn], N * 16, 128)};
            if constexpr (Path == Way::registers) multiply<Satfinite>(sums, FragmentOf<A>{part}, y);
            else multiply<Satfinite>(sums, x, y);
        }
        wgmma_commit();
        wgmma_wait<0>(sums, part);
    }
    for (int i = 0; i < 4 / PAIR; ++i) all_d[place(i)] = sums[COUNT - 4 / PAIR + i];
}
"""
WAYS = ("shared", "registers", "columns", "chained", "warp")
_SUM = {"f32": "float", "f16": "unsigned", "s32": "int"}
_WORDS = {"f32": np.uint32, "f16": np.uint16, "s32": np.uint32}


def kernel_name(way: str, form: Form) -> str:
    return f"once<Way::{way}, Input::{form.a}, Input::{form.b}, {_SUM[form.sums]}, {str(form.satfinite).lower()}>"


@functools.cache
def operands(form: Form) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return A and B of all blocks in rows of 32 bytes, and C, in the form that the kernels read."""

    def stacked(arrays: Iterable[np.ndarray], element: str) -> np.ndarray:
        size = FORMATS[element].itemsize if element in FORMATS else 1
        return np.stack(list(arrays)).astype(f"u{size}")

    all_blocks: list[Block] = list(blocks(form))
    a, b = (stacked((getattr(block, name) for block in all_blocks), getattr(form, name)) for name in "ab")
    return a, b, np.stack([block.c for block in all_blocks]).astype(_WORDS[form.sums])


def digest(form: Form) -> str:
    """Return a digest of the operands, because a recording does not contain the operands."""
    return hashlib.sha256(b"".join(array.tobytes() for array in operands(form))).hexdigest()


class Machine:
    """A GPU with all kernels, and space for the operands of one form."""

    def __init__(self) -> None:
        from cuda.core import Program, ProgramOptions

        import cuda_tma

        self.device = cuda_tma.Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        options = ProgramOptions(std="c++17", arch="sm_90a", include_path=cuda_tma.include_path())
        names = tuple(kernel_name(way, form) for form in FORMS for way in WAYS)
        self.kernels = Program(SOURCE, "c++", options).compile("cubin", name_expressions=names)
        self.buffers = [self.device.allocate(1 << 20, stream=self.stream) for _ in range(4)]
        self.stream.sync()

    def run(self, way: str, form: Form, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        """Return the matrix D of each block."""
        from cuda.bindings import driver
        from cuda.core import LaunchConfig

        import cuda_tma

        for buffer, array in zip(self.buffers, (a, b, c), strict=False):
            (error,) = driver.cuMemcpyHtoD(int(buffer.handle), np.ascontiguousarray(array).ctypes.data, array.nbytes)
            assert not error, error
        kernel = self.kernels.get_kernel(kernel_name(way, form))
        cuda_tma.launch(self.stream, LaunchConfig(grid=len(c), block=128), kernel, *self.buffers)
        self.stream.sync()
        d = np.empty_like(c)
        (error,) = driver.cuMemcpyDtoH(d.ctypes.data, int(self.buffers[3].handle), d.nbytes)
        assert not error, error
        return d


def observe(machine: Machine, form: Form) -> tuple[dict[str, np.ndarray], dict]:
    a, b, c = operands(form)
    results = {way: machine.run(way, form, a, b, c) for way in WAYS}
    d = results["shared"]
    second = machine.run("shared", form, np.roll(a, -1, 0), np.roll(b, -1, 0), d)
    differ = {
        "registers": results["registers"] != d,
        "columns": results["columns"] != d,
        "chained": results["chained"] != second,
        "again": machine.run("shared", form, a, b, c) != d,
    }
    facts = {name: int(where.sum()) for name, where in differ.items()}
    return {f"{form}/wgmma": d, f"{form}/mma": results["warp"] ^ d}, {**facts, "operands": digest(form)}


def work(path: str) -> None:
    machine = Machine()
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, object] = {"device": machine.device.name, "compute_capability": machine.device.arch}
    for form in FORMS:
        found, facts[str(form)] = observe(machine, form)
        arrays |= found
        unequal = int(np.count_nonzero(found[f"{form}/mma"]))
        print(f"{form}: {found[f'{form}/wgmma'].size} results, {unequal} others of mma.sync, {facts[str(form)]}")
    np.savez_compressed(path, facts=np.array(json.dumps(facts)), **arrays)


def main() -> None:
    if sys.argv[1:2] == ["work"]:
        return work(sys.argv[2])
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    subprocess.run([sys.executable, __file__, "work", sys.argv[1]], check=True, timeout=SECONDS)
    return None


if __name__ == "__main__":
    main()
