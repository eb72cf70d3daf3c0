"""Tests of statements that the simulator refuses before a launch, with the line and the reason."""

import re

import pytest

from cuda_tma import simulate

DECLARED = """.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<40>; .reg .b64 %rd<4>; .reg .f32 %f<4>; .reg .b128 %q<2>;
.shared .align 128 .b8 tile[1024];"""
GPU = simulate.Device("10.0", schedules=1)
FOUR, EIGHT = "{%r0, %r1, %r2, %r3}", "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
MMA = "tcgen05.mma.cta_group::1"
REFUSED = [
    # operands
    ("ld.global.u32 %r1, %rd1", "an address that is not in brackets"),
    ("mov.u32 %r1, %nosuchregister", "special register %nosuchregister"),
    ("st.global.u32 [%rd1], tile+4; add.u32 tile, %r1, %r2", "Symbol as a result"),
    ("add.u32 %r1, [%rd1], %r2", "Address as a source"),
    ("mov.b64 %rd1, %q0", "of a register of 128 bits"),
    ("add.u32 %r1, %p1, %r2", "of a predicate in a number's place"),
    ("selp.u32 %r1, %r2, %r3, %r4", "of a number in a predicate's place"),
    ("add.quick.u32 %r1, %r2, %r3", "does not know"),
    # control
    ("bra %r1", "a branch to an operand that is not a label"),
    ("brx.idx %r1, %r2", "no list of targets"),
    ("call elsewhere, ()", "no body of elsewhere"),
    ("call (%r1), vprintf, (%rd1, %rd2)", "arguments in registers"),
    ("call [%rd1], ()", "a call of "),
    ("elect.sync %r1, %r2", "one result"),
    ("barrier.cta.red.xor.aligned.pred %p1, 0, %p2", "of no such reduction"),
    # copies and reductions in memory
    ("atom.global.cas.b32 %r1, [%rd1], %r2", "with 1 values"),
    ("atom.global.add.u32 %r1, [%rd1], %r2, %r3", "with 2 values"),
    ("atom.global.inc.f32 %f1, [%rd1], %f2", "no inc.f32"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u64 [%rd1], [tile], 16", "no reduction inc of u64"),
    ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s8 [%rd1], [tile], 16", "no reduction add of s8"),
    ("cp.async.bulk.wait_group %r1", "a count that is not a constant"),
    ("cp.async.ca.shared.global [tile], [%rd1], 12", "a size that is not 4, 8 or 16"),
    ("st.bulk.weak.shared::cta [tile], 8, 1", "of a value other than 0"),
    ("st.bulk.weak.shared::cta [tile], 8, %rd1", "of a value other than 0"),
    ("st.async.shared::cluster.b32 [%r1], %r2, [%r3]", "without an mbarrier"),
    ("cp.async.bulk.prefetch.tensor.1d.L2.global.tile [%rd1]", "no coordinates"),
    ("fence", "without a scope or a proxy"),
    ("ld.global.v2.u32 {%r1, %r2, %r3}, [%rd1]", "of 2 elements with 3 registers"),
    # tensor maps
    ("tensormap.replace.global_address.global.b1024.b64 [%rd1], %rd2", "does not know"),
    ("tensormap.replace.tile.something.global.b1024.b64 [%rd1], %rd2", "does not know"),
    ("tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], %r1, %r2", "a dimension that is not a constant"),
    # matrices
    ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2}, [tile]", "of 4 matrices with 2 registers"),
    (f"wmma.load.a.sync.aligned.row.m16n16k20.f16 {EIGHT}, [%rd1], 16", "does not know"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1, %r2, %r3, %r4, %r5}, [%rd1], 16", "6 registers"),
    (f"wmma.mma.sync.aligned.row.col.m16n16k16.f64.f64.bf16.f64 {FOUR}, {EIGHT}, {EIGHT}, {FOUR}", "does not know"),
    # tensor memory
    ("tcgen05.shift.cta_group::1.up [%r1]", "in this direction"),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, %rd1}, [%r4]", "an operand that is not a register of 32 bits"),
    ("tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r0, 5}, [%r4]", "an operand that is not a register of 32 bits"),
    (f"tcgen05.ld.sync.aligned.32x32b.x2.b32 {FOUR}, [%r4]", "of 2 registers with 4"),
    ("tcgen05.ld.red.sync.aligned.32x32b.x2.add.f32 {%r0, %r1}, %r2, [%r4]", "of this reduction"),
    (f"{MMA}.kind::f8 [%r1], %rd1, %rd2, %r2, %p1", "of this kind"),
    (f"{MMA}.kind::f16 [%r1], %rd1, %rd2, %r2, {{%r3, %r4}}, %p1", "its masks of lanes"),
    (f"{MMA}.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, %r5", "a mask of columns, or a scale of D"),
    (f"{MMA}.kind::i8 [%r1], %rd1, %rd2, %r2, %p1, 3", "a mask of columns, or a scale of D"),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "reason"), REFUSED)
def test_a_statement_that_is_refused(statement, reason):
    head = ".version 9.2\n.target sm_100a\n.address_size 64\n.extern .func elsewhere();\n"
    head += ".extern .func (.param .b32 done) vprintf(.param .b64 format, .param .b64 given);\n"
    text = f"{head}.visible .entry k() {{\n{DECLARED}\nbra DONE;\n{statement};\nDONE: ret;\n}}\n"
    line = text[: text.index(statement)].count("\n") + 1
    with pytest.raises(simulate.UnsupportedInstruction, match=re.escape(reason)) as refusal:
        GPU.launch(simulate.Config(1, 32), GPU.load(text, "k"))
    assert refusal.value.line == line and refusal.value.opcode == statement.split(";")[-1].split()[0]
