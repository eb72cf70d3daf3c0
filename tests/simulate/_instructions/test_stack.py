"""Tests of ``alloca``, which returns aligned and separate memory for each call."""

import numpy as np
import pytest

from cuda_tma import simulate

PTX = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .b64 %rd<8>;
    .reg .b32 %r<4>;
    alloca.u64 %rd1, 8;
    alloca.u64 %rd2, 8, {alignment};
    alloca.u64 %rd3, 8;
    ld.param.u64 %rd4, [out];
    st.local.u32 [%rd1], 1;
    st.local.u32 [%rd2], 2;
    st.local.u32 [%rd3], 3;
    ld.local.u32 %r1, [%rd1];
    st.u64 [%rd4], %rd1;
    st.u64 [%rd4+8], %rd2;
    st.u64 [%rd4+16], %rd3;
    st.u32 [%rd4+24], %r1;
    ret;
}}
"""


@pytest.mark.parametrize("alignment", [8, 16, 32, 64, 256])
def test_memory_is_aligned_as_requested_and_to_16_bytes(alignment):
    gpu, out = simulate.Device(sanitize=False), np.zeros(4, np.uint64)
    gpu.launch(simulate.Config(1, 1), gpu.load(PTX.format(alignment=alignment), "k"), out)
    first, second, third, value = out.tolist()
    assert second % max(16, alignment) == first % 16 == third % 16 == 0
    assert first + 8 <= second and second + 8 <= third and value == 1
