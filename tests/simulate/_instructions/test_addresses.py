"""Tests of addresses in registers: the sum of a 32-bit register and an offset has 32 bits."""

from __future__ import annotations

import numpy as np

from cuda_tma import simulate

# Triton compiles a read in reverse order to this form of address. The address in the register is below the variable,
# and the offset leads back into the variable.
REVERSED = """
.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<8>;
    .reg .b64 %rd<4>;
    .shared .align 16 .b8 tile[2048];
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    mov.u32 %r3, tile;
    add.s32 %r4, %r3, %r2;
    st.shared.b32 [%r4], %r1;
    bar.sync 0;
    sub.s32 %r5, %r3, %r2;
    ld.shared.b32 %r6, [%r5+2044];
    cvt.u64.u32 %rd2, %r2;
    add.s64 %rd3, %rd1, %rd2;
    st.global.b32 [%rd3], %r6;
    ret;
}
"""


def run(ptx):
    gpu = simulate.Device()
    out = np.zeros(512, np.int32)
    return gpu.launch(simulate.Config(1, 512), gpu.load(ptx, "k"), out), out


def test_a_register_below_the_window_and_an_offset_back_into_it():
    report, out = run(REVERSED)
    assert report.findings == ()
    assert out.tolist() == list(range(511, -1, -1))


def test_an_offset_that_does_not_lead_back_is_an_error():
    report, _ = run(REVERSED.replace("%r5+2044", "%r5+4"))
    assert [finding.kind for finding in report.errors] == ["cluster"]
