"""Which rule is broken, and what mends it, by what the two accesses are."""

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
    "init": f'{_ISA}"mbarrier.init": an mbarrier is used after its initialisation, as memory is read after a write',
    "inval": f'{_ISA}"mbarrier.inval": every other operation on the mbarrier is ordered before it',
    "arrivals": f'{_ISA}"Arrive-on operation on mbarrier object": a phase has as many arrivals as its pending count',
    "bytes": f'{_ISA}"Phase Completion of the mbarrier object": a phase is complete when its tx-count is zero',
    "elsewhere": f'{_ISA}"cp.async.bulk": the mbarrier lies in the shared memory of the CTA that the copy writes',
    "group": f'{_ISA}"cp.async.bulk.wait_group": the thread that issued a copy waits for it by its groups',
    "wgmma": f'{_ISA}"wgmma.wait_group": the sums are there after the wait for their group',
    "flight": f'{_ISA}"wgmma.mma_async": its registers are accessed after the wgmma.wait_group for its group',
    "registers": f'{_ISA}"wgmma.fence": it orders accesses of registers before a wgmma.mma_async that reads them',
    "map": f'{_ISA}"membar, fence": a tensor map that was changed is acquired through the tensormap proxy',
    "grids": f'{_ISA}"griddepcontrol": what grids before have done is visible after griddepcontrol.wait',
    "undefined": f'{_ISA}"Shared State Space": shared memory is not initialised',
    "shuffle": f'{_ISA}"shfl.sync": the value of a lane that is inactive or not in membermask is undefined',
    "local": f'{_ISA}"Local State Space": a thread has its local variables to itself, and they are not initialized',
    "lifetime": f'{_ISA}"Shared State Space": shared memory lasts as long as its CTA',
}
FENCE_BEFORE_STORE = (
    "fence.proxy.async (fence_proxy_async()) by each thread that wrote, after its writes and before the barrier that "
    "lets the asynchronous operation begin"
)
FENCE_BEFORE_LOAD = (
    "fence.proxy.async (fence_proxy_async()) by each thread that read, after its reads and before it arrives where the "
    "producer waits"
)
FENCE_OF_GLOBAL = (
    "fence.proxy.async.global (fence_proxy_async_global(); fence_proxy_async() is of shared memory alone) by those who "
    "were there first, before they tell it, or by who issues the copy, after it was told"
)
CONFIRMED = (
    "the value that it reads is confirmed: the same thread's next write to these bytes is an atom.cas that compares "
    "with it"
)
NO_EFFECT = (
    "the value that it reads has no effect: a replay with other values takes as many steps and leaves the same memory"
)
EFFECT = (
    "the value has an effect: with another one a replay leaves other memory or output, or takes another number of steps"
)
GLOBAL_ORDER = (
    "a barrier within the block; between blocks a release (st.release, or __threadfence() and an atomic) by one, an "
    "acquire by the other; after a TMA store cp.async.bulk.wait_group first"
)
BOTH_STRONG = (
    "make both accesses atomic, relaxed or volatile (atomicExch, atomicAdd, ld.relaxed, st.relaxed); or order them: "
    "by a barrier within the block, between blocks by a release and an acquire, or by another kernel before this one"
)
COHERENT_LOAD = (
    "load by ld.global: an ordinary access through a pointer that is neither __restrict__ nor an argument of __ldg()"
)
ONE_SIZE = "access the word in one size everywhere: all by 64-bit, or all by 32-bit atomics"
WIDER_ATOMICS = "take the scope that includes both threads, .gpu for several blocks (atomicAdd, not atomicAdd_block)"
ACQUIRE_MAP = (
    "fence_tensor_map_acquire(map) (fence.proxy.tensormap::generic.acquire) by the thread that issues the copy"
)
RELEASE_MAP = (
    "fence_tensor_map_release() (fence.proxy.tensormap::generic.release) by who has changed it, before others are told"
)
ONE_WRITER = "let one thread write it; or write it by st.relaxed, st.volatile or an atomic, which do not race"
WAIT_FOR_GRIDS = (
    "griddepcontrol_wait() (griddepcontrol.wait) before the first access to what the grid before touches, by each "
    "thread, or by one before a barrier; or a launch without programmatic_stream_serialization"
)
WARP_BARRIER = "put __syncwarp() (bar.warp.sync) behind the access, before one lane of the warp tells others of it"
WARPGROUP_BARRIER = (
    "a barrier of the warpgroup (bar.sync) between the writes and wgmma.fence, or a wait for the copy's mbarrier by "
    "each of its threads"
)
WIDER_SCOPE = (
    "mbarrier.arrive.release.cluster (Barrier::arrive_at(), ClusterBarrier::arrive()) by who tells, and "
    "mbarrier.try_wait.acquire.cluster (Barrier::wait_cluster()) by who waits; without a scope both are .cta"
)
_BARRIER = "put __syncthreads(), __syncwarp(), or an mbarrier's arrival and wait, between the two"
_READ_FIRST = (
    "after the read arrive on an mbarrier that whoever writes waits for before it writes; or, where all threads pass, "
    "put __syncthreads() between the two"
)
_LANDED = (
    "wait for the phase of the copy's mbarrier (mbarrier.try_wait) before this access, by each thread that makes it"
)
_LANDED_ELSEWHERE = (
    "let a thread of the CTA that the copy writes wait for the phase of its mbarrier, and then arrive with "
    ".release.cluster (arrive_at(rank)) on an mbarrier of this CTA; and wait for that with .acquire.cluster "
    "(wait_cluster(parity)) before this access, by each thread that makes it"
)
_IN_FLIGHT = (
    "wait for the phase of the copy's mbarrier (mbarrier.try_wait) before the other access; a wait that returned at "
    "once was for the parity of the phase before: an mbarrier's first phase has parity 0, and each counts its own"
)
_STORED = (
    "wait_group_read<0>() (cp.async.bulk.wait_group.read) by the thread that issued the copy, and a barrier that tells "
    "the others, before the bytes are written"
)
_WRITTEN = (
    "between the writes and the asynchronous operation first fence.proxy.async (fence_proxy_async()) by each thread "
    "that wrote, then a barrier, __syncthreads() say, of these threads and the one that issues it"
)
_RELEASED = (
    "arrive, after the last read, on an mbarrier that the producer waits for before it loads, or put __syncthreads() "
    "between the reads and the load; if it is this copy that they read, let them wait for its phase first"
)
_PRODUCT = "wgmma.wait_group for that product, before the stage is released"
_COPIED = "cp.async.wait_group, and a barrier for other threads, before this access"


