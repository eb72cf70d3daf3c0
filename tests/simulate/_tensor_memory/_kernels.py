"""A prelude of tcgen05 instructions for the tests of tensor memory, and functions that run a kernel body after the
prelude."""

from __future__ import annotations

import re
from functools import cache

import numpy as np

from cuda_tma import simulate

PRELUDE = r"""
using u32 = unsigned;
using u64 = unsigned long long;
__device__ u32 at(const void* p) { return static_cast<u32>(__cvta_generic_to_shared(p)); }
__device__ bool first() {
    u32 found;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(found));
    return found;
}
#define ALLOC(where, n) asm volatile( \
    "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" :: "r"(at(where)), "r"(n) : "memory")
#define DEALLOC(t, n) asm volatile( \
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" :: "r"(t), "r"(n) : "memory")
#define RELINQUISH() asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory")
#define LD(x, t) asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(x) : "r"(t) : "memory")
#define ST(t, x) asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" :: "r"(t), "r"(x) : "memory")
#define WAIT_LD() asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory")
#define WAIT_ST() asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory")
#define FENCE_BEFORE() asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory")
#define FENCE_AFTER() asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory")
#define INIT(bar, n) asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(bar)), "r"(n) : "memory")
#define ARRIVE(bar) asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" :: "r"(at(bar)) : "memory")
#define WAIT(bar, parity) asm volatile( \
    "{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @!p bra again; }" \
    :: "r"(at(bar)), "r"(parity) : "memory")
#define COMMIT(bar) asm volatile( \
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" :: "r"(at(bar)) : "memory")
#define MMA(kind, d, a, b, form, add) asm volatile( \
    "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::" kind " [%0], %1, %2, %3, p; }" \
    :: "r"(d), "l"(a), "l"(b), "r"(form), "r"(static_cast<u32>(add)) : "memory")
#define MMA_LEFT(kind, d, a, b, form, add) asm volatile( \
    "{ .reg .pred p; setp.ne.u32 p, %4, 0; tcgen05.mma.cta_group::1.kind::" kind " [%0], [%1], %2, %3, p; }" \
    :: "r"(d), "r"(a), "l"(b), "r"(form), "r"(static_cast<u32>(add)) : "memory")
__device__ u64 matrix(const void* tile, u32 rows) {  // core matrices of 8 rows, one K after the other
    return (u64(at(tile)) & 0x3ffff) >> 4 | u64(rows) << 16 | 8ull << 32 | 1ull << 46;
}
__device__ u32 quarter() { return (threadIdx.x / 32 % 4) << 21; }
"""


def form(m: int, n: int, d: int, a: int, b: int, more: int = 0) -> int:
    """Return the instruction descriptor of a tcgen05.mma. The arguments `d`, `a` and `b` are codes of types."""
    return m >> 4 << 24 | n >> 3 << 17 | d << 4 | a << 7 | b << 10 | more


@cache
def device(schedules: int = 1, sanitize: bool = True) -> simulate.Device:
    return simulate.Device((10, 0), schedules=schedules, sanitize=sanitize)


@cache
def kernel(source: str, sanitize: bool = True) -> simulate.Kernel:
    return device(sanitize=sanitize).compile(PRELUDE + source, "k")


def launched(
    source: str, *arguments: object, threads: int = 128, sanitize: bool = True, trace: bool = False
) -> simulate.Report:
    config = simulate.Config(1, threads)
    return device(sanitize=sanitize).launch(config, kernel(source, sanitize), *arguments, trace=trace)


def line_of(source: str, mark: str) -> int:
    """Return the number of the source line with a mark, where the first line has the number 1."""
    lines = (PRELUDE + source).splitlines()
    return next(number for number, line in enumerate(lines, 1) if re.search(rf"// {mark}\b", line))


def core_matrices(matrix: np.ndarray) -> np.ndarray:
    """Return the bytes of a [rows, bytes] matrix in the layout that the prelude's function `matrix` describes."""
    rows = len(matrix)
    return np.ascontiguousarray(matrix.reshape(rows, -1, 16).swapaxes(0, 1)).reshape(-1)
