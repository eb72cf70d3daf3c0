"""The check of accesses of two grids that overlap by programmatic dependent launch.

A thread's accesses before its ``griddepcontrol.wait`` must not conflict with the accesses of the preceding grid. After
the wait, the memory operations of the preceding grids are performed and visible. Without the wait, nothing orders the
two grids. Source: PTX ISA 9.0, "Miscellaneous Instructions: griddepcontrol".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..._memory.global_memory import GlobalMemory, Segment
from ..._ptx import Instruction
from ..._warps.lanes import Lanes, as_array
from ..._warps.observe import Access
from ..model.clocks import ORDERED, Clocks
from ..report.collector import FindingCollector
from ..report.violations import BeforeGridWait

__all__ = ["AccessLog", "EarlierAccess", "GridRaceChecker", "GridWaits"]

_UNIT = 4  # The log divides memory into units of 4 bytes.
_MOST_BYTES = 16 << 20
_READ = "read"


class EarlierAccess(NamedTuple):
    """An access of a preceding or following grid to bytes that the present grid also accesses.

    Attributes
    ----------
    address : int
    kind : str
        The kind of the access of the other grid: ``"read"`` or ``"write"``.
    by : Instruction
        The statement by which the other grid accesses the bytes.
    lane : int
        The lane that accesses the bytes in the other grid.
    which : int
        The lane that accesses the bytes in the present grid.
    """

    address: int
    kind: str
    by: Instruction
    lane: int
    which: int


class AccessLog:
    """The last read and the last write of each unit that a grid has accessed, with the statement and the lane."""

    def __init__(self) -> None:
        # The dictionary maps a segment to an array with the dimensions (read or write, statement or lane, unit).
        self._of: dict[int, np.ndarray] = {}
        self._statements: list[Instruction] = []

    def add(self, memory: GlobalMemory, access: Access, some: np.ndarray) -> None:
        """Add the accesses that `some` selects to the log."""
        if (found := _units(memory, access)) is None or not some.any():
            return
        segment, units, lanes = found
        of = self._of.get(segment.start)
        if of is None:
            of = self._of[segment.start] = np.zeros((2, 2, -(-len(segment.bytes) // _UNIT) + 1), np.int32)
        if not self._statements or self._statements[-1] is not access.instruction:
            self._statements.append(access.instruction)
        chosen = np.broadcast_to(some[:, None], units.shape)
        row = of[int(access.kind != _READ)]
        row[0, units[chosen]] = len(self._statements)
        row[1, units[chosen]] = np.broadcast_to(lanes[:, None], units.shape)[chosen]

    def met(self, memory: GlobalMemory, access: Access, some: np.ndarray) -> EarlierAccess | None:
        """Return an earlier access that conflicts with one of the accesses that `some` selects."""
        if (found := _units(memory, access)) is None:
            return None
        segment, units, lanes = found
        of = self._of.get(segment.start)
        for kind in (1,) if of is None or access.kind == _READ else (1, 0):
            if of is not None and (hit := (of[kind, 0, units] > 0) & some[:, None]).any():
                which, at = np.argwhere(hit)[0]
                unit = units[which, at]
                by = self._statements[of[kind, 0, unit] - 1]
                address = segment.start + int(unit) * _UNIT
                return EarlierAccess(address, "write" if kind else _READ, by, int(of[kind, 1, unit]), int(lanes[which]))
        return None


class GridWaits:
    """The ``griddepcontrol.wait`` of each thread, and the statements of other threads that follow these waits."""

    def __init__(self, clocks: Clocks, lanes: int):
        self._clocks, self._itself = clocks, np.zeros(lanes, bool)
        # The dictionary maps a cluster to the clock columns and epochs of its griddepcontrol.wait instructions.
        self._waits: dict[int, list[tuple[int, int]]] = {}

    def wait(self, lanes: Lanes) -> None:
        """Record a ``griddepcontrol.wait`` of some lanes."""
        here = as_array(lanes)
        self._itself[here] = True
        for lane, epoch in zip(here.tolist(), self._clocks.own(here).tolist(), strict=True):
            self._waits.setdefault(self._clocks.slot_of(lane), []).append((lane % self._clocks.threads, epoch))

    def start(self, lanes: np.ndarray) -> None:
        """Remove the waits of threads that begin."""
        self._itself[lanes] = False
        self._waits.pop(self._clocks.slot_of(int(lanes[0])), None)

    def not_yet(self, lanes: np.ndarray) -> np.ndarray:
        """Return, for each lane, whether no ``griddepcontrol.wait`` of its cluster precedes its present statement."""
        early, known = ~self._itself[lanes], self._clocks.known(ORDERED)
        for slot in np.unique(lanes[early] // self._clocks.threads).tolist():
            mine = lanes // self._clocks.threads == slot
            for column, epoch in self._waits.get(slot, ()):
                early[mine] &= known.at(lanes[mine], column) < epoch
        return early


class GridRaceChecker:
    """The comparison of a grid's accesses with those of the preceding and the following grid."""

    def __init__(self) -> None:
        self._touched, self._early = AccessLog(), AccessLog()
        self._before: GridRaceChecker | None = None
        self._after: GridRaceChecker | None = None

    def follows(self, before: GridRaceChecker) -> None:
        """Connect this grid with the preceding grid, which may still run when this grid begins."""
        self._before, before._after = before, self

    def begin(self, memory: GlobalMemory, waited: GridWaits, collector: FindingCollector) -> None:
        """Set the memory, the waits and the collector of a launch."""
        self._memory, self._waited, self._collector = memory, waited, collector

    def access(self, access: Access) -> None:
        """Compare a weak access to global memory with the accesses of the adjacent grid.

        The caller excludes strong accesses, because grids may synchronize by strong accesses.
        """
        lanes = np.broadcast_to(as_array(access.lanes), access.positions.shape)
        some, kind, now = np.ones(len(lanes), bool), _READ if access.kind == _READ else "write", access.instruction
        self._touched.add(self._memory, access, some)
        if (after := self._after) is not None and (met := after._early.met(self._memory, access, some)) is not None:
            after._report(met.by, met.lane, met.kind, met.address, now, kind)
        if (before := self._before) is None or not (not_yet := self._waited.not_yet(lanes)).any():
            return
        self._early.add(self._memory, access, not_yet)
        if (met := before._touched.met(self._memory, access, not_yet)) is not None:
            self._report(now, met.which, kind, met.address, met.by, met.kind)

    def _report(
        self, now: Instruction, lane: int, access: str, address: int, other: Instruction, other_access: str
    ) -> None:
        self._collector.report(
            BeforeGridWait(now=now, lane=lane, other=other, access=access, address=address, other_access=other_access)
        )


def _units(memory: GlobalMemory, access: Access) -> tuple[Segment, np.ndarray, np.ndarray] | None:
    """Return the segment, the units that each access contains, and the lane of each unit."""
    segment = memory.find(int(access.positions[0]))
    if segment is None or not segment.writeable or len(segment.bytes) > _MOST_BYTES:
        return None
    first = (access.positions - segment.start) // _UNIT
    count = max(1, -(-access.size_bytes // _UNIT))
    lanes = np.broadcast_to(as_array(access.lanes), access.positions.shape)
    return segment, first[:, None] + np.arange(count), lanes
