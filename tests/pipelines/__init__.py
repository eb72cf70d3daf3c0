"""Random pipelines that are right by construction, and become wrong if one necessary statement is left out.

``pipeline.cu`` is the kernel. `shape` contains the macros that select its parts, and `faults` the statements that each
selection needs. `run` launches a pipeline and compares its results with NumPy's. There must be no findings, because the
following chains order each pair of accesses, one of which is a write, to the same bytes. The terms are those of
"Causality Order" in the PTX ISA.

These rules hold for a stage of the ring.
    The write of a tile precedes the reads of the tile. The bytes of a copy complete the phase of ``full``. A
    ``cp.async`` or a store precedes an arrival of its thread at ``full``, and the bytes of an ``st.async`` complete the
    phase. Every thread that reads the tile first waits for that phase. A thread that writes for a wgmma or a copy
    executes ``fence.proxy.async`` after its stores.

    The reads of a tile precede the next write of its stage. Each reader arrives at ``empty`` after its reads, directly
    or through a barrier with the thread that arrives for the reader. Each writer first waits for that phase. If loads
    read and a copy writes, a ``fence.proxy.async`` is between the loads and the arrival, in the reader or in the thread
    that arrives for its warp. If reader and writer are in different CTAs, the arrival and the wait have cluster scope.
    Reads by wgmmas or copies do not need that scope, because the reading thread waits for their end.

    In the first round, a wait for ``empty`` has the parity of the phase before the first phase, so that the wait
    returns at once. All arrivals of a phase belong to one round, because no thread starts the next round of a stage
    before all threads have arrived in this round.

These rules hold for data between consumers.
    The variable ``shared_sums`` is written by a thread. After a barrier, other threads read the variable, and another
    barrier precedes the next write. For the sums of one warp, ``__syncwarp`` is the barrier.

    For ``buffers``, the storing thread waits until only the other buffers have pending stores, and a barrier follows.
    All threads write the buffer, and each thread executes a fence. After a second barrier, the storing thread stores
    the buffer. At the end, the storing thread waits until the stores have read all buffers.

    In ``out``, each worker has separate rows, or all workers add with atomics or reductions.

These rules hold between CTAs of a cluster.
    All CTAs begin with a cluster barrier after the initialization of all mbarriers. A CTA that arrives, reads, writes
    or copies in the memory of another CTA also ends with a cluster barrier, so that no CTA ends before that access.

    A CTA writes to ``inbox`` before a cluster barrier, and another CTA reads after this barrier. Alternatively, the CTA
    writes before an arrival of cluster scope, by ``st.async``, or by a copy, and the other CTA reads after a wait for
    the arrival or the bytes.

These rules hold between CTAs of the grid.
    Threads write to ``partial``, a barrier follows, and one thread executes a release, or ``__threadfence()`` and an
    atomic. In another CTA, one thread executes an acquire, or an atomic and ``__threadfence()``. A barrier follows, and
    then threads read. A copy reads after ``fence.proxy.async.global``. The thread that increments the counter last
    synchronizes with all other threads through the preceding atomics.

    A CTA waits only for a CTA with a smaller number, which has begun earlier.

These rules hold for bytes and arrivals.
    Each ``init`` has the number of arrivals in one round. Each ``expect_tx`` has the number of bytes of its loads, or
    of the loads of all CTAs into its tile.
"""

from .faults import faults_of
from .run import SCHEDULES, Outcome, run
from .shape import Pipeline, pipelines

__all__ = ["SCHEDULES", "Outcome", "Pipeline", "faults_of", "pipelines", "run"]
