"""Tests that the simulator refuses spellings of instructions that PTX does not have, as ``ptxas`` does."""

import pytest

from cuda_tma.simulate._pure import lookup
from tests.support.pure_instructions import instruction

MMA = "mma.sync.aligned.m16n8k16.row.col"
A, B, C = "{a1, a2, a3, a4}", "{b1, b2}", "{c1, c2, c3, c4}"
REFUSED = [
    # The instructions of a warp exist only with .sync.
    "shfl.idx.b32 d, a, b, c",
    "vote.any.pred p, a",
    "match.any.b32 d, a",
    "redux.add.s32 d, a, b",
    "match.any.sync.b32 d|p, a, b",
    "redux.sync.add.f32 d, a, b",
    "redux.sync.and.f32 d, a, b",
    # comparisons
    "setp.lt.f16x2 p, a, b",
    "set.lt.f16.f16x2 d, a, b",
    "set.lt.f16x2.f32 d, a, b",
    "set.lt.f32.f16 d, a, b",
    "set.lt.f32.bf16 d, a, b",
    # moves
    "mov.b64 {a, b}, {c, d}",
    "mov.b32 {a, b, c}, d",
    "mov.b16 {a, b, c, d}, e",
    "mov.b32 d, a, b",
    # integers
    "mad.lo.sat.s32 d, a, b, c",
    "mad.hi.sat.u32 d, a, b, c",
    "mad.wide.cc.u32 d, a, b, c",
    "mad.lo.cc.u16 d, a, b, c",
    "madc.lo.s16 d, a, b, c",
    # mixed precision
    "add.ftz.f32.f16 d, a, b",
    "fma.rn.ftz.f32.bf16 d, a, b, c",
    "min.xorsign.f32 d, a, b",
    # conversions
    "cvt.pack.u16.s32 d, a, b",
    "cvt.rn.tf32.f64 d, a",
    "cvt.rn.tf32.f16 d, a",
    "cvt.rn.f32.f16x2 d, a",
    "cvt.rn.e4m3x2.f32 d, a, b",
    "cvt.rz.satfinite.e4m3x2.f32 d, a, b",
    "cvt.rn.satfinite.f16x2.e4m3x2 d, a",
    "cvt.rn.f16x2.bf16x2 d, a",
    "cvt.rn.e2m3x2.f32 d, a, b",
    "cvt.rn.satfinite.e2m3x2.f64 d, a, b",
    "cvt.rn.f32.e2m3x2 d, a",
    "cvt.rz.ue8m0x2.f16x2 d, a",
    "cvt.rn.ue8m0x2.f32 d, a, b",
    "cvt.rn.f16x2.ue8m0x2 d, a",
    # products of matrices
    f"mma.aligned.m16n8k16.row.col.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"mma.sync.m16n8k16.row.col.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k16.col.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k16.row.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"{MMA}.f32.f16.bf16.f32 {C}, {A}, {B}, {C}",
    f"{MMA}.f32.s8.s8.f32 {C}, {A}, {B}, {C}",
    f"{MMA}.f32.f16.f16.f16 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.row.col.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m8n8k32.row.col.s32.s8.s8.s32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k20.row.col.f32.f16.f16.f32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k128.row.col.s32.b1.b1.s32 {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32.and.popc {C}, {A}, {B}, {C}",
    f"mma.sync.aligned.m16n8k32.row.col.f64.f64.f64.f64 {C}, {A}, {B}, {C}",
    "movmatrix.aligned.m8n8.trans.b16 d, a",
    "movmatrix.sync.m8n8.trans.b16 d, a",
    "movmatrix.sync.aligned.trans.b16 d, a",
    "movmatrix.sync.aligned.m8n8.b16 d, a",
    # others
    "clusterlaunchcontrol.is_canceled.pred.b128 p, a",
    "sin.approx.f16 d, a",
    "rcp.approx.f64 d, a",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_a_spelling_that_does_not_exist(text):
    assert lookup(instruction(text)) is None
