"""Tests of the kind, the text, the line and the thread in findings about faults of a single thread."""

import numpy as np
import pytest

from cuda_tma import simulate

HEAD = """.version 9.2
.target sm_100a
.address_size 64
.extern .func free(.param .b64 given);
.visible .entry k(.param .u64 out, .param .align 64 .b8 map[128]) {
.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<8>; .reg .b128 %q<2>;
.shared .align 1024 .b8 tile[16384];
.shared .align 8 .b64 full;
ld.param.u64 %rd1, [out];
mov.u32 %r1, %tid.x;
setp.ne.u32 %p1, %r1, THREAD;
mov.u64 %rd7, map;
cvta.param.u64 %rd7, %rd7;
mov.u32 %r9, tile; mov.u32 %r3, 0;
"""
LOAD = "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [{map}, {{%r0}}], [full]"
ALLOCATED = """tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;
ld.shared.u32 %r8, [tile];
"""
MMA = "tcgen05.mma.cta_group::1.kind::f16"
LENGTH = "has length 2; it needs length 1"
ONE = "@%p1 bra DONE;\n"
# Each row contains the preceding statements, the faulty statement, the kind of the finding, and a part of the message.
FAULTS = [
    # control
    (ONE + "TARGETS: .branchtargets DONE; mov.u32 %r2, 7;\n", "brx.idx %r2, TARGETS", "fault",
     "brx.idx with index 7, outside its 1 targets"),
    (ONE + "mov.u64 %rd2, 64; P: .callprototype _ ();\n", "call %rd2, (), P", "fault",
     "a call of address 0x40, which is not the address of a function"),
    (ONE + "{ .param .b64 given; st.param.b64 [given], 4096;\n", "call free, (given); }", "fault",
     "free of 0x1000, which malloc did not return"),
    # tensor maps
    (ONE + "add.u64 %rd2, %rd1, 32;\n", LOAD.format(map="%rd2"), "misaligned", "is not at a multiple of 64 bytes"),
    (ONE + "mov.u32 %r2, tile; cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd2, %rd2;\n", LOAD.format(map="%rd2"),
     "map-mismatch", "the tensor map is in shared memory; pass it as a const __grid_constant__ parameter"),
    (ONE + "mov.u32 %r2, 9;\n", "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], %r2", "map-mismatch",
     "tensormap.replace sets rank to 9; the range is 0 to 4"),
    (ONE + "mov.u64 %rd2, 24;\n", "tensormap.replace.tile.global_stride.global.b1024.b64 [%rd1], 0, %rd2", "misaligned",
     "the map can store only a multiple of 16, such as 16"),
    (ONE + "mov.u32 %r2, 1;\n", "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 7, %r2", "map-mismatch",
     "tensormap.replace sets box_dim 7, but a tensor map has only box_dim 0 to 4"),
    (ONE, LOAD.replace("1d", "2d").format(map="%rd7").replace("{%r0}", "{%r3, %r3}"), "map-mismatch",
     LENGTH),
    (ONE, "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd7, {%r3, %r3}], [tile]", "map-mismatch", LENGTH),
    (ONE, "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd7, {%r3, %r3}], [tile]",
     "map-mismatch", LENGTH),
    (ONE, "cp.async.bulk.prefetch.tensor.2d.L2.global [%rd7, {%r3, %r3}]", "map-mismatch", LENGTH),
    # shared memory
    (ONE, "st.bulk.weak.shared::cta [tile], 12, 0", "misaligned", "the size of st.bulk, 12 bytes, is not a multiple"),
    (ONE, "st.bulk.weak.shared::cta [tile+4], 8, 0", "misaligned", "must be a multiple of 8"),
    (ONE, "mbarrier.init.b64 [%rd1], 1", "fault", "the address is not in the CTA's shared memory"),
    (ONE, "mbarrier.init.shared.b64 [full+4], 1", "misaligned", "must be a multiple of 8"),
    (ONE, "cp.async.ca.shared.global [tile+4], [%rd1], 8", "misaligned", "must be a multiple of 8"),
    (ONE + "mov.u32 %r2, tile; add.u32 %r2, %r2, 8;\n",
     "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [full]", "misaligned", "16"),
    # barriers
    (ONE, "barrier.cluster.wait.aligned", "barrier-use", "without a preceding barrier.cluster.arrive"),
    ("", "barrier.cta.sync 16, 32", "barrier-use", "barrier 16 does not exist; use one of the barriers 0 to 15"),
    ("", "barrier.cta.sync 1, 40", "barrier-use", "barrier 1 has a count of 40 threads; pass a multiple of 32"),
    # tensor memory
    (ALLOCATED + ONE + "mov.u64 %rd2, 0x4000400000010040; add.u32 %r8, %r8, 0x10000;\n",
     "tcgen05.cp.cta_group::1.128x256b [%r8], %rd2", "tensor-memory", "but tensor memory has 128 lanes"),
    (ALLOCATED + ONE + "mov.u64 %rd2, 0x4000404000010fff;\n",
     "tcgen05.cp.cta_group::1.128x256b [%r8], %rd2", "out-of-bounds", "tcgen05.cp reads its rows from byte"),
    (ALLOCATED + ONE + "add.u32 %r8, %r8, 0x100000;\n", "tcgen05.shift.cta_group::1.down [%r8]", "tensor-memory",
     "tcgen05.shift from lane 16 on: the lane of its address is a multiple of 32 below 128"),
    (ALLOCATED + "add.u32 %r8, %r8, %r1;\n", "tcgen05.ld.sync.aligned.32x32b.x1.b32 %r2, [%r8]", "tensor-memory",
     "the threads of a warp give different addresses to one tcgen05.ld"),
    ("mov.u32 %r2, 32; add.u32 %r2, %r2, %r1;\n", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], %r2",
     "fault", "the threads of a warp give different operands to one instruction of the warp"),
    (ONE + "mov.b16 %h1, 4;\n",
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [full], %h1", "cluster",
     "the mask 0x4 of tcgen05.commit names a CTA that the cluster of 1 does not have"),
    (ALLOCATED + ONE + "add.u32 %r8, %r8, 0x100000; mov.b32 %r2, 0x8080010; mov.u64 %rd2, 0x4000400000010040;\n",
     f"{MMA} [%r8], %rd2, %rd2, %r2, %p1", "tensor-memory", "tcgen05.mma writes D from lane 16 on"),
    (ALLOCATED + ONE + "mov.b32 %r2, 0x8080010; mov.u64 %rd2, 0x4000400000010fff;\n",
     f"{MMA} [%r8], %rd2, %rd2, %r2, %p1", "out-of-bounds", "tcgen05.mma reads"),
    (ALLOCATED + ONE + "mov.b32 %r2, 0x10; mov.u64 %rd2, 0x4000400000010040;\n",
     f"{MMA} [%r8], %rd2, %rd2, %r2, %p1", "fault", "the instruction descriptor 0x00000010 of tcgen05.mma is invalid"),
    (ALLOCATED + ONE + "mov.b32 %r2, 0x8080010; mov.u64 %rd2, 0x4000004000010040;\n",
     f"{MMA} [%r8], %rd2, %rd2, %r2, %p1", "fault", "Shared memory descriptor"),
]  # fmt: skip