def remedy_of(
    was: str,
    now: Instruction,
    who: object,
    *,
    is_own: bool = False,
    is_in_bulk_group: bool = False,
    is_elsewhere: bool = False,
) -> str:
    """What orders an access after another.

    Parameters
    ----------
    was : str
        ``"read"``, ``"write"`` or ``"atomic"``: what the one before did.
    now : Instruction
    who : object
        A lane, or what the operation before completes on: ``("mbarrier", position)``.
    is_own : bool
        Whether the access before is of the thread that issued the present operation: then it came after that.
    is_in_bulk_group : bool
        Whether the present operation is waited for by ``cp.async.bulk.wait_group``.
    is_elsewhere : bool
        Whether the mbarrier of the operation before is in another CTA, where it cannot be waited for from here.
    """
    if isinstance(who, tuple):
        landed = _LANDED_ELSEWHERE if is_elsewhere else _LANDED
        return {"mbarrier": landed, "sent": landed, "bulk": _STORED, "wgmma": _PRODUCT, "cp.async": _COPIED}[who[0]]
    if now.opcode[0] in ("cp", "wgmma"):
        if is_own and is_in_bulk_group:
            return _STORED
        if was == "read":
            return _IN_FLIGHT if is_own else _RELEASED
        return _WRITTEN
    return _READ_FIRST if was == "read" else _BARRIER
