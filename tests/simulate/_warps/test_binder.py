"""Tests that the simulator refuses an operand whose name has no address."""

import pytest

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_90a
.address_size 64
.shared .b32 known;
.func other(.param .b64 given) {{
    .reg .b64 %rd<3>;
    {statement}
    ret;
}}
.visible .entry k() {{
    .reg .b64 %rd<3>;
    {{ .param .b64 passed; st.param.b64 [passed], 1; call other, (passed); }}
    ret;
}}
"""


def test_the_parameter_of_a_function_has_no_address():
    gpu = simulate.Device()
    for statement in ("ld.param.b64 %rd1, [given];", "mov.u64 %rd1, known;"):
        assert gpu.launch(simulate.Config(1, 1), gpu.load(PTX.format(statement=statement), "k")).findings == ()
    with pytest.raises(simulate.UnsupportedInstruction, match="no variable given"):
        gpu.launch(simulate.Config(1, 1), gpu.load(PTX.format(statement="mov.u64 %rd1, given;"), "k"))