@pytest.mark.parametrize("thread", [0, 5])
@pytest.mark.parametrize(("before", "statement", "kind", "message"), FAULTS, ids=[each[1][:40] for each in FAULTS])
def test_a_fault_names_its_statement(before, statement, kind, message, thread):
    gpu, out = simulate.Device("10.0", schedules=1), np.zeros(1024, np.uint8)
    text = f"{HEAD.replace('THREAD', str(thread))}{before}{statement};\nDONE: ret;\n}}\n"
    tensor_map = gpu.create_tensor_map(out.view(np.int32), box_dim=(4,))
    errors = gpu.launch(simulate.Config(1, 32), gpu.load(text, "k"), out, tensor_map).errors
    (error,) = [error for error in errors if error.kind == kind and message in error.message] or pytest.fail(
        str(errors)
    )
    assert error.ptx_line == text[: text.index(statement)].count("\n") + 1
    if before.endswith(ONE) or ONE in before:
        assert error.threads == (thread,)


CHOSEN = "selp.b32 %r2, {}, {}, %p1;\n"
AT = "add.u32 %r2, %r9, %r2;\n"
WIDE = "cvt.u64.u32 %rd2, %r2; add.u64 %rd2, %rd1, %rd2;\n"
LATE = "mbarrier.init.shared.b64 [full], 100;\n"
TO_SHARED = "shared::cta.global.mbarrier::complete_tx::bytes"
# Each row contains the preceding statements, the faulty statement, and the kind of the finding. Only the operand of one
# thread is wrong.
OF_ONE_THREAD = [
    (LATE + CHOSEN.format(0, 8) + AT, f"cp.async.bulk.{TO_SHARED} [%r2], [%rd1], 16, [full]", "misaligned"),
    (CHOSEN.format(0, 8) + AT, "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 16", "misaligned"),
    (CHOSEN.format(0, 8) + AT, "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r2], 16",
     "misaligned"),
    (CHOSEN.format(0, 8) + WIDE, "cp.async.bulk.prefetch.L2.global [%rd2], 16", "misaligned"),
    (CHOSEN.format(0, 2) + AT, "cp.async.ca.shared.global [%r2], [%rd1], 4", "misaligned"),
    (LATE + CHOSEN.format(0, 2) + AT, "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r2], %r1, [full]",
     "misaligned"),
    (LATE + CHOSEN.format(0, 8) + AT, "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
     ".b128 [%r2], [full]", "misaligned"),
    (CHOSEN.format(1, 9), "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], %r2", "map-mismatch"),
    (LATE + CHOSEN.format(0, 32) + "cvt.u64.u32 %rd2, %r2; add.u64 %rd2, %rd7, %rd2;\n",
     f"cp.async.bulk.tensor.1d.{TO_SHARED} [tile], [%rd2, {{%r3}}], [full]", "misaligned"),
    (LATE + CHOSEN.format(0, 8) + AT, f"cp.async.bulk.tensor.1d.{TO_SHARED} [%r2], [%rd7, {{%r3}}], [full]",
     "misaligned"),
    (CHOSEN.format(0, 8) + AT, "cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd7, {%r3}], [%r2]",
     "misaligned"),
    (CHOSEN.format(0, 8) + AT, "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.bulk_group [%rd7, {%r3}], [%r2]",
     "misaligned"),
    (CHOSEN.format(0, 32) + "cvt.u64.u32 %rd2, %r2; add.u64 %rd2, %rd7, %rd2;\n",
     "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd2, {%r3}]", "misaligned"),
    (ALLOCATED + CHOSEN.format(0, 0x10000) + "add.u32 %r8, %r8, %r2; mov.u64 %rd2, 0x4000400000010040;\n",
     "tcgen05.cp.cta_group::1.128x256b [%r8], %rd2", "tensor-memory"),
    (ALLOCATED + "selp.b64 %rd2, 0x4000400000010040, 0x4000004000010040, %p1;\n",
     "tcgen05.cp.cta_group::1.128x256b [%r8], %rd2", "fault"),
    (ALLOCATED + CHOSEN.format(0, 0x100000) + "add.u32 %r8, %r8, %r2;\n", "tcgen05.shift.cta_group::1.down [%r8]",
     "tensor-memory"),
    (LATE + "selp.b16 %h1, 1, 4, %p1;\n",
     "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [full], %h1", "cluster"),
    (ALLOCATED + CHOSEN.format(0x8080010, 0x10) + "mov.u64 %rd2, 0x4000400000010040;\n",
     f"{MMA} [%r8], %rd2, %rd2, %r2, %p1", "fault"),
]  # fmt: skip


@pytest.mark.parametrize("thread", [0, 5])
@pytest.mark.parametrize(("before", "statement", "kind"), OF_ONE_THREAD, ids=[each[1][:60] for each in OF_ONE_THREAD])
def test_a_fault_names_the_thread_with_the_wrong_operand(before, statement, kind, thread):
    gpu, out = simulate.Device("10.0", schedules=1), np.zeros(1024, np.uint8)
    text = f"{HEAD.replace('THREAD', str(thread))}{before}{statement};\nDONE: ret;\n}}\n"
    tensor_map = gpu.create_tensor_map(out.view(np.int32), box_dim=(4,))
    errors = gpu.launch(simulate.Config(1, 32), gpu.load(text, "k"), out, tensor_map).errors
    (error,) = [error for error in errors if error.kind == kind] or pytest.fail(str(errors))
    assert (error.threads, error.ptx_line) == ((thread,), text[: text.index(statement)].count("\n") + 1)
    assert error.ends_launch
