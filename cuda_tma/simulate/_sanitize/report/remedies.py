"""The rules that findings cite, and the remedy for each pair of accesses."""

from __future__ import annotations

from ..._ptx import Instruction

__all__ = [
    "ACQUIRE_MAP",
    "BOTH_STRONG",
    "COHERENT_LOAD",
    "CONFIRMED",
    "EFFECT",
    "FENCE_BEFORE_LOAD",
    "FENCE_BEFORE_STORE",
    "FENCE_OF_GLOBAL",
    "GLOBAL_ORDER",
    "NO_EFFECT",
    "RULES",
    "WAIT_FOR_GRIDS",
    "WARPGROUP_BARRIER",
    "WARP_BARRIER",
    "WIDER_SCOPE",
    "remedy_of",
]

_ISA = "PTX ISA, "
RULES = {
    "order": f'{_ISA}"Causality Order": an access is ordered after another by a barrier, or by release and acquire',
    "strong": f'{_ISA}"Conflict and Data-races": a weak access races with an atomic, volatile or relaxed one that '
    "conflicts with it, unless the two are ordered",
    "morally strong": f'{_ISA}"Morally Strong Operations": each of two strong accesses needs a scope with both threads '
    "in it, and both access the same bytes",
    "nc": f'{_ISA}"ld.global.nc": the non-coherent cache is for memory that is read-only as long as the kernel runs',
    "scope": f'{_ISA}"Morally Strong Operations": a release and an acquire each need a scope with both threads in it',
    "proxy": f'{_ISA}"Causality Order": accesses through two proxies are ordered by a proxy fence between them',
    "init": f'{_ISA}"mbarrier.init": the initialization of an mbarrier is ordered before its first use',
    "inval": f'{_ISA}"mbarrier.inval": every other operation on the mbarrier is ordered before it',
    "arrivals": f'{_ISA}"Arrive-on operation on mbarrier object": the arrivals of a phase equal its pending count',
    "bytes": f'{_ISA}"Phase Completion of the mbarrier object": a phase is complete when its tx-count is zero',
    "elsewhere": f'{_ISA}"cp.async.bulk": the mbarrier lies in the shared memory of the CTA that the copy writes',
    "group": f'{_ISA}"cp.async.bulk.wait_group": the thread that issued a copy waits for its bulk group',
    "wgmma": f'{_ISA}"wgmma.wait_group": the accumulators are valid after the wait for their group',
    "flight": f'{_ISA}"wgmma.mma_async": its registers are accessed after the wgmma.wait_group for its group',
    "registers": f'{_ISA}"wgmma.fence": it orders accesses of registers before a wgmma.mma_async that reads them',
    "map": f'{_ISA}"membar, fence": a tensor map that was changed is acquired through the tensormap proxy',
    "grids": f'{_ISA}"griddepcontrol": writes of the preceding grids are visible after griddepcontrol.wait',
    "undefined": f'{_ISA}"Shared State Space": shared memory is not initialized',
    "shuffle": f'{_ISA}"shfl.sync": the value of a lane that is inactive or not in membermask is undefined',
    "local": f'{_ISA}"Local State Space": local variables are private to a thread and not initialized',
    "clusters": "Observed, and in no document (driver 580, sm_90): st.async and red.async end in "
    "CUDA_ERROR_ILLEGAL_INSTRUCTION without clusters, and run in clusters of one CTA",
    "tcgen05": f'{_ISA}"Memory Consistency Model for 5th generation of TensorCore operations": tcgen05 operations are '
    "asynchronous; tcgen05.wait waits for ld and st, and the mbarrier of a tcgen05.commit for the others",
    "tensor memory": f'{_ISA}"Tensor Memory": it is not initialized',
    "lifetime": f'{_ISA}"Shared State Space": shared memory lasts as long as its CTA',
}
FENCE_BEFORE_STORE = (
    "execute fence.proxy.async (fence_proxy_async()) in each thread that wrote, after its writes and before the "
    "barrier that precedes the asynchronous operation"
)
FENCE_BEFORE_LOAD = (
    "execute fence.proxy.async (fence_proxy_async()) in each thread that read, after its reads and before its arrival "
    "on the mbarrier that the producer waits for"
)
FENCE_OF_GLOBAL = (
    "execute fence.proxy.async.global (fence_proxy_async_global(); fence_proxy_async() covers only shared memory) in "
    "each thread of the earlier access before it signals the issuing thread, or in the issuing thread after its wait"
)
CONFIRMED = (
    "the race has no effect, because the thread confirms the value: its next write to these bytes is an atom.cas that "
    "compares with the value"
)
NO_EFFECT = (
    "the value has no effect: a replay with another value takes the same number of steps and leaves the same memory"
)
EFFECT = "the value has an effect: a replay with another value gives another memory, output or number of steps"
GLOBAL_ORDER = (
    "order the two accesses: within a block by a barrier, between blocks by a release after the first (st.release, or "
    "__threadfence() and an atomic) and an acquire before the second; after a TMA store, execute "
    "cp.async.bulk.wait_group first"
)
BOTH_STRONG = (
    "make both accesses atomic, relaxed or volatile (atomicExch, atomicAdd, ld.relaxed, st.relaxed); or order them: "
    "within a block by a barrier, between blocks by a release and an acquire, or by a separate kernel for the first "
    "access"
)
COHERENT_LOAD = (
    "load with ld.global: use an ordinary access, without __ldg(), through a pointer that is not __restrict__"
)
ONE_SIZE = "access the word in one size: use only 64-bit or only 32-bit atomics"
WIDER_ATOMICS = (
    "use a scope that includes both threads, such as .gpu for several blocks (atomicAdd instead of atomicAdd_block)"
)
ACQUIRE_MAP = (
    "execute fence_tensor_map_acquire(map) (fence.proxy.tensormap::generic.acquire) in the thread that issues the copy"
)
WAIT_FOR_USES = (
    "before the map changes, wait for the copies that use it: wait for the phase of their mbarrier, or execute "
    "commit_group() and wait_group_read<0>() (cp.async.bulk.wait_group.read) in the thread that issued them; then "
    "execute a barrier with the threads that change the map"
)
RELEASE_MAP = (
    "execute fence_tensor_map_release() (fence.proxy.tensormap::generic.release) in the thread that changed the map, "
    "before it signals other threads"
)
ONE_WRITER = "write the value in one thread only; or use st.relaxed, st.volatile or an atomic, which do not race"
WAIT_FOR_GRIDS = (
    "execute griddepcontrol_wait() (griddepcontrol.wait) before the first access to this memory, in each thread or in "
    "one thread before a barrier; or launch without programmatic_stream_serialization"
)
WARP_BARRIER = "execute __syncwarp() (bar.warp.sync) after the access, before one lane signals other threads"
WARPGROUP_BARRIER = (
    "execute a barrier of the warpgroup (bar.sync) between the writes and wgmma.fence, or wait for the copy's mbarrier "
    "in each thread of the warpgroup"
)
WIDER_SCOPE = (
    "use mbarrier.arrive.release.cluster (Barrier::arrive_at(), ClusterBarrier::arrive()) in the arriving thread and "
    "mbarrier.try_wait.acquire.cluster (Barrier::wait_cluster()) in the waiting thread; the default scope is .cta"
)
_BARRIER = (
    "put __syncthreads() between the two (within one warp, __syncwarp()), or let the thread of the other access "
    "arrive on an mbarrier after that access, and let this thread wait for the mbarrier before its own access"
)
_CLUSTER_BARRIER = (
    "put a barrier of the cluster (cluster_sync(), barrier.cluster) between the two, or let the thread of the other "
    "access arrive on an mbarrier with .release.cluster after that access, and let this thread wait for the mbarrier "
    "with .acquire.cluster before its own access"
)
_READ_FIRST = (
    "arrive on an mbarrier after the read, and wait for it before the write; or put __syncthreads() between the two "
    "where all threads execute it"
)
_LANDED = "wait for the phase of the copy's mbarrier (mbarrier.try_wait) before this access, in each accessing thread"
_LANDED_ELSEWHERE = (
    "in the CTA that the copy writes, wait for the phase of its mbarrier, then arrive with .release.cluster "
    "(arrive_at(rank)) on an mbarrier of this CTA; wait for that mbarrier with .acquire.cluster (wait_cluster(parity)) "
    "before this access, in each accessing thread"
)
_IN_FLIGHT = (
    "wait for the phase of the copy's mbarrier (mbarrier.try_wait) before the other access; if there is a wait that "
    "returned at once, correct its parity: the first phase of each mbarrier has parity 0"
)
_STORED = (
    "before the bytes are written, execute wait_group_read<0>() (cp.async.bulk.wait_group.read) in the thread that "
    "issued the copy, then a barrier with the writing threads"
)
_WRITTEN = (
    "between the writes and the asynchronous operation, execute fence.proxy.async (fence_proxy_async()) in each thread "
    "that wrote, then a barrier (such as __syncthreads()) of these threads and the issuing thread"
)
_RELEASED = (
    "arrive after the last read on an mbarrier that the producer waits for before the load, or put __syncthreads() "
    "between the reads and the load; if the reads need the data of this copy, wait for its phase first"
)
_PRODUCT = "execute wgmma.wait_group for that product before the stage is released"
_MULTIPLIED = (
    "wait for the mbarrier of a tcgen05.commit that follows the operation (mbarrier.try_wait), before the stage is "
    "written"
)
_COPIED = "execute cp.async.wait_group before this access, and a barrier if another thread accesses the bytes"


