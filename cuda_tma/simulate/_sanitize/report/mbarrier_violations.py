"""The violations of the rules of mbarriers, with a class and its message for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from .shared_violations import SharedPair
from .statements import place_of
from .violation import Violation

__all__ = [
    "ArrivalTooEarly",
    "MbarrierAsMemory",
    "MbarrierInitInUse",
    "MbarrierInvalInUse",
    "MbarrierNotFenced",
    "MbarrierNotReady",
    "MbarrierUnordered",
    "OtherMbarrierSignaled",
    "UnexpectedBytes",
]
_BEFORE_USE = "put __syncthreads(), or in a cluster cluster_sync(), between mbarrier.init and the first use"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierNotReady(Violation):
    """An operation that is not ordered after the initialization of its mbarrier."""

    KIND, RULE, REMEDY = "barrier-use", "init", _BEFORE_USE
    position: int

    def sentence(self, parts: Parts) -> str:
        name = parts.mbarriers.name(self.position)
        return f"{self.issued(parts)} signals {name}, and nothing orders the signal after its mbarrier.init"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierNotFenced(Violation):
    """A signal through the async proxy to an mbarrier without a fence after the initialization of the mbarrier."""

    KIND, RULE = "missing-proxy-fence", "proxy"
    REMEDY = (
        "execute fence_barrier_init() (fence.mbarrier_init.release.cluster) or fence.proxy.async after mbarrier.init, "
        "in the thread that initializes"
    )
    position: int

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.issued(parts)} signals {parts.mbarriers.name(self.position)} through the async proxy, with no "
            "fence between its mbarrier.init and this use"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OtherMbarrierSignaled(Violation):
    """A copy whose mbarrier is in another CTA than the destination of the copy."""

    KIND, RULE = "cluster", "elsewhere"
    REMEDY = (
        "pass the mbarrier of the CTA that the copy writes (mapa with the same rank), and wait for that mbarrier in "
        "that CTA"
    )
    named: int
    signaled: int

    def sentence(self, parts: Parts) -> str:
        block = parts.geometry.block_index(self.signaled // parts.memory.shared_pitch)
        return (
            f"{self.issued(parts)} writes shared memory of block {block}, and names the mbarrier "
            f"{parts.mbarriers.name(self.named)}, but it signals {parts.mbarriers.name(self.signaled)} (observed on an "
            "H200)"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UnexpectedBytes(Violation):
    """An mbarrier whose tx-count is negative when its use ends."""

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
    """An arrival that, in another order of threads, counts for the preceding phase, which needs no more arrivals."""

    KIND, RULE = "barrier-use", "arrivals"
    REMEDY = (
        "let the thread wait for a phase (mbarrier.try_wait) before it arrives for the next one; or pass to "
        "mbarrier.init the number of arrivals of a phase"
    )
    other: Instruction
    position: int
    phase: int

    def sentence(self, parts: Parts) -> str:
        made = parts.mbarriers.known(self.position)
        other = f"one of the {made.count} arrivals" if made is not None else "an arrival"
        return (
            f"{self.thread(parts)} arrives at {parts.mbarriers.name(self.position)} for its phase {self.phase}, but "
            f"nothing orders the arrival after the end of phase {self.phase - 1} ({other} of that phase is at "
            f"{place_of(self.other.places, self.other.line)}): in another order, the arrival counts for phase "
            f"{self.phase - 1}, and exceeds the count of mbarrier.init"
        )


# ---- two accesses to the bytes of an mbarrier ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierUnordered(SharedPair):
    """The use of an mbarrier by a thread that is not ordered after the initialization of the mbarrier."""

    KIND, RULE, REMEDY = "barrier-use", "init", _BEFORE_USE
    position: int

    def sentence(self, parts: Parts) -> str:
        name = parts.mbarriers.name(self.position)
        return f"{self.thread(parts)} uses the mbarrier {name}, and nothing orders this use after its mbarrier.init"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierInitInUse(SharedPair):
    """The initialization of an mbarrier that is not ordered after earlier uses of the same bytes."""

    KIND, RULE = "barrier-use", "init"
    REMEDY = "initialize each mbarrier once, or execute a barrier of all its users before it is initialized again"

    def sentence(self, parts: Parts) -> str:
        return (
            f"mbarrier.init initializes {self.memory(parts)}, which other threads may still use: nothing orders it "
            "after their uses"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierInvalInUse(SharedPair):
    """The invalidation of an mbarrier that is not ordered after the earlier uses of the mbarrier."""

    KIND, RULE = "barrier-use", "inval"
    REMEDY = "put __syncthreads() between the last use of the mbarrier by any thread and mbarrier.inval"

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.thread(parts)} invalidates {self.memory(parts)}, and nothing orders this after the use by "
            f"{self.earlier(parts)}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class MbarrierAsMemory(SharedPair):
    """An ordinary access to bytes that threads also use as an mbarrier."""

    KIND, RULE = "barrier-use", "init"
    REMEDY = "access an mbarrier only by mbarrier instructions; execute mbarrier.inval before any other access"

    def sentence(self, parts: Parts) -> str:
        return f"{self.thread(parts)} accesses {self.memory(parts)} as ordinary memory, although an mbarrier is there"
