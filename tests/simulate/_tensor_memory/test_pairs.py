"""Tests of tcgen05 with ``.cta_group::2``, by which two CTAs allocate, copy, multiply and free together."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

from ._kernels import PRELUDE, core_matrices, device, form

# Each CTA has half of the rows of A and of B. The leading CTA multiplies, and its commit arrives on the mbarriers of
# both CTAs.
SOURCE = """
__device__ u32 rank() { u32 r; asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r)); return r; }
__device__ void meet() { asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const uint4* a, const uint4* b, u32* out, u32 form) {
    __shared__ alignas(128) uint4 left[M], right[N];
    __shared__ alignas(8) u64 bar;
    __shared__ u32 base;
    const int t = threadIdx.x;
    for (int i = t; i < M; i += 128) left[i] = a[rank() * M + i];
    for (int i = t; i < N; i += 128) right[i] = b[rank() * N + i];
    if (t == 0) INIT(&bar, 1);
    asm volatile("fence.proxy.async; fence.mbarrier_init.release.cluster;" ::: "memory");
    if (t < 32) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 256;"
        :: "r"(at(&base)) : "memory");
    meet();
    if (rank() == 0 && t < 32 && first()) {
        asm volatile("{ .reg .pred p; setp.ne.u32 p, 0, 0; "
            "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, {%4, %4, %4, %5, %4, %4, %4, %4}, p; }"
            :: "r"(base), "l"(matrix(left, M / 2)), "l"(matrix(right, N / 2)), "r"(form), "r"(0), "r"(MASK) : "memory");
        asm volatile("tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
            "[%0], %1;" :: "r"(at(&bar)), "h"((short)3) : "memory");
    }
    WAIT(&bar, 0);
    for (u32 c = 0; c < N; ++c) {
        u32 x;
        LD(x, base + quarter() + c);
        WAIT_LD();
        out[(rank() * 128 + t) * N + c] = x;
    }
    meet();
    if (t < 32) asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, 256;" :: "r"(base) : "memory");
}
"""


def launched(m: int, n: int, a: np.ndarray, b: np.ndarray, mask: int = 0) -> tuple[simulate.Report, np.ndarray]:
    """Return the report of a launch, and the tensor memory of both CTAs as uint32 [2, 128, N]."""
    source = f"{PRELUDE}#define M {m}\n#define N {n}\n#define MASK {mask}u\n{SOURCE}"
    out = np.zeros((2, 128, n), np.uint32)
    halves = [np.concatenate([*map(core_matrices, np.split(each, 2))]) for each in (a, b)]
    config = simulate.Config(1, 128, cluster=2)
    report = device().launch(config, device().compile(source, "k"), *halves, out, form(m, n, 1, 0, 0))
    return report, out


def matrices(m: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(m + n)
    a, b = random.integers(-4, 5, (m, 16)), random.integers(-4, 5, (n, 16))
    return *(np.ascontiguousarray(each.astype(np.float16)).view(np.uint8) for each in (a, b)), a @ b.T


def test_256_rows_lie_in_the_lanes_of_two_ctas():
    a, b, product = matrices(256, 32)
    report, out = launched(256, 32, a, b)
    assert report.findings == ()
    assert np.array_equal(out.view(np.float32).reshape(256, 32), product)


def test_128_rows_lie_in_half_of_the_lanes_and_the_columns_in_both_halves():
    a, b, product = matrices(128, 32)
    report, out = launched(128, 32, a, b)
    # The product does not write columns 16 to 31.
    assert report.errors[0].kind == "tensor-memory"
    found = out.view(np.float32)
    for rank in range(2):
        rows = product[64 * rank : 64 * rank + 64]
        assert np.array_equal(found[rank, :64, :16], rows[:, :16])
        assert np.array_equal(found[rank, 64:, :16], rows[:, 16:])


def test_lanes_that_a_mask_names_keep_their_sums():
    a, b, product = matrices(256, 32)
    report, out = launched(256, 32, a, b, mask=0xFF)
    assert report.errors == ()
    expected = product.astype(np.float32).reshape(2, 128, 32)
    expected[0, 96:104] = 0
    assert np.array_equal(out.view(np.float32), expected)


ALONE = """
extern "C" __global__ void __cluster_dims__(2, 1, 1) k() {
    __shared__ u32 base;
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    if (r == 0) asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], 32;"
        :: "r"(at(&base)) : "memory");
}
"""


def test_a_cta_waits_for_the_other_of_its_pair():
    report = device().launch(simulate.Config(1, 32, cluster=2), device().compile(PRELUDE + ALONE, "k"))
    finding = report.errors[0]
    assert finding.kind == "deadlock"
    assert "no warp of the other CTA of the pair executes tcgen05.alloc" in finding.message


def test_a_pair_needs_a_cluster():
    source = PRELUDE + ALONE.replace("__cluster_dims__(2, 1, 1) ", "")
    finding = device().launch(simulate.Config(1, 32), device().compile(source, "k")).errors[0]
    assert finding.kind == "cluster"
    assert "which has no pairs" in finding.message


@pytest.mark.parametrize("cluster", [3])
def test_a_cluster_of_an_odd_number_has_no_pairs(cluster):
    source = PRELUDE + ALONE.replace("(2, 1, 1)", "(3, 1, 1)")
    finding = device().launch(simulate.Config(1, 32, cluster=cluster), device().compile(source, "k")).errors[0]
    assert "in a cluster of 3 CTAs" in finding.message


def test_one_kernel_has_one_group():
    """The simulator reports an instruction with a second .cta_group value in one kernel. ptxas 13.0 refuses such a
    kernel."""
    pair = "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
    source = f"{PRELUDE}#define M 256\n#define N 32\n#define MASK 0u\n{SOURCE}"
    assert pair in source
    kernel = device().compile(source.replace(pair, pair.replace("cta_group::2", "cta_group::1")), "k")
    (a, b, _), out = matrices(256, 32), np.zeros((2, 128, 32), np.uint32)
    halves = [np.concatenate([*map(core_matrices, np.split(each, 2))]) for each in (a, b)]
    report = device().launch(simulate.Config(1, 128, cluster=2), kernel, *halves, out, form(256, 32, 1, 0, 0))
    finding = next(each for each in report.errors if each.kind == "tensor-memory")
    line = next(number for number, text in enumerate(source.splitlines(), 1) if pair in text)
    assert finding.source[-1].line == line
    assert "tcgen05.commit has .cta_group::1, but tcgen05.alloc has .cta_group::2" in finding.message


FILL = """
    for (int i = t; i < M; i += 128) left[i] = a[rank() * M + i];
    for (int i = t; i < N; i += 128) right[i] = b[rank() * N + i];
