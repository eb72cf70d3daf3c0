"""The violations of copies, mbarriers, tensor maps, exits and undefined memory: a class for each, with its words."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from .remedies import ACQUIRE_MAP, RELEASE_MAP, WAIT_FOR_GRIDS
from .statements import name_of, place_of
from .violation import Violation

__all__ = [
    "AbsentShuffleSource",
    "ArrivalTooEarly",
    "BeforeGridWait",
    "ChangedMap",
    "CopyWritesAfterExit",
    "LoadWritesAfterExit",
    "MapInMemory",
    "MbarrierNotFenced",
    "MbarrierNotReady",
    "OtherMbarrierSignaled",
    "RemoteLoadAfterExit",
    "RemoteUseAfterExit",
    "SendReadsAfterExit",
    "StoreReadsAfterExit",
    "UnexpectedBytes",
    "UnwrittenLocalMemory",
    "UnwrittenSharedMemory",
]


# ---- grids ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BeforeGridWait(Violation):
    """A grid that began early has not waited for the preceding grid; each accesses the same memory."""

    KIND, RULE, REMEDY = "race", "grids", WAIT_FOR_GRIDS
    access: str
    address: int
    other: Instruction
    other_access: str

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} {self.access}s global memory at 0x{self.address:x}, which the preceding grid "
            f"{self.other_access}s at {place_of(self.other.places, self.other.line)}, with no griddepcontrol.wait "
            "before this access"
        )


# ---- mbarriers ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierNotReady(Violation):
    """An operation is not ordered after the initialization of its mbarrier."""

    KIND, RULE = "barrier-use", "init"
    REMEDY = "put __syncthreads(), or in a cluster its barrier, between mbarrier.init and the first use"
    position: int

    def sentence(self, parts: Parts) -> str:
        name = parts.mbarriers.name(self.position)
        return f"{self.issued(parts)} signals {name}, and nothing orders that after its mbarrier.init"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierNotFenced(Violation):
    """A signal through the async proxy has no fence after the initialization of the mbarrier."""

    KIND, RULE = "missing-proxy-fence", "proxy"
    REMEDY = "fence_barrier_init() (fence.mbarrier_init.release.cluster), or fence.proxy.async, after mbarrier.init"
    position: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.issued(parts)} signals {parts.mbarriers.name(self.position)} through the async proxy, with no "
            "fence between its mbarrier.init and this use"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OtherMbarrierSignaled(Violation):
    """A copy names an mbarrier in another CTA than its destination."""

    KIND, RULE = "cluster", "elsewhere"
    REMEDY = "name the mbarrier of the CTA that the copy writes, by mapa of the same rank, and wait for it there"
    named: int
    signaled: int

    def sentence(self, parts: Parts) -> str:
        block = parts.geometry.block_index(self.signaled // parts.memory.shared_pitch)
        return (
            f"{self.issued(parts)} writes shared memory of block {block}, and names the mbarrier "
            f"{parts.mbarriers.name(self.named)}; the one that it signals is {parts.mbarriers.name(self.signaled)}, "
            "as on an H200"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnexpectedBytes(Violation):
    """An mbarrier ends with a negative tx-count."""

    KIND, RULE, IS_ADVICE = "transaction-count", "bytes", True
    REMEDY = (
        "execute mbarrier.expect_tx (Barrier::expect_tx(), arrive_expect_tx()) for the bytes of each copy, and "
        "wait for the phase before the mbarrier ends"
    )
    position: int
    tx: int
    phase: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{parts.mbarriers.name(self.position)} ends with a tx-count of {self.tx}: {-self.tx:,} bytes arrived in "
            f"its phase {self.phase} without an expect_tx, so that phase cannot complete"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ArrivalTooEarly(Violation):
    """In another order an arrival counts for the preceding phase, which has all its arrivals."""

    KIND, RULE = "barrier-use", "arrivals"
    REMEDY = (
        "let the thread wait for a phase (mbarrier.try_wait) before it arrives for the next one; or state in "
        "mbarrier.init as many arrivals as come in a phase"
    )
    other: Instruction
    position: int
    phase: int

    def sentence(self, parts: Parts) -> str:
        made = parts.mbarriers.known(self.position)
        count = f"of its {made.count} arrivals" if made is not None else "of its arrivals"
        return (
            f"{self.thread(parts)} arrives at {parts.mbarriers.name(self.position)} for its phase {self.phase}, and "
            f"nothing orders that after the end of phase {self.phase - 1}, {count} one is at "
            f"{place_of(self.other.places, self.other.line)}: in another order this arrival counts for that phase, as "
            "one more than mbarrier.init states"
        )


# ---- the end of threads and CTAs ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StoreReadsAfterExit(Violation):
    """A thread ends before its bulk store has read shared memory."""

    KIND, RULE = "early-exit", "group"
    REMEDY = (
        "execute commit_group() and wait_group_read<0>() (cp.async.bulk.wait_group.read 0) in the same thread at "
        "the end"
    )

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} ends while {name_of(self.now)}, which it issued, may still read shared memory: the "
            "thread has not waited for its bulk group"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CopyWritesAfterExit(Violation):
    """No thread of a CTA has waited for a ``cp.async``."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = "execute cp.async.wait_all before the end, or issue no unused copy"

    def sentence(self, parts: Parts) -> str:
        block = parts.geometry.block_index(int(parts.geometry.cta_of_lane[self.lane]))
        return (
            f"block {block} ends while {name_of(self.now)}, which {self.thread(parts)} issued, may still write its "
            "shared memory: no thread has waited for it"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoadWritesAfterExit(Violation):
    """A load may write shared memory of a CTA that has ended."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = "issue no unused load, or wait for it before the end"
    cta: int
    position: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"block {parts.geometry.block_index(self.cta)} ends while {name_of(self.now)} may still write its shared "
            f"memory: none of its threads has waited for that phase of {parts.mbarriers.name(self.position)}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SendReadsAfterExit(Violation):
    """A copy to another CTA may read shared memory of a CTA that has ended."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = "execute a cluster barrier (cluster_sync()) at the end, after the wait for the copy's mbarrier"
    cta: int
    position: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"block {parts.geometry.block_index(self.cta)} ends while {name_of(self.now)} may still read its shared "
            f"memory: nothing orders its end after that phase of {parts.mbarriers.name(self.position)}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RemoteUseAfterExit(Violation):
    """A use of another CTA's shared memory may follow the end of that CTA."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = "execute a cluster barrier (cluster_sync()) at the end of the kernel, or wait there for all such arrivals"
    cta: int

    def sentence(self, parts: Parts) -> str:
        what = "arrives at an mbarrier" if self.now.opcode[0] == "mbarrier" else "uses shared memory"
        return (
            f"{self.thread(parts)} {what} of block {parts.geometry.block_index(self.cta)}, and nothing orders that "
            "before the end of that block"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RemoteLoadAfterExit(Violation):
    """Only a relaxed arrival at the barrier of the cluster orders a load before the end of the CTA that it reads."""

    KIND, RULE, IS_ADVICE = "early-exit", "lifetime", True
    REMEDY = (
        "use the loaded value before the arrival; or execute barrier.cluster.arrive without .relaxed (cluster_sync())"
    )
    cta: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} loads from shared memory of block {parts.geometry.block_index(self.cta)}, and only "
            "barrier.cluster.arrive.relaxed orders that before the end of that block: it orders no memory, so the load "
            "is complete only if its value is used before the arrival"
        )


# ---- tensor maps ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChangedMap(Violation):
    """A copy uses a changed map that was not released, or not acquired; `lacks` names the fence."""

    KIND, RULE, REMEDY = "missing-tensor-map-fence", "map", RELEASE_MAP
    other: Instruction
    lacks: str

    @property
    def remedy(self) -> str:
        return ACQUIRE_MAP if self.lacks.startswith("acquire") else self.REMEDY

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.issued(parts)} uses a tensor map that {'.'.join(self.other.opcode[:2])} at "
            f"{place_of(self.other.places, self.other.line)} has changed, with no "
            f"fence.proxy.tensormap::generic.{self.lacks} before this use"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapInMemory(Violation):
    """The TMA unit may have a stale copy of a map in global memory."""

    KIND, RULE = "missing-tensor-map-fence", "map"
    REMEDY = (
        "execute fence_tensor_map_acquire(map) (fence.proxy.tensormap::generic.acquire.sys) in the thread that issues "
        "the copy, or pass the map as a __grid_constant__ parameter"
    )
    address: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.issued(parts)} uses a tensor map in global memory, at 0x{self.address:x}, and no "
            "fence.proxy.tensormap::generic.acquire of it precedes: the TMA unit may have a stale copy"
        )


# ---- values without a definition ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AbsentShuffleSource(Violation):
    """A lane takes the value of a lane that takes no part."""

    KIND, RULE, IS_ADVICE = "barrier-divergence", "shuffle", True
    REMEDY = "name in the mask all lanes that are read, or give each step only to lanes whose source is in the mask"
    source: int
    mask: int

    def sentence(self, parts: Parts) -> str:
        is_named = self.mask >> self.source & 1
        lacks = "contains that lane, which has ended" if is_named else "does not contain that lane"
        return (
            f"{self.thread(parts)} takes the value of lane {self.source} of its warp by "
            f"{'.'.join(self.now.opcode[:3])}, and the mask 0x{self.mask:08x} {lacks}: the value is undefined"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnwrittenLocalMemory(Violation):
    """A thread reads local memory that it has not written."""

    KIND, RULE, IS_ADVICE = "uninitialized-read", "local", True
    REMEDY = "write each element of the local array before it is read; compare the indices of both accesses"
    size_bytes: int
    offset: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} reads {self.size_bytes} bytes at byte {self.offset} of its local variables, which "
            "it has not written"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnwrittenSharedMemory(Violation):
    """A thread, or its operation, reads shared memory that was never written."""

    KIND, RULE, IS_ADVICE = "uninitialized-read", "undefined", True
    REMEDY = "write the bytes before the read, or wait for the copy that writes them; their initial value is undefined"
    position: int
    is_operation: bool

    def sentence(self, parts: Parts) -> str:
        name = parts.program.shared_name(self.position % parts.memory.shared_pitch)
        actor = self.issued(parts) if self.is_operation else self.thread(parts)
        return f"{actor} reads shared memory that was never written: {name}"
