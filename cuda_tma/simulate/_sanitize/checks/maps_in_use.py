"""The check that no tensor map in global memory changes while an operation may still read the map.

A load has read its map when the phase of its mbarrier is complete. The completion of a later bulk group of the same
thread also proves that the load has read its map. A store has read its map when its bulk group is complete. Source: PTX
ISA 9.0, "cp.async.bulk.commit_group", "cp.async.bulk.wait_group", "mbarrier". CUTLASS relies on bulk groups to protect
maps (NVIDIA/cutlass#2912). The check ignores uses of a map by other clusters.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from ..._copies.tensor_copy import MAP_BYTES
from ..._warps.lanes import as_array
from ..._warps.observe import Access
from ..model.clocks import ORDERED, Clocks
from ..model.operations import IssueRecord, Operations
from ..report.violations import MapInUse

__all__ = ["MapsInUse"]

_MOST_USES = 32  # The check keeps at most 32 uses of a tensor map.


@dataclass(slots=True)
class _Use:
    """An operation that reads a tensor map.

    Attributes
    ----------
    mark : IssueRecord
    ends : list of (int, int)
        Columns of a clock with their values. A thread whose clock contains one of the values runs after the operation
        has read the map.
    parts : list of IssueRecord
        The transfers of the operation; a multicast has one transfer for each CTA.
    """

    mark: IssueRecord
    ends: list[tuple[int, int]]
    parts: list[IssueRecord] = field(default_factory=list)

    def has_ended(self, known: np.ndarray) -> bool:
        """Return whether a clock contains an event that proves the end of the read."""
        return any(column < len(known) and known[column] >= value for column, value in self.ends)


class MapsInUse:
    """The last operations that read each tensor map."""

    def __init__(self, clocks: Clocks, operations: Operations):
        self._clocks, self._operations = clocks, operations
        self._uses: dict[int, deque[_Use]] = {}
        # The dictionary maps a lane to its last use of a tensor map.
        self._last: dict[int, _Use] = {}

    def forget(self, slot: int) -> None:
        """Remove the operations of the preceding cluster in a slot in which another cluster begins."""
        for address, uses in [*self._uses.items()]:
            others = [use for use in uses if self._clocks.slot_of(use.mark.lane) != slot]
            self._uses[address] = deque(others, _MOST_USES)
            if not others:
                del self._uses[address]
        self._last = {lane: use for lane, use in self._last.items() if self._clocks.slot_of(lane) != slot}

    def begin(self, address: int, mark: IssueRecord) -> None:
        """Record an operation that reads a tensor map; a thread cannot wait for the end of a prefetch."""
        if "prefetch" in mark.instruction.opcode:
            return
        kind, owner = mark.group or ("bulk", mark.lane)
        number = mark.epoch if mark.group else self._operations.open_group(kind, owner)
        column = self._clocks.column(self._clocks.slot_of(mark.lane), (kind, owner, "read"))
        self._last[mark.lane] = use = _Use(mark, [(column, number)])
        self._uses.setdefault(address, deque(maxlen=_MOST_USES)).append(use)

    def issue(self, mark: IssueRecord) -> None:
        """Record a transfer by the thread's last operation that reads a tensor map."""
        use = self._last.get(mark.lane) if self._last else None
        if use is not None and use.mark.instruction is mark.instruction and len(use.parts) < _MOST_USES:
            use.parts.append(mark)

    def lands(self, mark: IssueRecord, column: int, value: int) -> None:
        """Record the mbarrier phase whose completion proves the end of a load."""
        for uses in self._uses.values():
            for use in reversed(uses):
                if any(part is mark for part in use.parts):
                    use.ends.append((column, value))
                    return

    def overwritten(self, access: Access) -> MapInUse | None:
        """Return the violation if an access writes a map that an operation may still read; otherwise None."""
        first = access.positions
        for address, uses in self._uses.items():
            for which in np.flatnonzero((first < address + MAP_BYTES) & (first + access.size_bytes > address)).tolist():
                lane, known = self._writer(access, which)
                slot = self._clocks.slot_of(lane)
                for use in uses:
                    if self._clocks.slot_of(use.mark.lane) == slot and not use.has_ended(known):
                        other = use.mark.instruction
                        return MapInUse(now=access.instruction, lane=lane, other=other, address=address)
        return None

    def _writer(self, access: Access, which: int) -> tuple[int, np.ndarray]:
        if access.actor is not None:
            mark = cast(IssueRecord, access.actor)
            return mark.lane, mark.clock[ORDERED]
        lane = int(as_array(access.lanes)[which])
        return lane, self._clocks.known_to(slice(lane, lane + 1))[ORDERED]
