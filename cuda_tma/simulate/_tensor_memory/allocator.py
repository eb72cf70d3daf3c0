"""The allocation of columns of tensor memory, and the warps that wait for columns.

A whole warp requests a power of two of columns, at least 32, and waits until the columns are free. With
``.cta_group::2``, a warp of each CTA of the pair makes the request, and the two warps wait for each other. After
``relinquish_alloc_permit`` the CTA may not request columns. NVIDIA does not document the choice among free columns. The
simulator chooses the first free columns that are adjacent. Source: PTX ISA, "tcgen05.alloc, tcgen05.dealloc,
tcgen05.relinquish_alloc_permit".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...hang import BarrierWait
from .._ptx import Instruction
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Waiting

__all__ = ["COLUMNS", "Allocation", "Allocator"]

COLUMNS = 512
_LEAST = 32
_SECTION = 'PTX ISA, "tcgen05.alloc"'


@dataclass(frozen=True, slots=True)
class Allocation:
    """One allocation of a CTA: its first column, its number of columns, and the instruction that allocated them."""

    first: int
    columns: int
    by: Instruction


@dataclass(slots=True)
class _Owner:
    """The allocated and freed columns of one CTA."""

    taken: list[Allocation] = field(default_factory=list)
    freed: list[tuple[Allocation, Instruction]] = field(default_factory=list)
    relinquished: Instruction | None = None


class Allocator:
    """The allocated columns of all resident CTAs.

    Attributes
    ----------
    is_used : bool
        Whether a CTA has allocated columns.
    """

    def __init__(self, geometry: Geometry, scheduler: Scheduler):
        self._geometry, self._scheduler = geometry, scheduler
        self._owners: dict[int, _Owner] = {}
        self._parked: list[tuple[Parked, int]] = []
        self.is_used = False

    def of(self, cta: int) -> list[Allocation]:
        """Return the allocations of a CTA."""
        return self._owners[cta].taken if cta in self._owners else []

    def forget(self, ctas: range) -> None:
        """Remove the allocations of CTAs that begin."""
        for cta in ctas:
            self._owners.pop(cta, None)

    # ---- requests ----

    def check_count(self, columns: int, by: Instruction, lanes: np.ndarray) -> None:
        """Raise a fault if a request for this number of columns is invalid."""
        if not _LEAST <= columns <= COLUMNS or columns & columns - 1:
            raise Fault(
                "tensor-memory",
                f"tcgen05.{by.opcode[1]} has {columns} columns, but the number must be a power of two from {_LEAST} to "
                f"{COLUMNS} ({_SECTION}). Remedy: round the number up to a power of two",
                lanes,
                by,
            )

    def take(self, ctas: tuple[int, ...], columns: int, by: Instruction, lanes: np.ndarray) -> int | None:
        """Allocate columns in each of `ctas`, and return the first column; return None if too few columns are free."""
        owners = [self._owners.setdefault(cta, _Owner()) for cta in ctas]
        for owner in owners:
            if owner.relinquished is not None:
                raise _without_permit(owner.relinquished, by, lanes)
        taken = [each for owner in owners for each in owner.taken]
        place = next((at for at in range(0, COLUMNS - columns + 1, _LEAST) if _is_free(taken, at, columns)), None)
        if place is not None:
            self.is_used = True
            for owner in owners:
                owner.taken.append(Allocation(place, columns, by))
        return place

    def free(self, ctas: tuple[int, ...], first: int, columns: int, by: Instruction, lanes: np.ndarray) -> None:
        """Free columns in each of `ctas`."""
        for cta in ctas:
            owner = self._owners.setdefault(cta, _Owner())
            found = next((each for each in owner.taken if (each.first, each.columns) == (first, columns)), None)
            if found is None:
                raise _not_taken(owner, first, columns, by, lanes)
            owner.taken.remove(found)
            owner.freed.append((found, by))
        self._look_again()

    def relinquish(self, cta: int, by: Instruction) -> None:
        """Record that a CTA has given up its right to allocate."""
        self._owners.setdefault(cta, _Owner()).relinquished = by

    # ---- questions ----

    def covers(self, cta: int, column: int, count: int) -> bool:
        """Return whether a CTA has allocated all columns of a range."""
        end = column + count
        for each in sorted(self.of(cta), key=lambda each: each.first):
            if each.first <= column < each.first + each.columns:
                column = each.first + each.columns
        return column >= end

    def former(self, cta: int, column: int) -> Instruction | None:
        """Return the instruction that freed a column of a CTA; None if no instruction freed the column."""
        freed = self._owners[cta].freed if cta in self._owners else []
        held = (by for each, by in reversed(freed) if each.first <= column < each.first + each.columns)
        return next(held, None)

    # ---- waiting ----

    def park(self, parked: Parked, columns: int) -> None:
        """Let warps wait for columns; the warps repeat their request when another warp frees columns."""
        self._parked.append((parked, columns))

    def _look_again(self) -> None:
        parked, self._parked = self._parked, []
        for each, _ in parked:
            self._scheduler.add(each.context, each.pc, each.lanes)

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting warps for the report of a deadlock."""
        for parked, columns in self._parked:
            held = sum(each.columns for each in self.of(int(self._geometry.cta_of_lane[parked.lanes[0]])))
            missing = f"tcgen05.alloc asks for {columns} columns, and {held} of {COLUMNS} are allocated"
            cause = f"columns are free again after tcgen05.dealloc ({_SECTION})"
            yield Waiting(parked, BarrierWait("columns of tensor memory", missing, cause))


def _is_free(taken: list[Allocation], at: int, columns: int) -> bool:
    return all(each.first + each.columns <= at or at + columns <= each.first for each in taken)


def _without_permit(relinquished: Instruction, by: Instruction, lanes: np.ndarray) -> Fault:
    return Fault(
        "tensor-memory",
        f"tcgen05.alloc after tcgen05.relinquish_alloc_permit of the CTA ({_SECTION}: it is illegal then). Remedy: "
        "relinquish the permit after the last allocation",
        lanes,
        by,
        [("relinquished", relinquished)],
    )


def _not_taken(owner: _Owner, first: int, columns: int, by: Instruction, lanes: np.ndarray) -> Fault:
    freed = next((by for each, by in reversed(owner.freed) if each.first == first), None)
    taken = next((each for each in owner.taken if each.first == first), None)
    what = f"tcgen05.dealloc of {columns} columns from column {first} on"
    if taken is not None:
        text, related = f"{what}, of which {taken.columns} were allocated there", [("allocated", taken.by)]
        remedy = f"free {taken.columns} columns"
    elif freed is not None:
        text, related, remedy = f"{what}, which are free already", [("freed before", freed)], "free them once"
    else:
        text, related = f"{what}, which the CTA has not allocated", []
        remedy = "use the address that tcgen05.alloc wrote"
    return Fault("tensor-memory", f'{text} (PTX ISA, "tcgen05.dealloc"). Remedy: {remedy}', lanes, by, related)