"""
HANDED = """
    meet();
FILL
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (t == 0) asm volatile("{ .reg .b32 a; mapa.shared::cluster.u32 a, %0, 0;"
        " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" :: "r"(at(&ready)) : "memory");
    if (rank() == 0 && t < 32 && first()) {
        asm volatile("{ .reg .pred p; more: mbarrier.try_wait.parity.SCOPEshared::cta.b64 p, [%0], 0; @!p bra more; }"
            :: "r"(at(&ready)) : "memory");
"""


@pytest.mark.parametrize(("scope", "severities"), [("", {"advice"}), ("acquire.cluster.", set())])
def test_a_wait_of_the_scope_of_a_cta_before_a_product_of_a_pair_is_advice(scope, severities):
    """In the test, the other CTA of the pair writes its tile, and arrives with cluster scope. As in TileLang, the
    waiting thread uses the default CTA scope."""
    a, b, product = matrices(256, 16)
    handed = HANDED.replace("FILL", FILL).replace("SCOPE", scope)
    source = SOURCE.replace(FILL, "\n").replace("    meet();\n    if (rank() == 0 && t < 32 && first()) {\n", handed)
    source = source.replace("u64 bar;", "u64 bar, ready;").replace(
        "INIT(&bar, 1);", "{ INIT(&bar, 1); INIT(&ready, 2); }"
    )
    source = f"{PRELUDE}#define M 256\n#define N 16\n#define MASK 0u\n{source}"
    out = np.zeros((2, 128, 16), np.uint32)
    halves = [np.concatenate([*map(core_matrices, np.split(each, 2))]) for each in (a, b)]
    config = simulate.Config(1, 128, cluster=2)
    report = device().launch(config, device().compile(source, "k"), *halves, out, form(256, 16, 1, 0, 0))
    assert np.array_equal(out.view(np.float32).reshape(256, 16), product)
    assert {finding.severity for finding in report.findings} == severities
    assert {finding.kind for finding in report.findings} <= {"race"}
