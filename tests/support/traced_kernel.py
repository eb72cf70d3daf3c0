"""A kernel in PTX with waits and copies of most kinds, and its timeline as text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cuda_tma import simulate

PTX = """.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 given, .param .u64 taken, .param .u32 more)
{
.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b64 full;
.shared .align 8 .b64 empty;
ld.param.u64 %rd1, [given]; ld.param.u64 %rd2, [taken]; ld.param.u32 %r9, [more];
mov.u32 %r1, %tid.x; mov.u32 %r2, full; mov.u32 %r3, empty; mov.u32 %r4, tile; mov.u32 %r13, %ctaid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READY;
mbarrier.init.shared.b64 [%r2], 1;
mbarrier.init.shared.b64 [%r3], 128;
fence.mbarrier_init.release.cluster;
fence.proxy.async;
READY: bar.sync 0;
setp.ge.u32 %p2, %r1, 32;
@%p2 bra READERS;
@%p1 bra DONE;
add.u32 %r10, %r9, 256;
mbarrier.arrive.expect_tx.shared.b64 _, [%r2], %r10;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 128, [%r2];
add.u32 %r5, %r4, 128; add.u64 %rd3, %rd1, 128;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%rd3], 128, [%r2];
EMPTY: mbarrier.try_wait.parity.shared.b64 %p3, [%r3], 0;
@!%p3 bra EMPTY;
setp.ne.u32 %p3, %r13, 0;
@%p3 bra DONE;
mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 64;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 64, [%r2];
bra DONE;
READERS:
shl.b32 %r6, %r1, 2; add.u32 %r7, %r4, %r6; cvt.u64.u32 %rd4, %r6; add.u64 %rd5, %rd1, %rd4;
cp.async.ca.shared.global [%r7+256], [%rd5], 4;
cp.async.commit_group;
cp.async.wait_group 0;
FULL: mbarrier.try_wait.parity.shared.b64 %p3, [%r2], 0;
@!%p3 bra FULL;
mbarrier.arrive.shared.b64 _, [%r3];
bar.sync 1, 128;
setp.ne.u32 %p3, %r1, 32;
@%p3 bra DONE;
fence.proxy.async;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r4], 128;
cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2+128], [%r4+128], 64;
cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;
DONE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}
"""


def timeline_of(more: int = 0) -> simulate.Timeline:
    """Return the timeline of a launch of two CTAs whose barrier expects `more` bytes in addition to the copies."""
    gpu, given, taken = simulate.Device(schedules=1), np.arange(256, dtype=np.int32), np.zeros(256, np.int32)
    report = gpu.launch(simulate.Config(2, 160), gpu.load(PTX, "k"), given, taken, more, trace=True)
    return report.timeline()


def lines_of(timeline: simulate.Timeline) -> Iterator[str]:
    """Yield all values of a timeline, except the levels in the middle of a long list."""
    for track in timeline.tracks:
        yield f"{track.kind} {track.name!r} of {track.block}, {track.begin} to {track.end}"
        for span in track.spans:
            end = ", never complete" * span.in_vain
            yield f"  {span.kind} {span.begin} to {span.end}{end}, {span.size_bytes} bytes: {span.label}"
            yield from (f"    {line}" for line in f"{span.source}\n{span.detail}".splitlines() if line)
        for step, arrivals, tx in (*track.levels[:8], *track.levels[8:][-3:]):
            yield f"  from {step}: {arrivals} arrivals, {tx} bytes"


def tracks() -> str:
    """Return the timelines of a right launch and of a launch whose barriers never complete."""
    return "".join(f"==== {more} bytes\n" + "\n".join(lines_of(timeline_of(more))) + "\n" for more in (0, 16))
