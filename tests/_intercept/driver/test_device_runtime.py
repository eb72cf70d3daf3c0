"""Tests of functions of the CUDA device runtime.

Only a PTX text that declares a function of the device runtime receives the definition of the function."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma._intercept.driver.device_runtime import with_device_runtime

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.extern .func (.param .b64 handle) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 result) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.visible .entry exchange(.param .u64 values) {
    .reg .b32 %r<6>;
    .reg .b64 %rd<5>;
    ld.param.u64 %rd1, [values];
    mov.u32 %r1, %ctaid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd1, %rd2;
    add.u32 %r2, %r1, 7;
    st.global.u32 [%rd2], %r2;
    {
    .param .b32 scope;
    st.param.b32 [scope], 1;
    .param .b64 handle;
    call.uni (handle), cudaCGGetIntrinsicHandle, (scope);
    ld.param.b64 %rd3, [handle];
    }
    {
    .param .b64 handle;
    st.param.b64 [handle], %rd3;
    .param .b32 flags;
    st.param.b32 [flags], 0;
    .param .b32 result;
    call.uni (result), cudaCGSynchronize, (handle, flags);
    }
    xor.b32 %r3, %r1, 1;
    mul.wide.u32 %rd4, %r3, 4;
    add.u64 %rd4, %rd1, %rd4;
    ld.global.u32 %r4, [%rd4];
    st.global.u32 [%rd2+16], %r4;
    ret;
}
"""


@pytest.mark.parametrize("block", [1, 48])
def test_the_barrier_of_a_grid(block):
    gpu = simulate.Device(schedules=4)
    values = np.zeros(8, np.uint32)
    kernel = gpu.load(with_device_runtime(KERNEL), "exchange")
    report = gpu.launch(simulate.Config(4, block, is_cooperative=True), kernel, values)
    assert not report.errors
    assert values.tolist() == [7, 8, 9, 10, 8, 7, 10, 9]


def test_without_the_barrier_there_is_a_race():
    gpu = simulate.Device()
    text = KERNEL.replace("call.uni (result), cudaCGSynchronize, (handle, flags);", "")
    kernel = gpu.load(with_device_runtime(text), "exchange")
    report = gpu.launch(simulate.Config(4, 1, is_cooperative=True), kernel, np.zeros(8, np.uint32))
    assert {each.kind for each in report.errors} == {"race"}


def test_a_launch_that_is_not_cooperative_stops():
    gpu = simulate.Device()
    kernel = gpu.load(with_device_runtime(KERNEL), "exchange")
    report = gpu.launch(simulate.Config(4, 1), kernel, np.zeros(8, np.uint32))
    assert "trap" in report.errors[0].message


@pytest.mark.parametrize("text", [".func f() { ret; }", KERNEL.replace("cudaCG", "cudaCH")])
def test_another_text_stays_as_it_is(text):
    assert with_device_runtime(text) == text
