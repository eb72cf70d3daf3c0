"""Tests of faults that occur when an asynchronous copy takes effect. The fault has the line of the copy, even if a
later statement is running."""

import numpy as np
import pytest

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {{
.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
.shared .align 128 .b8 tile[256];
mov.u64 %rd2, map;
cvta.param.u64 %rd2, %rd2;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r2, 0;
setp.ne.u32 %p1, %r1, 3;
@%p1 bra DONE;
st.bulk.weak.shared::cta [tile], 256, 0;
fence.proxy.async;
{statement};
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE: ret;
}}
"""
STATEMENTS = {
    "bulk": "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16",
    "reduction": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [tile], 16",
    "tensor": "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd2, {%r2}], [tile]",
    "of a tensor": "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd2, {%r2}], [tile]",
}


@pytest.mark.parametrize("name", STATEMENTS)
@pytest.mark.parametrize("order", ["early", "late"])
def test_a_store_into_an_array_that_is_not_writeable(name, order):
    gpu, out = simulate.Device("10.0", schedules=1), np.zeros(64, np.int32)
    out.flags.writeable = False
    tensor_map = gpu.create_tensor_map(out, box_dim=(16,))
    text = PTX.format(statement=STATEMENTS[name])
    errors = gpu.launch(simulate.Config(1, 32), gpu.load(text, "k"), out, tensor_map, order=order).errors
    (error,) = [each for each in errors if each.ends_launch] or pytest.fail(str(errors))
    line = text[: text.index(STATEMENTS[name])].count("\n") + 1
    assert (error.ptx_line, error.threads) == (line, (3,))
