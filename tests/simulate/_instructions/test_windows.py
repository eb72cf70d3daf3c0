"""Tests of the address windows of shared memory. The window .shared::cta contains memory of the executing CTA, and
.shared::cluster contains memory of all CTAs in the cluster."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

# The cluster has two CTAs, and the first thread of each CTA has the addresses of `data` and `bar` in CTA `rank ^ far`.
SOURCE = r"""
extern "C" __global__ void __cluster_dims__(2) k(const int* in, int* out, int far) {
    __shared__ alignas(128) unsigned data[64];
    __shared__ alignas(8) unsigned long long bar;
    unsigned rank, there, remote, value = 0;
    unsigned bar_here = (unsigned)__cvta_generic_to_shared(&bar), data_here = (unsigned)__cvta_generic_to_shared(data);
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(data_here), "r"(rank ^ far));
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(bar_here), "r"(rank ^ far));
    data[threadIdx.x] = 100 * rank + threadIdx.x;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 5;" :: "r"(bar_here) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x < THREADS)
        asm volatile(STATEMENT  // the line of the finding
            : "=r"(value) : "r"(there), "r"(remote), "l"(in), "l"(out + 128 + 64 * rank) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    out[rank * 64 + threadIdx.x] = data[threadIdx.x] + value;
}
"""
LINE = 1 + SOURCE.splitlines().index("        asm volatile(STATEMENT  // the line of the finding")
_GENERIC = ".reg .b64 g; cvt.u64.u32 g, %2; cvta.shared::cluster.u64 g, g;"
_STORED = "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"
# The operands of each instruction are a local address (%1), a remote address (%2), an input (%3) and an output (%4). %0
# is the result.
OF_ONE_CTA = {
    "ld": "ld.shared::cta.u32 %0, [%1];",
    "ld.plain": "ld.shared.u32 %0, [%1];",
    "ld.volatile": "ld.volatile.shared.u32 %0, [%1];",
    "ld.vector": "{ .reg .b32 r; ld.shared.v2.u32 {%0, r}, [%1]; }",
    "st": "st.shared::cta.u32 [%1], 5; mov.u32 %0, 0;",
    "atom": "atom.shared::cta.add.u32 %0, [%1], 5;",
    "red": "red.shared.add.u32 [%1], 5; mov.u32 %0, 0;",
    "mbarrier.arrive": "{ .reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%2]; mov.u32 %0, 0; }",
    "mbarrier.arrive.generic": f"{{ .reg .b64 s; {_GENERIC} mbarrier.arrive.b64 s, [g]; mov.u32 %0, 0; }}",
    "mbarrier.expect_tx": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%2], 0; mov.u32 %0, 0;",
    "mbarrier.test_wait": "{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%2], 1; mov.u32 %0, 0; }",
    "mbarrier.try_wait": "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%2], 1; mov.u32 %0, 0; }",
    "mbarrier.inval": "mbarrier.inval.shared::cta.b64 [%2]; mov.u32 %0, 0;",
    "cp.async": "cp.async.ca.shared.global [%1], [%3], 16; cp.async.wait_all; mov.u32 %0, 0;",
    "cp.async.mbarrier": "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%2]; mov.u32 %0, 0;",
    "bulk load": "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%1], [%3], 0, [%2]; mov.u32 %0, 0;",
    "bulk store": f"cp.async.bulk.global.shared::cta.bulk_group [%4], [%1], 16; {_STORED} mov.u32 %0, 0;",
    "bulk reduction": f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%4], [%1], 16; {_STORED} "
    "mov.u32 %0, 0;",
    "ldmatrix": "{ .reg .b32 r; ldmatrix.sync.aligned.m8n8.x1.shared.b16 r, [%1]; mov.u32 %0, 0; }",
}
# The table contains instructions that access memory of another CTA, and the resulting `data[0] + value` in CTA 0.
OF_THE_CLUSTER = {
    "ld": ("ld.shared::cluster.u32 %0, [%1];", 100),
    "ld.generic": ("{ .reg .b64 g; cvt.u64.u32 g, %1; cvta.shared::cluster.u64 g, g; ld.u32 %0, [g]; }", 100),
    "st": ("st.shared::cluster.u32 [%1], 5; mov.u32 %0, 0;", 5),
    "atom": ("atom.shared::cluster.add.u32 %0, [%1], 5;", 105),
    "red": ("red.shared::cluster.add.u32 [%1], 5; mov.u32 %0, 0;", 5),
    "mbarrier.arrive": ("mbarrier.arrive.shared::cluster.b64 _, [%2]; mov.u32 %0, 0;", 0),
    "mbarrier.expect_tx": ("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%2], 0; mov.u32 %0, 0;", 0),
}


@cache
def compiled(statement: str, threads: int) -> simulate.Kernel:
    source = SOURCE.replace("STATEMENT", f'"{statement}"').replace("THREADS", str(threads))
    return simulate.Device().compile(source, "k")


def launched(statement: str, far: int) -> tuple[simulate.Report, np.ndarray]:
    out = np.full(256, -1, np.int32)
    kernel = compiled(statement, 32 if "ldmatrix" in statement else 1)
    report = simulate.Device().launch(simulate.Config(2, 64), kernel, np.zeros(64, np.int32), out, np.int32(far))
    return report, out


@pytest.mark.parametrize("form", OF_ONE_CTA)
def test_an_address_of_another_cta_ends_the_kernel(form):
    report, out = launched(OF_ONE_CTA[form], 1)
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.source[0].line) == ("cluster", "error", LINE)
    assert "lies in CTA 1 of the cluster" in finding.message and "here CTA 0" in finding.message
    assert ".shared::cluster" in finding.message and (out == -1).all()


@pytest.mark.parametrize("form", OF_ONE_CTA)
def test_an_address_that_mapa_gives_of_the_own_cta_is_right(form):
    report, out = launched(OF_ONE_CTA[form], 0)
    # Only the bulk load has a finding, because the kernel ends without a wait for the load.
    assert [finding.kind for finding in report.findings] == ["early-exit"] * (form == "bulk load")
    assert (out[4:64] == np.arange(4, 64)).all() and out[0] != -1


@pytest.mark.parametrize("form", OF_THE_CLUSTER)
def test_an_instruction_of_the_cluster_reaches_another_cta(form):
    statement, value = OF_THE_CLUSTER[form]
    report, out = launched(statement, 1)
    assert report.findings == () and out[0] == value and (out[1:64] == np.arange(1, 64)).all()
