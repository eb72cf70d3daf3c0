"""The functions and values that several tests of the sanitizer share."""

from __future__ import annotations

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                                  int* out, int tiles) {
    __shared__ __align__(128) char raw[1024 + 128];
    __shared__ Barrier full;
    int* tile = reinterpret_cast<int*>(raw + (BUG == 9 ? 16 : 0));
    const int t = threadIdx.x;
    if (t == 0) { full.init(1); fence_barrier_init(); }
    if (BUG != 7) __syncthreads();
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
        if (t == 0) {
            full.arrive_expect_tx(BUG == 5 ? 2048 : BUG == 6 ? 512 : 1024);
            load(tile, source, full, Coordinates{256 * i});  // LOAD
        }
        if (BUG != 1 || t < 32) full.wait(BUG == 10 ? (i & 1) ^ 1 : i & 1);  // WAIT
        sum += tile[t ^ 1];  // READ
        if (BUG != 2) { fence_proxy_async(); __syncthreads(); }
    }
    if (BUG == 2) __syncthreads();
    tile[t] = sum;  // WRITE
    if (BUG != 3) fence_proxy_async();
    __syncthreads();
    if (t == 0) {
        store(target, Coordinates{0}, tile);  // STORE
        commit_group();
        if (BUG != 4 && BUG != 8) wait_group_read<0>();
    }
    if (BUG == 4) {
        __syncthreads();
        tile[t] = 0;  // AGAIN
        if (t == 0) wait_group_read<0>();
    }
    out[t] = sum;
}
"""
# Each row contains the kind of a bug, the line of the finding, the line of the conflicting access, and a part of the
# message.
BUGS = [
    (1, "race", "READ", "LOAD", "still be writing"),
    (2, "race", "LOAD", "READ", "still be reading"),
    (3, "missing-proxy-fence", "STORE", "WRITE", "no fence.proxy.async between the two"),
    (4, "race", "AGAIN", "STORE", "wait_group_read"),
    (5, "transaction-count", "WAIT", None, "1,024 of 2,048 bytes are missing"),
    (6, "transaction-count", "WAIT", None, "512 more bytes came than the 512 that were expected"),
    (7, "barrier-use", "WAIT", "init(1)", "`full`"),
    (8, "early-exit", "STORE", None, "may still read"),
    (9, "misaligned", "LOAD", None, "not at a multiple of 128 bytes"),
    (10, "deadlock", "WAIT", None, "parity"),
]


def line_of(mark: str) -> int:
    (line,) = [number for number, text in enumerate(SOURCE.split("\n"), 1) if mark in text]
    return line
