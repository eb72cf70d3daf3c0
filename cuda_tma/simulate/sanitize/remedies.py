"""Which rule is broken, and what mends it, by what the two accesses are."""

from __future__ import annotations

from ..ptx import Instruction

__all__ = [
    "FENCE_BEFORE_LOAD",
    "FENCE_BEFORE_STORE",
    "FENCE_OF_GLOBAL",
    "GLOBAL_ORDER",
    "RULES",
    "WIDER_SCOPE",
    "remedy_of",
]

_ISA = "PTX ISA, "
RULES = {
    "order": f'{_ISA}"Causality Order": an access is ordered after another by a barrier, or by release and acquire',
    "scope": f'{_ISA}"Morally Strong Operations": a release and an acquire each need a scope with both threads in it',
    "proxy": f'{_ISA}"Causality Order": accesses through two proxies are ordered by a proxy fence between them',
    "init": f'{_ISA}"mbarrier.init": an mbarrier is used after its initialisation, as memory is read after a write',
    "group": f'{_ISA}"cp.async.bulk.wait_group": the thread that issued a copy waits for it by its groups',
    "wgmma": f'{_ISA}"wgmma.wait_group": the sums are there after the wait for their group',
    "registers": f'{_ISA}"wgmma.fence": it orders accesses of registers before a wgmma.mma_async that reads them',
    "map": f'{_ISA}"membar, fence": a tensor map that was changed is acquired through the tensormap proxy',
    "undefined": f'{_ISA}"Shared State Space": shared memory is not initialised',
    "lifetime": f'{_ISA}"Shared State Space": shared memory lasts as long as its CTA',
}
FENCE_BEFORE_STORE = "fence.proxy.async (fence_proxy_async()) by each thread that wrote, then the barrier before it"
FENCE_BEFORE_LOAD = (
    "fence.proxy.async (fence_proxy_async()) after the reads, and then the arrival that the producer waits for"
)
FENCE_OF_GLOBAL = "fence.proxy.async (fence_proxy_async()) between the two, before who writes tells who reads"
GLOBAL_ORDER = (
    "a barrier within the block; between blocks a release (st.release, or __threadfence() and an atomic) by one, an "
    "acquire by the other; after a TMA store cp.async.bulk.wait_group first"
)
WIDER_SCOPE = (
    "mbarrier.arrive.release.cluster (Barrier::arrive_at(), ClusterBarrier::arrive()) by who tells, and "
    "mbarrier.try_wait.acquire.cluster (Barrier::wait_cluster()) by who waits; without a scope both are .cta"
)
_BARRIER = "put __syncthreads(), __syncwarp(), or an mbarrier's arrival and wait, between the two"
_LANDED = (
    "wait for the phase of the copy's mbarrier (mbarrier.try_wait) before this access, by each thread that makes it"
)
_STORED = (
    "wait_group_read<0>() (cp.async.bulk.wait_group.read) by the thread that issued the copy, and a barrier that tells "
    "the others, before the bytes are written"
)
_RELEASED = (
    "arrive, after the last read, on the mbarrier that the producer waits for before it loads; or __syncthreads()"
)
_PRODUCT = "wgmma.wait_group for that product, before the stage is released"
_COPIED = "cp.async.wait_group, and a barrier for other threads, before this access"


def remedy_of(before: Instruction, was: str, now: Instruction, kind: str, who: object) -> str:
    """What orders an access after another.

    Parameters
    ----------
    before, now : Instruction
    was, kind : str
        ``"read"``, ``"write"`` or ``"atomic"``.
    who : object
        A lane, or what the operation before completes on: ``("mbarrier", position)``.
    """
    if isinstance(who, tuple):
        return {"mbarrier": _LANDED, "bulk": _STORED, "wgmma": _PRODUCT, "cp.async": _COPIED}[who[0]]
    if was == "read" and now.opcode[0] == "cp":
        return _RELEASED
    if now.opcode[0] in ("cp", "wgmma"):
        return FENCE_BEFORE_STORE
    return _BARRIER
