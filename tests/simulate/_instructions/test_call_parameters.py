"""Tests of the parameters of PTX function calls, in which each element of a vector has its own offset."""

import numpy as np

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_90a
.address_size 64
.func (.param .align 16 .b8 done[16]) reversed(.param .align 16 .b8 given[16], .param .b64 added) {
    .reg .b32 %r<8>; .reg .b64 %rd<2>;
    ld.param.v4.b32 {%r1, %r2, %r3, %r4}, [given];
    ld.param.b64 %rd1, [added];
    cvt.u32.u64 %r5, %rd1;
    add.u32 %r1, %r1, %r5;
    st.param.v4.b32 [done], {%r4, %r3, %r2, %r1};
    ret;
}
.visible .entry k(.param .u64 out) {
    .reg .b32 %r<8>; .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1];
    {
        .param .align 16 .b8 passed[16]; .param .b64 more; .param .align 16 .b8 result[16];
        st.param.v4.b32 [passed], {%r1, %r2, %r3, %r4};
        st.param.b64 [more], 100;
        call (result), reversed, (passed, more);
        ld.param.v2.b32 {%r5, %r6}, [result];
        ld.param.b32 %r7, [result+12];
    }
    st.global.v2.u32 [%rd1+16], {%r5, %r6};
    st.global.u32 [%rd1+24], %r7;
    ret;
}
"""


def test_vectors_of_parameters():
    gpu, out = simulate.Device(), np.array([1, 2, 3, 4, 0, 0, 0], np.uint32)
    report = gpu.launch(simulate.Config(1, 1), gpu.load(PTX, "k"), out)
    assert report.findings == () and out.tolist() == [1, 2, 3, 4, 4, 3, 101]
