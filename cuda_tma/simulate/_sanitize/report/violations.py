"""The violations of grids, exits, clusters, tensor maps and undefined values, with a class and its message for each."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from .remedies import ACQUIRE_MAP, RELEASE_MAP, WAIT_FOR_GRIDS, WAIT_FOR_USES
from .statements import name_of, place_of
from .violation import Violation

__all__ = [
    "AbsentShuffleSource",
    "BeforeGridWait",
    "ChangedMap",
    "CopyWritesAfterExit",
    "LoadWritesAfterExit",
    "MapInMemory",
    "MapInUse",
    "RemoteLoadAfterExit",
    "RemoteUseAfterExit",
    "SendReadsAfterExit",
    "StoreReadsAfterExit",
    "UnwrittenLocalMemory",
    "UnwrittenSharedMemory",
    "WithoutClusters",
]


# ---- grids ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BeforeGridWait(Violation):
    """An access of a grid before its wait for the preceding grid, which conflicts with an access of that grid."""

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


# ---- the end of threads and CTAs ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StoreReadsAfterExit(Violation):
    """A thread that ends before its bulk store has read shared memory."""

    KIND, RULE = "early-exit", "group"
    REMEDY = (
        "execute commit_group() and wait_group_read<0>() (cp.async.bulk.wait_group.read 0) in the same thread before "
        "it ends"
    )

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} ends while {name_of(self.now)}, which it issued, may still read shared memory: the "
            "thread has not waited for its bulk group"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CopyWritesAfterExit(Violation):
    """A ``cp.async`` for which no thread of its CTA has waited before the CTA ends."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = "execute cp.async.wait_all before the end of the kernel, or remove an unused copy"

    def sentence(self, parts: Parts) -> str:
        block = parts.geometry.block_index(int(parts.geometry.cta_of_lane[self.lane]))
        return (
            f"block {block} ends while {name_of(self.now)}, which {self.thread(parts)} issued, may still write its "
            "shared memory: no thread has waited for it"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LoadWritesAfterExit(Violation):
    """A load that may write the shared memory of a CTA after the end of the CTA."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = "wait for the load before the end of the kernel, or remove an unused load"
    cta: int
    position: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"block {parts.geometry.block_index(self.cta)} ends while {name_of(self.now)} may still write its shared "
            f"memory: no thread of the block has waited for that phase of {parts.mbarriers.name(self.position)}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SendReadsAfterExit(Violation):
    """A copy to another CTA that may read the shared memory of the issuing CTA after the end of the issuing CTA."""

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
    """A use of another CTA's shared memory that may follow the end of this other CTA."""

    KIND, RULE = "early-exit", "lifetime"
    REMEDY = (
        "execute a cluster barrier (cluster_sync()) at the end of the kernel, or wait in that block for all such "
        "arrivals before its end"
    )
    cta: int

    def sentence(self, parts: Parts) -> str:
        what = "arrives at an mbarrier" if self.now.opcode[0] == "mbarrier" else "uses shared memory"
        return (
            f"{self.thread(parts)} {what} of block {parts.geometry.block_index(self.cta)}, and nothing orders this "
            "access before the end of that block"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RemoteLoadAfterExit(Violation):
    """A load from a CTA whose end follows the load only through a relaxed arrival at the cluster's barrier."""

    KIND, RULE, IS_ADVICE = "early-exit", "lifetime", True
    REMEDY = (
        "use the loaded value before the arrival, or execute barrier.cluster.arrive without .relaxed (cluster_sync())"
    )
    cta: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} loads from shared memory of block {parts.geometry.block_index(self.cta)}, and only "
            "barrier.cluster.arrive.relaxed is between the load and the end of that block: it does not order memory, "
            "so the load is complete only if its value is used before the arrival"
        )


# ---- clusters ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WithoutClusters(Violation):
    """An instruction that needs a launch with clusters."""

    KIND, RULE = "cluster", "clusters"
    REMEDY = "launch the kernel with clusters of at least one CTA: Config(cluster=1), LaunchConfig(cluster=1)"

    def sentence(self, parts: Parts) -> str:
        return f"{self.thread(parts)} issues {'.'.join(self.now.opcode[:2])} in a launch without clusters"


# ---- tensor maps ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChangedMap(Violation):
    """A copy that uses a changed tensor map without a release or an acquire, which `lacks` names."""

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
    """The use of a tensor map in global memory without an acquire; the TMA unit may have a stale copy of the map."""

    KIND, RULE = "missing-tensor-map-fence", "map"
    REMEDY = (
        "execute fence_tensor_map_acquire(map) (fence.proxy.tensormap::generic.acquire.sys) in the thread that issues "
        "the copy, or pass the map as a __grid_constant__ parameter"
    )
    address: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.issued(parts)} uses a tensor map in global memory, at 0x{self.address:x}, without a "
            "preceding fence.proxy.tensormap::generic.acquire: the TMA unit may have a stale copy"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MapInUse(Violation):
    """A change of a tensor map in global memory while an operation may still read the map."""

    KIND, RULE, REMEDY = "race", "order", WAIT_FOR_USES
    other: Instruction
    address: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} changes the tensor map in global memory at 0x{self.address:x} while "
            f"{name_of(self.other)} at {place_of(self.other.places, self.other.line)} may still read it: nothing "
            "orders the two"
        )


# ---- undefined values ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AbsentShuffleSource(Violation):
    """A shuffle that reads the register of a lane that does not execute the shuffle."""

    KIND, RULE, IS_ADVICE = "barrier-divergence", "shuffle", True
    REMEDY = (
        "include in the mask all lanes that are read, or execute each step only in lanes whose source is in the mask"
    )
    source: int
    mask: int

    def sentence(self, parts: Parts) -> str:
        is_named = self.mask >> self.source & 1
        lacks = "contains that lane, which has ended" if is_named else "does not contain that lane"
        return (
            f"{self.thread(parts)} takes the value of lane {self.source} of its warp by "
            f"{'.'.join(self.now.opcode[:3])}, but the mask 0x{self.mask:08x} {lacks}: the value is undefined"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnwrittenLocalMemory(Violation):
    """A read of local memory that the reading thread has not written."""

    KIND, RULE, IS_ADVICE = "uninitialized-read", "local", True
    REMEDY = "write each element of the local array before its read; check the indices of both accesses"
    size_bytes: int
    offset: int

    def sentence(self, parts: Parts) -> str:
        of = f"at byte {self.offset} of its local variables" if self.offset >= 0 else "of a caller's local variables"
        return f"{self.thread(parts)} reads {self.size_bytes} bytes {of}, which it has not written"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnwrittenSharedMemory(Violation):
    """A read, by a thread or its operation, of shared memory that was never written."""

    KIND, RULE, IS_ADVICE = "uninitialized-read", "undefined", True
    REMEDY = "write the bytes before the read, or wait for the copy that writes them; their initial value is undefined"
    position: int
    is_operation: bool

    def sentence(self, parts: Parts) -> str:
        name = parts.program.shared_name(self.position % parts.memory.shared_pitch)
        actor = self.issued(parts) if self.is_operation else self.thread(parts)
        return f"{actor} reads shared memory that was never written: {name}"
