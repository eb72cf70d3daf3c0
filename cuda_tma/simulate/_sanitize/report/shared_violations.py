"""The violations of two accesses to shared memory, with a class and its message for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from .remedies import (
    FENCE_BEFORE_LOAD,
    FENCE_BEFORE_STORE,
    ONE_WRITER,
    WARP_BARRIER,
    WARPGROUP_BARRIER,
    WIDER_SCOPE,
    remedy_of,
)
from .statements import name_of, place_of
from .violation import Violation

__all__ = [
    "NarrowScope",
    "OnlyWarpTogether",
    "OnlyWarpgroupTogether",
    "SameValue",
    "SharedFenceMissing",
    "SharedPair",
    "SharedRace",
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedPair(Violation):
    """Two accesses to shared memory; `now` is the later access, and `other` is the earlier access.

    Attributes
    ----------
    access, other_access : str
        The kinds of the later and the earlier access: ``"read"`` or ``"write"``. The later access may also be
        ``"atomic"``.
    is_operation : bool
        Whether an asynchronous operation of the thread makes the later access.
    other_lane : int or None
        The thread of the earlier access; None for an operation.
    first, size_bytes : int
        The first byte that both accesses share, and the number of shared bytes. The first byte is a position in the
        shared memory of all resident CTAs.
    threads : int
        The number of threads that make the later access, each to a part of the bytes. The number is 1 for an
        asynchronous operation.
    """

    other: Instruction
    access: str
    is_operation: bool
    other_access: str
    other_lane: int | None
    first: int
    size_bytes: int
    threads: int

    def later(self, parts: Parts) -> str:
        """Return a text that describes the later access: its threads or operation with the verb, and its bytes."""
        verb = "read" if self.access == "read" else "write"
        return f"{self._actor(parts)} {verb}{'s' if self.threads == 1 else ''} {self.memory(parts)}"

    def _actor(self, parts: Parts) -> str:
        if self.is_operation:
            return self.issued(parts)
        if not (others := self.threads - 1):
            return self.thread(parts)
        return f"{self.thread(parts)} and {others} other thread{'s' if others > 1 else ''}"

    def earlier(self, parts: Parts) -> str:
        """Return the name and the place of the thread or operation of the earlier access."""
        place = place_of(self.other.places, self.other.line)
        if self.other_lane is None:
            return f"{name_of(self.other)} at {place}"
        same = self.other_lane == self.lane
        return f"{'the same thread' if same else parts.geometry.thread_name(self.other_lane)} at {place}"

    def memory(self, parts: Parts) -> str:
        """Return the number of bytes that both accesses share and their name, such as ``128 bytes at `tile` ``."""
        name = parts.program.shared_name(self.first % parts.memory.shared_pitch)
        return f"{self.size_bytes} bytes {'at ' if name.startswith('`') else ''}{name}"

    @property
    def participle(self) -> str:
        return "wrote" if self.other_access == "write" else "read"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedRace(SharedPair):
    """Two accesses to shared memory that nothing orders.

    Attributes
    ----------
    completes_on : str
        The kind of object on which the earlier operation completes, such as ``"mbarrier"``; empty for an access of a
        thread.
    is_elsewhere : bool
        Whether the earlier thread, or the mbarrier of the earlier operation, is in another CTA.
    is_in_bulk_group : bool
        Whether ``cp.async.bulk.wait_group`` waits for the later operation.
    """

    KIND, RULE = "race", "order"
    completes_on: str
    is_elsewhere: bool
    is_in_bulk_group: bool

    @property
    def remedy(self) -> str:
        return remedy_of(
            self.other_access,
            self.now,
            self.completes_on,
            is_own=self.is_operation and self.other_lane == self.lane,
            is_in_bulk_group=self.is_in_bulk_group,
            is_elsewhere=self.is_elsewhere,
        )

    def sentence(self, parts: Parts) -> str:
        doing = "writing" if self.other_access == "write" else "reading"
        return f"{self.later(parts)} while {self.earlier(parts)} may still be {doing} them: nothing orders the two"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SameValue(SharedPair):
    """Two writes of the same value that nothing orders."""

    KIND, RULE, REMEDY = "race", "order", ONE_WRITER

    def sentence(self, parts: Parts) -> str:
        return f"{self.later(parts)}, and {self.earlier(parts)} writes the same value there: nothing orders the two"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NarrowScope(SharedPair):
    """The accesses of two CTAs that are ordered only by synchronization of the narrower scope .cta."""

    KIND, RULE, REMEDY = "race", "scope", WIDER_SCOPE

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.later(parts)}, which {self.earlier(parts)} {self.participle}: "
            "only an mbarrier arrival or wait of scope .cta orders the two, but they are in different CTAs"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SharedFenceMissing(SharedPair):
    """Two ordered accesses through different proxies without a proxy fence between them."""

    KIND, RULE = "missing-proxy-fence", "proxy"

    @property
    def remedy(self) -> str:
        return FENCE_BEFORE_STORE if self.other_access == "write" else FENCE_BEFORE_LOAD

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.later(parts)} through the async proxy, which "
            f"{self.earlier(parts)} {self.participle} through the generic proxy, with no fence.proxy.async between the "
            "two"
        )


# ---- disputed orders ----


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OnlyWarpTogether(SharedPair):
    """Two accesses that are ordered only by an instruction of a whole warp, which does not order memory accesses."""

    KIND, RULE, REMEDY = "race", "order", WARP_BARRIER
    by: Instruction

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.later(parts)}, which {self.earlier(parts)} {self.participle}: only {name_of(self.by)} at "
            f"{place_of(self.by.places, self.by.line)}, which its warp executes together, orders the two; hardware "
            "keeps this order, but the instruction is not a barrier for memory"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OnlyWarpgroupTogether(SharedPair):
    """A ``wgmma`` that reads bytes whose write precedes the ``wgmma`` in only some threads of the warpgroup."""

    KIND, RULE, REMEDY = "race", "order", WARPGROUP_BARRIER

    def sentence(self, parts: Parts) -> str:
        return (
            f"{self.later(parts)}, which {self.earlier(parts)} wrote: not all threads of the warpgroup have waited for "
            "the write, and only wgmma itself, which the four warps execute together, orders the two. An H200 keeps "
            "this order (50 launches with delays of up to 100 us), but wgmma is not a barrier for memory"
        )