def remedy_of(
    was: str,
    now: Instruction,
    completes_on: str,
    *,
    is_own: bool = False,
    is_in_bulk_group: bool = False,
    is_elsewhere: bool = False,
) -> str:
    """Return the remedy that orders the present access after an earlier access.

    Parameters
    ----------
    was : str
        The kind of the earlier access: ``"read"``, ``"write"`` or ``"atomic"``.
    now : Instruction
    completes_on : str
        The kind of object on which the earlier operation completes, such as ``"mbarrier"``; empty for an access of a
        thread.
    is_own : bool
        Whether the thread that issued the present operation made the earlier access after the issue.
    is_in_bulk_group : bool
        Whether ``cp.async.bulk.wait_group`` waits for the present operation.
    is_elsewhere : bool
        Whether the earlier access belongs to another CTA. This means that the earlier thread, or the mbarrier of the
        earlier operation, is in another CTA. The present CTA cannot wait for such an mbarrier.
    """
    if completes_on:
        landed = _LANDED_ELSEWHERE if is_elsewhere else _LANDED
        of_groups = {"bulk": _STORED, "wgmma": _PRODUCT, "cp.async": _COPIED, "tcgen05": _MULTIPLIED}
        return of_groups.get(completes_on, landed)
    if now.opcode[0] in ("cp", "wgmma", "tcgen05"):
        if is_own and is_in_bulk_group:
            return _STORED
        if was == "read":
            return _IN_FLIGHT if is_own else _RELEASED
        return _WRITTEN
    if is_elsewhere:
        return _CLUSTER_BARRIER
    return _READ_FIRST if was == "read" else _BARRIER
