"""The check of ``cp.async``, by which many lanes issue copies at once, with one comparison for all copies.

The copy of each lane is a separate operation: it has the clock of the lane, and completes in a group of the lane. If
the order of a copy after a prior access is missing, each copy is compared separately, and the violation is reported.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._ptx import Instruction
from ..._warps.geometry import Geometry
from ..._warps.lanes import WARP, as_array
from ..._warps.observe import Access
from ..model.areas import AreaCells
from ..model.clocks import ORDERED, Clocks, Known
from ..model.global_shadow import GlobalShadow
from ..model.history import History
from ..model.operations import IssueRecord, Operations
from ..model.shadow import Shadow, stamps_of
from ..report.collector import FindingCollector
from ..report.statements import Explained

__all__ = ["Copies", "LaneCopies"]


@dataclass(slots=True, eq=False)
class Copies:
    """The ``cp.async`` copies that some lanes have issued by one instruction.

    Attributes
    ----------
    lanes : numpy.ndarray
    cluster : int
        The cluster of the first lane.
    instruction : Instruction
    kind : str
    groups : numpy.ndarray
        The number of the group of each copy; the first group is 1.
    own : numpy.ndarray
        The epoch of each lane when it issued its copy.
    warps : numpy.ndarray or None, [row, warp, column]
        The clock that all lanes of a warp share, for each warp; None for copies that take effect at once.
    after : tuple of Explained
        The last barrier or wait of the first lane.
    columns : numpy.ndarray or None
        The columns in which the completions are recorded; None until they are computed.
    """

    lanes: np.ndarray
    cluster: int
    instruction: Instruction
    kind: str
    groups: np.ndarray
    own: np.ndarray
    warps: np.ndarray | None
    after: tuple[Explained, ...]
    columns: np.ndarray | None = None


class LaneCopies:
    """The issue of copies by many lanes, and the comparison of the accesses of these copies."""

    def __init__(
        self,
        geometry: Geometry,
        clocks: Clocks,
        operations: Operations,
        shadows: tuple[Shadow, GlobalShadow],
        collector: FindingCollector,
        history: History,
    ):
        self._geometry, self._clocks, self._operations = geometry, clocks, operations
        (self._shadow, self._global), self._collector, self._history = shadows, collector, history
        # The dictionary caches results of the method `_columns_of`.
        self._columns: dict[tuple[str, int, int], tuple[bytes, np.ndarray, np.ndarray]] = {}

    def issue(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> Copies | None:
        """Begin one copy for each lane; return None if the caller must begin each copy separately.

        Copies that take effect later can begin together only in one cluster. The lanes of each warp must also have the
        same clock.
        """
        clocks, first = self._clocks, int(lanes[0])
        if clocks.visible != ORDERED:
            return None
        is_one = clocks.slot_of(first) == clocks.slot_of(int(lanes[-1]))
        warps = clocks.known_to_warps(lanes) if is_one and not is_now else None
        if warps is None and not is_now:
            return None
        cluster = self._geometry.cluster_of_slot[clocks.slot_of(first)]
        groups = self._operations.groups_of(kind, lanes, instruction)
        self._history.touch(lanes, self._collector.site(instruction))
        after = self._history.before(first)
        return Copies(lanes, cluster, instruction, kind, groups, clocks.own(lanes), warps, after)

    def access(self, access: Access, copies: Copies, alone: Callable[[Access], None]) -> None:
        """Compare all accesses together; if one is unordered with a prior access, pass each access to `alone`."""
        slot = self._clocks.slot_of(int(copies.lanes[0]))
        if copies.cluster != self._geometry.cluster_of_slot[slot]:
            return  # The clocks of a cluster no longer exist after the end of the cluster.
        if self._read_global(access, copies) if access.space == "global" else self._write_shared(access, copies):
            return
        lanes = as_array(access.lanes)
        for at, index in enumerate(np.searchsorted(copies.lanes, lanes).tolist()):
            one, positions = slice(int(lanes[at]), int(lanes[at]) + 1), access.positions[at : at + 1]
            alone(replace(access, actor=self._mark(copies, index), lanes=one, positions=positions))

    def _mark(self, copies: Copies, index: int) -> IssueRecord:
        """Return the record of a copy as a separate operation."""
        lane = int(copies.lanes[index])
        if copies.warps is None:
            clock = self._clocks.known_to(slice(lane, lane + 1))
        else:
            clock = copies.warps[:, lane // WARP - int(copies.lanes[0]) // WARP].copy()
            clock[::2, lane % self._clocks.threads] = copies.own[index]
        group, epoch = (copies.kind, lane), int(copies.groups[index])
        return IssueRecord(lane, copies.cluster, copies.instruction, clock, group, epoch, copies.after)

    def _write_shared(self, access: Access, copies: Copies) -> bool:
        """Record writes to shared memory if each write follows all prior accesses; otherwise return False."""
        positions, shadow = access.positions, self._shadow
        if len({*positions.tolist()}) < len(positions):
            return False
        units, (rows, lanes) = shadow.units(positions, access.size_bytes), self._known(access, copies)
        known = rows[ORDERED]
        if shadow.after_write(units, known, lanes) is not None or shadow.after_reads(units, known, lanes):
            return False
        stamps = stamps_of(*self._completion(access, copies))
        shadow.write(units, stamps, self._collector.site(access.instruction))
        return True

    def _read_global(self, access: Access, copies: Copies) -> bool:
        """Record reads of an array if each read follows the prior writes; otherwise return False."""
        addresses = access.positions
        area = self._global.area(int(addresses[0]))
        if area is None or area.strong is not None or int(addresses.min()) < area.start:
            return False
        if int(addresses.max()) + access.size_bytes > area.segment.stop:
            return False
        units = self._global.units(area, addresses, access.size_bytes)
        (rows, lanes), each = self._known(access, copies), units.shape[1]
        slots = np.repeat(as_array(access.lanes) // self._clocks.threads, each)
        these = AreaCells(area, units.ravel(), np.repeat(lanes, each), slots)
        if self._global.past(area, these.units, rows, these.who, slots, "read") is not None:
            return False
        columns, epochs = (np.repeat(values, each) for values in self._completion(access, copies))
        site = self._collector.site(access.instruction)
        self._global.remember(these, site, columns, epochs, "read")
        return True

    def _completion(self, access: Access, copies: Copies) -> tuple[np.ndarray, np.ndarray]:
        """Return the column that records the completion of each access, and the value of the column at that time."""
        if copies.columns is None:
            copies.columns = self._columns_of(copies.lanes, copies.kind)
        return self._among(access, copies, copies.columns), self._among(access, copies, copies.groups)

    def _columns_of(self, lanes: np.ndarray, kind: str) -> np.ndarray:
        clocks, first, last = self._clocks, int(lanes[0]), int(lanes[-1])
        begun = clocks.started[clocks.slot_of(first) : clocks.slot_of(last) + 1].tobytes()
        found = self._columns.get((kind, first, last))
        if found is None or found[0] != begun or not np.array_equal(found[1], lanes):
            columns = [clocks.column(clocks.slot_of(lane), (kind, lane, "write")) for lane in lanes.tolist()]
            found = self._columns[kind, first, last] = begun, lanes, np.array(columns)
        return found[2]

    def _known(self, access: Access, copies: Copies) -> tuple[list[Known], np.ndarray]:
        """Return the rows of the clocks of the accesses, and the index of each access's lane in these rows."""
        here, clocks = as_array(access.lanes), self._clocks
        if copies.warps is None:
            return clocks.all_known(), here
        first, width = int(copies.lanes[0]) // WARP, clocks.rows.shape[2]
        warps = np.pad(copies.warps, ((0, 0), (0, 0), (0, width - copies.warps.shape[2])))
        lanes = np.zeros((warps.shape[1] * WARP, width), np.int32)
        which = here - first * WARP
        lanes[which, here % clocks.threads] = self._among(access, copies, copies.own)
        return [Known(lanes, row) for row in warps], which

    @staticmethod
    def _among(access: Access, copies: Copies, values: np.ndarray) -> np.ndarray:
        """Return the values of the lanes that make an access, from an array with a value for each lane."""
        lanes = as_array(access.lanes)
        return values if len(lanes) == len(copies.lanes) else values[np.searchsorted(copies.lanes, lanes)]
