"""The search for all executions of a load that race with a write, after the first race of the load."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..._ptx import Instruction
from ..._warps.lanes import as_array
from ..._warps.observe import Access
from ..model.areas import Area
from ..model.clocks import ORDERED, Clocks
from ..model.global_shadow import SLOT_BITS, GlobalShadow
from ..model.shadow import stamps_of
from ..report.collector import FindingCollector

__all__ = ["Pair", "RacingReads"]

_MOST_READS = 1 << 20  # The check keeps at most 1,048,576 reads of bytes that no later instruction has written.
# Each pair consists of a load, and of a store or an atomic operation on the same bytes.
Pair = tuple[Instruction, Instruction]


class RacingReads:
    """A comparison of each execution of a racing load with each execution of a racing write.

    Parameters
    ----------
    pairs : iterable of Pair
    clocks : Clocks
    shadow : GlobalShadow
    collector : FindingCollector

    Attributes
    ----------
    found : dict
        The racing executions of each pair's load; the key contains the ``id`` of the load and of the write. An
        execution is a lane, and the number of the execution among the executions of this lane.
    is_complete : bool
        Whether all executions were compared; False if the launch had too many reads.
    """

    def __init__(self, pairs: Iterable[Pair], clocks: Clocks, shadow: GlobalShadow, collector: FindingCollector):
        self._clocks, self._shadow = clocks, shadow
        self.found: dict[tuple[int, int], set[tuple[int, int]]] = {
            (id(read), id(write)): set() for read, write in pairs
        }
        self.is_complete = True
        self._loads = {load for load, _ in self.found}
        self._writes = {id(write): collector.site(write) for _, write in pairs}
        self._counts: dict[tuple[int, int], int] = {}
        self._reads = 0
        # The dictionary maps a lane and an address to the last load and the loaded value.
        self._loaded: dict[tuple[int, int], tuple[int, bytes]] = {}
        # The dictionary maps a load to True if an atom.cas instruction compared every loaded value.
        self._confirmed: dict[int, bool] = {}
        # The dictionary maps a unit of memory to the reads since its last write. A read consists of the load, the lane,
        # the number of the execution, the stamp and the time.
        self._since: dict[tuple[int, int], list[tuple[int, int, int, int, int]]] = {}

    def access(self, access: Access) -> None:
        """Compare an access of threads to global memory; the caller passes the access before the shadow records it."""
        if access.actor is not None or (area := self._shadow.area(int(access.positions[0]))) is None:
            return
        if access.kind != "read" and self._loaded:
            self._compare(access)
        if id(access.instruction) in self._loads:
            self._read(area, access)
        if id(access.instruction) in self._writes:
            self._write(area, access)

    def _read(self, area: Area, access: Access) -> None:
        load, lanes = id(access.instruction), as_array(access.lanes)
        numbers = [self._number(load, lane) for lane in lanes.tolist()]
        units = self._shadow.units(area, access.positions, access.size_bytes)
        each, readers = units.shape[1], np.repeat(lanes, units.shape[1])
        late = self._shadow.late_writes(area, units.ravel(), readers)
        for (read, write), found in self.found.items():
            if read == load:
                writes = np.logical_or.reduce([sites == self._writes[write] for sites in late])
                some = np.unique(np.flatnonzero(writes) // each).tolist()
                found.update((int(lanes[at]), numbers[at]) for at in some)
        for lane, address in zip(lanes.tolist(), access.positions.tolist(), strict=True):
            first = address - area.start
            self._loaded[lane, address] = load, area.segment.bytes[first : first + access.size_bytes].tobytes()
        self._reads += len(readers)
        if self._reads > _MOST_READS:
            self.is_complete = False
            return
        stamps = stamps_of(readers % self._clocks.threads, self._clocks.own(readers)).tolist()
        times = (self._clocks.now << SLOT_BITS | readers // self._clocks.threads).tolist()
        for at, unit in enumerate(units.ravel().tolist()):
            note = load, int(readers[at]), numbers[at // each], stamps[at], times[at]
            self._since.setdefault((area.start, unit), []).append(note)

    def is_confirmed(self, load: Instruction) -> bool:
        """Return whether each thread writes the loaded bytes next by an atom.cas that compares the loaded value.

        A loop of atom.cas begins with a load of this kind (CUDA C++ Programming Guide, "Atomic Functions"). The loaded
        value may be old, because atom.cas then returns the present value.
        """
        return self._confirmed.get(id(load), False)

    def _compare(self, access: Access) -> None:
        for at, key in enumerate(zip(as_array(access.lanes).tolist(), access.positions.tolist(), strict=True)):
            if (last := self._loaded.pop(key, None)) is not None:
                load, value = last
                same = access.expected is not None and access.expected[at : at + 1].tobytes() == value
                self._confirmed[load] = self._confirmed.get(load, True) and same

    def _number(self, load: int, lane: int) -> int:
        number = self._counts.get((load, lane), 0)
        self._counts[load, lane] = number + 1
        return number

    def _write(self, area: Area, access: Access) -> None:
        write, known = id(access.instruction), self._clocks.known(ORDERED)
        units = self._shadow.units(area, access.positions, access.size_bytes)
        for lane, row in zip(as_array(access.lanes).tolist(), units.tolist(), strict=True):
            notes = [note for unit in row for note in self._since.pop((area.start, unit), ())]
            self._reads -= len(notes)
            if not notes:
                continue
            stamps, times = (np.array([note[at] for note in notes], np.int64) for at in (3, 4))
            ordered = self._shadow.precedes(known, lane, stamps, times, lane // self._clocks.threads)
            for note, is_ordered in zip(notes, ordered.tolist(), strict=True):
                if not is_ordered and (note[0], write) in self.found:
                    self.found[note[0], write].add(note[1:3])
