"""Tests of threads that end without a warp-wide instruction at which the other threads of the warp wait."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {{
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
setp.lt.u32 %p1, %r1, 16;
@%p1 bra {target};
bar.warp.sync 0xffffffff;
{after}
DONE: ret;
}}
"""


@pytest.mark.parametrize(
    ("target", "after", "kinds"),
    [
        ("DONE", "", []),  # The early lanes return, and no statement follows the barrier.
        ("DONE", "st.global.u32 [%rd1], %r1;", []),  # The early lanes do not execute the store.
        ("AFTER", "AFTER: st.global.u32 [%rd1], 1;", ["barrier-divergence"]),
    ],
)
def test_lanes_that_bypass_a_barrier(target, after, kinds):
    gpu, text = simulate.Device(), PTX.format(target=target, after=after)
    findings = gpu.launch(simulate.Config(1, 32), gpu.load(text, "k"), np.zeros(1, np.int32)).findings
    found = [each for each in findings if each.kind == "barrier-divergence"]
    assert [each.kind for each in found] == kinds
    if kinds:
        assert found[0].ptx_line == text[: text.index("bar.warp")].count("\n") + 1
        assert "lane 0 of the warp bypasses the instruction" in found[0].message


LATE = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<2>;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
and.b32 %r2, %r1, 31;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra LATE;
MEET: bar.warp.sync 0xffffffff;
red.global.add.u32 [%rd1], 1;
ret;
LATE: red.global.add.u32 [%rd1], 1;
bra MEET;
}
"""


def test_a_warp_that_ends_before_another_warp_meets():
    """In some random schedules, a warp passes the barrier and ends while the other lanes of a second warp wait at the
    barrier for its first lane, which is not a bypass."""
    gpu, out = simulate.Device(), np.zeros(1, np.uint32)
    kernel = gpu.load(LATE, "k")
    for seed in (3, 16, 18):
        assert gpu.launch(simulate.Config(1, 128), kernel, out, order="random", seed=seed).findings == ()
    assert out[0] == 3 * (128 + 4)
