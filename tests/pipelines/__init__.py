"""Random pipelines that are right by construction, and become wrong if one necessary statement is left out.

``pipeline.cu`` is the kernel. `shape` contains the macros that choose its parts, and `faults` the statements that are
necessary in a given choice. `run` launches a pipeline and compares it with NumPy. There must be no findings, because
the following chains order each pair of accesses to the same bytes of which one writes, in the terms of PTX's "Causality
Order".

A stage of the ring:
    The write of a tile precedes the reads of it. A copy's bytes complete ``full``'s phase, a ``cp.async`` or a store is
    followed by its thread's arrival there (``st.async``: by its bytes), and every thread that reads has waited for that
    phase. Stores that wgmma or a copy reads are followed, in the same thread, by ``fence.proxy.async``. The reads of a
    tile precede the next write there. Each reader arrives at ``empty`` after its reads, itself or through a barrier
    with the thread that arrives for it; each writer has waited for that phase. Where loads read and a copy writes, a
    ``fence.proxy.async`` is between the loads and the arrival, in the reader or in the thread that arrives for its
    warp. Where the two are in different CTAs, arrival and wait have cluster scope, unless wgmmas or copies have read,
    which their wait has ended. A wait for ``empty`` names the parity before the first phase in the first round, so that
    no thread waits for a release of an empty stage. All arrivals of a phase are of one round, because no thread comes
    to the next round of a stage before all threads have arrived in this one.

Data between consumers:
    ``shared_sums``: written, barrier, read by others, barrier, written again (a warp's by ``__syncwarp``). ``buffers``:
    the storing thread has waited until at most the other buffers are read, barrier, written, each thread fences,
    barrier, stored. At the end it waits until all have been read. ``out``: each worker has rows of its own, or all add
    (atomics, reductions).

Between CTAs of a cluster:
    All begin with a cluster barrier after the initialization of all mbarriers. A CTA that arrives, reads, writes or
    copies in another's memory also ends with one, so that no CTA ends while another may access it. ``inbox``: written
    before a barrier of the cluster and read after it; or before an arrival of scope cluster, or by ``st.async`` or a
    copy whose bytes are awaited, and read after that wait.

Between CTAs of the grid:
    ``partial``: written, barrier, then one thread releases (``__threadfence()`` and an atomic, or a release); another
    CTA's acquires (atomic and ``__threadfence()``, an acquire), barrier, read; by a copy after
    ``fence.proxy.async.global``. The thread that counts to the last number has, by the atomics before its own, acquired
    from all others. A CTA waits only for one with a smaller number, which has begun before it.

Bytes and arrivals: each ``init`` counts the arrivals that the code above makes in one round; each ``expect_tx`` counts
the bytes of its loads, or of all CTAs' loads of its tile.
"""

from .faults import faults_of
from .run import SCHEDULES, Outcome, run
from .shape import Pipeline, pipelines

__all__ = ["SCHEDULES", "Outcome", "Pipeline", "faults_of", "pipelines", "run"]
