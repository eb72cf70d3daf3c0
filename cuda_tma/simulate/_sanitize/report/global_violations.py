"""The violations of two accesses to global memory, with a class and its message for each kind."""

from __future__ import annotations

from dataclasses import dataclass

from ..._copies.parts import Parts
from ..._ptx import Instruction
from ..model.units import is_strong
from .remedies import (
    BOTH_STRONG,
    COHERENT_LOAD,
    FENCE_OF_GLOBAL,
    GLOBAL_ORDER,
    ONE_SIZE,
    ONE_WRITER,
    RULES,
    WIDER_ATOMICS,
)
from .statements import name_of, place_of
from .violation import Violation

__all__ = [
    "GlobalFenceMissing",
    "GlobalPair",
    "GlobalRace",
    "GlobalSameValue",
    "NonCoherentLoad",
    "NotMorallyStrong",
]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalPair(Violation):
    """Two accesses to global memory; `now` is the later access, and `other` is the earlier access.

    Attributes
    ----------
    access, other_access : str
        The kinds of the later and the earlier access: ``"read"`` or ``"write"``. The later access may also be
        ``"atomic"``.
    is_operation, other_is_operation : bool
        Whether an asynchronous operation makes the later access, and whether one makes the earlier access.
    other_lane : int or None
        The thread of the earlier access; None for an operation or a thread of another cluster.
    address : int
        The address of the first byte that both accesses share.
    """

    other: Instruction
    access: str
    is_operation: bool
    other_access: str
    other_is_operation: bool
    other_lane: int | None
    address: int

    def actor(self, parts: Parts) -> str:
        """Return the name of the thread or operation of the later access."""
        return self.issued(parts) if self.is_operation else self.thread(parts)

    def earlier(self, parts: Parts) -> str:
        """Return the name of the thread or operation of the earlier access."""
        if self.other_is_operation:
            return name_of(self.other)
        return "a thread of another block" if self.other_lane is None else parts.geometry.thread_name(self.other_lane)

    def accesses(self, parts: Parts) -> str:
        """Return a text that describes both accesses.

        An example is ``thread 0 reads global memory at 0x10 by atom.add.u32, which thread 32 at a.cu:5 wrote``.
        """
        place, done = place_of(self.other.places, self.other.line), "wrote" if self.other_access == "write" else "read"
        verb = "read" if self.access == "read" else "write"
        by = "" if self.is_operation else _by(self.now)
        by_before = "" if self.other_is_operation else _by(self.other)
        return (
            f"{self.actor(parts)} {verb}s global memory at 0x{self.address:x}{by}, which {self.earlier(parts)} at "
            f"{place} {done}{by_before}"
        )


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalRace(GlobalPair):
    """Two accesses to global memory that nothing orders."""

    KIND = "race"

    @property
    def _is_mixed(self) -> bool:
        """Return whether one access is weak, and the other access is strong and is not a load."""
        now, other = self.now, self.other
        return _is_strong(other) != _is_strong(now) and "ld" not in (now if _is_strong(now) else other).opcode

    @property
    def rule(self) -> str:
        return RULES["strong" if self._is_mixed else "order"]

    @property
    def remedy(self) -> str:
        return BOTH_STRONG if self._is_mixed else GLOBAL_ORDER

    @property
    def racing_read(self) -> tuple[Instruction, Instruction] | None:
        """The load and the write of a race between two threads; None if neither access is a load."""
        if self.is_operation or self.other_is_operation or (self.access == "read") == (self.other_access == "read"):
            return None
        return (self.now, self.other) if self.access == "read" else (self.other, self.now)

    def sentence(self, parts: Parts) -> str:
        return f"{self.accesses(parts)}, and nothing orders the two"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalFenceMissing(GlobalPair):
    """Two ordered accesses through different proxies without a proxy fence between them."""

    KIND, RULE, REMEDY = "missing-proxy-fence", "proxy", FENCE_OF_GLOBAL

    def sentence(self, parts: Parts) -> str:
        proxy = "" if self.is_operation and self.other_is_operation else " through another proxy"
        return f"{self.accesses(parts)}{proxy}, with no fence.proxy.async between the two"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NotMorallyStrong(GlobalPair):
    """Two strong accesses that are not morally strong, because of their scopes or their bytes.

    Attributes
    ----------
    lacks : str
        The condition that fails: ``"scope"`` or ``"size"``.
    """

    KIND, RULE, REMEDY = "race", "morally strong", ONE_SIZE
    lacks: str

    @property
    def remedy(self) -> str:
        return WIDER_ATOMICS if self.lacks == "scope" else self.REMEDY

    def sentence(self, parts: Parts) -> str:
        reason = (
            "the scope of one does not include the other's thread"
            if self.lacks == "scope"
            else "the two access the same memory in different sizes"
        )
        return f"{self.accesses(parts)}: {reason}, and nothing orders them"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class NonCoherentLoad(GlobalPair):
    """A load through the non-coherent cache that reads bytes which the kernel has written."""

    KIND, RULE, REMEDY = "race", "nc", COHERENT_LOAD

    def sentence(self, parts: Parts) -> str:
        return f"{self.accesses(parts)} in this launch: ld.global.nc may return the value from before the write"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalSameValue(GlobalPair):
    """Two writes of the same value that nothing orders."""

    KIND, RULE, REMEDY = "race", "order", ONE_WRITER

    def sentence(self, parts: Parts) -> str:
        place = place_of(self.other.places, self.other.line)
        return (
            f"{self.actor(parts)} writes global memory at 0x{self.address:x}, and {self.earlier(parts)} at {place} "
            "writes the same value there: nothing orders the two"
        )


def _by(instruction: Instruction) -> str:
    return f" by {'.'.join(instruction.opcode)}" if _is_strong(instruction) else ""


def _is_strong(instruction: Instruction) -> bool:
    """Return whether an access is strong; a TMA reduction is strong for each element."""
    return is_strong(instruction) or instruction.opcode[:2] == ("cp", "reduce")
