"""Random pipelines that are right by construction, and become wrong if one necessary statement is left out.

``pipeline.cu`` is the kernel. `shape` contains the macros that select its parts, and `faults` the statements that each
selection needs. `run` launches a pipeline and compares its results with NumPy's. There must be no findings, because
the following chains order each pair of accesses to the same bytes of which one is a write. The terms are those of
"Causality Order" in the PTX ISA.

A stage of the ring:
    The write of a tile precedes the reads of it. The bytes of a copy complete the phase of ``full``. A ``cp.async`` or
    a store precedes an arrival of its thread at ``full``, and the bytes of an ``st.async`` complete the phase. Every
    thread that reads waits for that phase first. A thread that writes for a wgmma or a copy executes
    ``fence.proxy.async`` after its stores.

    The reads of a tile precede the next write of its stage. Each reader arrives at ``empty`` after its reads, directly
    or through a barrier with the thread that arrives for it. Each writer waits for that phase first. If loads read and
    a copy writes, a ``fence.proxy.async`` is between the loads and the arrival, in the reader or in the thread that
    arrives for its warp. If reader and writer are in different CTAs, the arrival and the wait have cluster scope. Reads
    by wgmmas or copies do not need that scope, because the reading thread waits for their end.

    In the first round, a wait for ``empty`` has the parity of the phase before the first one, so that it returns at
    once. All arrivals of a phase belong to one round, because no thread starts the next round of a stage before all
    threads have arrived in this round.

Data between consumers:
    ``shared_sums``: a thread writes, a barrier follows, other threads read, and a barrier precedes the next write. For
    the sums of one warp, ``__syncwarp`` is the barrier.

    ``buffers``: the storing thread waits until only the other buffers have pending stores, and a barrier follows. All
    threads write the buffer, and each executes a fence. After a second barrier, the storing thread stores the buffer.
    At the end it waits until the stores have read all buffers.

    ``out``: each worker has rows of its own, or all workers add with atomics or reductions.

Between CTAs of a cluster:
    All CTAs begin with a cluster barrier after the initialization of all mbarriers. A CTA that arrives, reads, writes
    or copies in the memory of another CTA also ends with a cluster barrier, so that no CTA ends before that access.

    ``inbox``: a CTA writes before a cluster barrier, and another reads after it. Or the CTA writes before an arrival of
    cluster scope, by ``st.async``, or by a copy, and the other reads after a wait for the arrival or the bytes.

Between CTAs of the grid:
    ``partial``: threads write, a barrier follows, and one thread executes a release, or ``__threadfence()`` and an
    atomic. In another CTA one thread executes an acquire, or an atomic and ``__threadfence()``. A barrier follows, and
    then threads read. A copy reads after ``fence.proxy.async.global``. The thread that counts to the last number
    synchronizes with all others through the atomics that precede its own.

    A CTA waits only for a CTA with a smaller number, which has begun before it.

Bytes and arrivals:
    Each ``init`` has the number of arrivals in one round. Each ``expect_tx`` has the number of bytes of its loads, or
    of the loads of all CTAs into its tile.
"""

from .faults import faults_of
from .run import SCHEDULES, Outcome, run
from .shape import Pipeline, pipelines

__all__ = ["SCHEDULES", "Outcome", "Pipeline", "faults_of", "pipelines", "run"]
