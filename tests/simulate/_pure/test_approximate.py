"""Tests that the simulator supports the same forms of approximate functions as ptxas."""

import numpy as np
import pytest

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out) {{
    .reg .{bits} %h<3>;
    .reg .b64 %rd1;
    ld.param.u64 %rd1, [out];
    ld.{bits} %h1, [%rd1];
    {opcode} %h2, %h1;
    st.{bits} [%rd1], %h2;
    ret;
}}
"""


def launched(opcode: str, value: np.ndarray) -> np.ndarray:
    gpu, out = simulate.Device(sanitize=False), value.copy()
    bits = f"b{8 * value.itemsize}"
    gpu.launch(simulate.Config(1, 1), gpu.load(PTX.format(opcode=opcode, bits=bits), "k"), out)
    return out


@pytest.mark.parametrize(
    ("opcode", "value", "result"),
    [
        # The values are 2.0 and 4.0 in bf16.
        ("ex2.approx.ftz.bf16", np.array([0x4000], np.uint16), 0x4080),
        # The values are 2.0 and 4.0 in f16.
        ("ex2.approx.f16", np.array([0x4000], np.uint16), 0x4400),
        ("tanh.approx.bf16", np.array([0], np.uint16), 0),
        ("ex2.approx.ftz.f32", np.array([0x40000000], np.uint32), 0x40800000),
    ],
)
def test_a_form_that_exists(opcode, value, result):
    assert launched(opcode, value).tolist() == [result]


@pytest.mark.parametrize("opcode", ["ex2.approx.bf16", "ex2.approx.ftz.f16", "tanh.approx.ftz.f16"])
def test_a_form_that_does_not_exist(opcode):
    with pytest.raises(simulate.UnsupportedInstruction, match=opcode.replace(".", r"\.")):
        launched(opcode, np.zeros(1, np.uint16))
