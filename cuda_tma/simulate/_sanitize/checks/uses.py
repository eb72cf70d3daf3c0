"""The facts about an instruction that every check of races needs, computed once for each instruction."""

from __future__ import annotations

from typing import NamedTuple

from ..._ptx import Instruction
from ..model.shadow import STRONG, WEAK
from ..model.units import is_strong
from ..report.collector import FindingCollector
from .volatiles import VolatileLoads

__all__ = ["Use", "Uses"]


class Use(NamedTuple):
    """Accesses of one kind by one instruction.

    Attributes
    ----------
    instruction : Instruction
    kind : str
        ``"read"``, ``"write"`` or ``"atomic"``.
    site : int
    strength : int
        ``STRONG`` if the accesses of the instruction do not race with each other, such as uses of mbarriers; otherwise
        ``WEAK``.
    is_strong : bool
        Whether an access of threads is strong; each atomic is strong.
    note : int
        Two times the site, plus one for strong accesses of threads.
    is_lenient : bool
        Whether strong accesses of other threads to shared memory do not race with these accesses.
    reads_written : bool
        Whether the instruction reads bytes that must have been written.
    acquires : bool
    is_coherent : bool
    """

    instruction: Instruction
    kind: str
    site: int
    strength: int
    is_strong: bool
    note: int
    is_lenient: bool
    reads_written: bool
    acquires: bool
    is_coherent: bool


class Uses:
    """The facts about the accesses of all instructions."""

    def __init__(self, collector: FindingCollector, volatiles: VolatileLoads):
        self._collector, self._volatiles = collector, volatiles
        self._known: dict[tuple[int, str, str], Use] = {}

    def of(self, instruction: Instruction, kind: str, space: str = "shared") -> Use:
        """Return the facts about the accesses of an instruction.

        The ``id`` of an instruction is a sufficient key, because a kernel keeps its instructions.
        """
        key = id(instruction), kind, space
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._use(instruction, kind, space)
        return found

    def _use(self, instruction: Instruction, kind: str, space: str) -> Use:
        opcode, site = instruction.opcode, self._collector.site(instruction)
        strength = STRONG if is_strong(instruction) else WEAK
        strong = kind == "atomic" or strength == STRONG
        takes_data = space == "shared" and kind == "read" and strong and self._volatiles.takes_data(instruction)
        return Use(
            instruction,
            kind,
            site,
            strength,
            strong,
            site << 1 | strong,
            is_lenient=strong and not takes_data,
            reads_written=kind != "write" and opcode[0] != "mbarrier",
            acquires=not {"acquire", "acq_rel"}.isdisjoint(opcode),
            is_coherent="nc" not in opcode,
        )
