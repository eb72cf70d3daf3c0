"""Tests of CTAs that run one after another in the same memory, on a machine that runs one CTA at a time."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_100a
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry k(.param .u64 out)
{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
.local .align 4 .b8 own[16];
.shared .align 8 .b64 full;
.shared .align 8 .b64 done;
.shared .b32 base;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
setp.ne.u32 %p1, %r1, 0;
STATEMENTS
ret;
}
"""
ONE = "@%p1 bra SKIP;\n{}\nSKIP:\n"
TRIED = {
    "an mbarrier that waits": ONE.format("mbarrier.init.shared.b64 [full], 2;\nmbarrier.arrive.shared.b64 _, [full];"),
    "an invalidated mbarrier": ONE.format(
        "mbarrier.init.shared.b64 [full], 2;\nmbarrier.inval.shared.b64 [full];\nmbarrier.init.shared.b64 [full], 3;"
    ),
    "a barrier of some threads": "bar.sync 1, 32;\nbar.sync 2;",
    "a copy that signals": ONE.format(
        "mbarrier.init.shared.b64 [full], 1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [full], 16;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [dynamic], [%rd1], 16, [full];\n"
        "W: mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;\n@!%p2 bra W;"
    ),
    "a store": ONE.format(
        "mov.u32 %r3, dynamic; st.shared.v4.u32 [%r3], {%r1, %r1, %r1, %r1};\nfence.proxy.async;\n"
        "mul.wide.u32 %rd2, %r2, 16; add.u64 %rd3, %rd1, %rd2;\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r3], 16;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
    ),
    "the barrier of a cluster": "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;",
    "tensor memory": (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 512;\n"
        "ld.shared.u32 %r4, [base];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r4, 512;"
    ),
    "registers": "setmaxnreg.dec.sync.aligned.u32 24;",
}


def launched(statements, ctas=3, **settings):
    gpu = simulate.Device("10.0", multiprocessor_count=1, schedules=1, **settings)
    out = np.zeros(64, np.uint32)
    kernel = gpu.load(PTX.replace("STATEMENTS", statements), "k")
    return gpu.launch(simulate.Config(ctas, 32, shmem_size=200_000), kernel, out), out


@pytest.mark.parametrize("case", [*TRIED])
def test_a_later_cta_begins_anew(case):
    report, _ = launched(TRIED[case])
    assert [str(each) for each in report.findings] == []


def test_a_later_cta_finds_no_mbarrier():
    statements = "setp.ne.u32 %p3, %r2, 0;\n@%p3 bra LATER;\n" + TRIED["an mbarrier that waits"]
    report, _ = launched(statements + "ret;\nLATER: @%p1 ret;\nmbarrier.arrive.shared.b64 _, [full];")
    assert [(each.kind, each.blocks[0]) for each in report.errors] == [("barrier-use", (1, 0, 0))]


@pytest.mark.parametrize("space", ["shared", "local"])
def test_a_later_cta_reads_no_value_of_an_earlier_one(space):
    """Both spaces contain zeros in a CTA that begins, and a read without a write is a finding."""
    name = {"shared": "base", "local": "own"}[space]
    text = (
        f"@!%p1 ld.{space}.u32 %r5, [{name}];\nmul.wide.u32 %rd2, %r2, 4; add.u64 %rd3, %rd1, %rd2;\n"
        f"@!%p1 st.global.u32 [%rd3], %r5;\n@!%p1 st.{space}.u32 [{name}], 7;"
    )
    report, out = launched(text, sanitize=False)
    assert report.findings == () and (space == "local" or not out.any())
    report, _ = launched(text)
    assert {each.kind for each in report.findings} == {"uninitialized-read"}
