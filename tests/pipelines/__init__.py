"""Random pipelines that are right by construction, and can each be made wrong by leaving one statement out.

``pipeline.cu`` is the kernel, `shape` the macros that choose its parts, `faults` which of its statements matter in a
given choice, `run` launches one and compares with NumPy. Why nothing may be found in it: of all pairs of accesses to
the same bytes, of which one writes, these chains order them, in the words of PTX's "Causality Order".

A stage of the ring:
    The write of a tile comes before the reads of it. A copy's bytes complete ``full``'s phase, a ``cp.async`` or a
    store is followed by its thread's arrival there (``st.async``: by its bytes), and every thread that reads has
    waited for that phase. Stores that wgmma or a copy reads are followed, in the same thread, by
    ``fence.proxy.async``.
    The reads of a tile come before the next write there. Each reader arrives at ``empty`` when it has read, itself or
    through a barrier with the one that arrives for it; whoever writes has waited for that phase. Where loads read and
    a copy writes, a ``fence.proxy.async`` lies between the loads and the arrival, in the reader or in the one that
    arrives for its warp. Where the two are in different CTAs, arrival and wait have the scope of the cluster, unless
    wgmmas or copies have read, which their wait has ended.
    A wait for ``empty`` names the parity before the first phase in the first round, so that nobody waits for a
    release of what was never filled; all arrivals of a phase are of one round, since nobody comes to the next round
    of a stage before everybody has arrived in this one.

What consumers hand on:
    ``shared_sums``: written, barrier, read by others, barrier, written again (a warp's by ``__syncwarp``).
    ``buffers``: the thread that stores has waited until at most the other buffers are read, barrier, written, each
    thread fences, barrier, stored. At the end it waits until all have been read.
    ``out``: each worker has rows of its own, or all add (atomics, reductions).

Between CTAs of a cluster:
    All begin by a barrier of the cluster behind the making of all mbarriers. Where one arrives, reads, writes or
    copies in another's memory it ends by one too, so that none is gone while another may touch it.
    ``inbox``: written before a barrier of the cluster and read after it; or before an arrival of scope cluster, or by
    ``st.async`` or a copy whose bytes are awaited, and read after that wait.

Between CTAs of the grid:
    ``partial``: written, barrier, then one thread releases (``__threadfence()`` and an atomic, or a release); another
    CTA's acquires (atomic and ``__threadfence()``, an acquire), barrier, read; by a copy after
    ``fence.proxy.async.global``. Who counts to the last has, by the atomics before its own, acquired from all others.
    A CTA waits only for one of a smaller number, which has begun before it.

Bytes and arrivals: each ``init`` counts those that the code above has in one round; each ``expect_tx`` what its
loads, or all CTAs' loads of its tile, deliver.
"""

from .faults import faults_of
from .run import SCHEDULES, Outcome, run
from .shape import Pipeline, pipelines

__all__ = ["SCHEDULES", "Outcome", "Pipeline", "faults_of", "pipelines", "run"]
