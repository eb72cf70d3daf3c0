"""Tensor memory, which has 128 lanes x 512 columns of 32 bits in each CTA.

An address contains a lane in its upper 16 bits and a column in its lower 16 bits. By ``tcgen05.ld`` and ``tcgen05.st``,
a warp can access only one quarter of the lanes. The number of the quarter is the number of the warp modulo 4. Source:
PTX ISA, "Tensor Memory" and "Tensor Memory Addressing".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from .._ptx import Instruction
from .._warps.fault_log import FaultLog
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.lanes import Lanes
from .._warps.scheduler import Scheduler
from .._warps.waiting import Waiting
from .allocator import COLUMNS, Allocation, Allocator
from .pairs import Pairs
from .pipe import Pipes

__all__ = ["CELLS_OF_WARP", "LANES", "TensorMemory", "named_columns", "split"]

LANES = 128
CELLS_OF_WARP = 32
_LANE_SHIFT, _COLUMN_MASK = 16, 0xFFFF


def split(address: int) -> tuple[int, int]:
    """Return the lane and the column of an address.

    >>> split(0x00200010)
    (32, 16)
    """
    return address >> _LANE_SHIFT & 0xFFFF, address & _COLUMN_MASK


def named_columns(first: int, count: int) -> str:
    """Return a range of columns as text.

    >>> named_columns(8, 1), named_columns(8, 4)
    ('column 8', 'columns 8 to 11')
    """
    return f"column {first}" if count == 1 else f"columns {first} to {first + count - 1}"


class TensorMemory:
    """The tensor memory of all resident CTAs.

    Attributes
    ----------
    allocator : Allocator
    pipes : Pipes
        The asynchronous operations that have been issued but have not taken effect.
    pairs : Pairs
        The warps that wait for a warp of the peer CTA of their pair.
    """

    def __init__(self, geometry: Geometry, alive: np.ndarray, scheduler: Scheduler, faults: FaultLog):
        self._geometry, self._alive, self._faults = geometry, alive, faults
        self.allocator = Allocator(geometry, scheduler)
        self.pipes, self.pairs = Pipes(), Pairs(scheduler)
        # The first instruction with .cta_group determines the qualifier of all later instructions.
        self._first: Instruction | None = None

    @cached_property
    def cells(self) -> np.ndarray:
        """Return all cells, uint32 [CTA, column, lane]."""
        return np.zeros((self._geometry.resident_ctas, COLUMNS, LANES), np.uint32)

    def started(self, ctas: range) -> None:
        """Reset the state of CTAs that begin, which have no allocated columns."""
        self.allocator.forget(ctas)
        self.pipes.forget(ctas)
        self.pairs.forget(ctas)

    def exited(self, lanes: np.ndarray) -> None:
        """Report a fault for each CTA whose last thread ends while columns are still allocated."""
        for cta in np.unique(self._geometry.cta_of_lane[lanes]).tolist() if self.allocator.is_used else ():
            first = cta * self._geometry.lanes_of_cta
            left = self.allocator.of(cta)
            if left and not self._alive[first : first + self._geometry.lanes_of_cta].any():
                self._faults.keep(_leaked(left[0], lanes))

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting warps for the report of a deadlock."""
        yield from self.allocator.waiting()
        yield from self.pairs.waiting()

    def check_group(self, by: Instruction, lanes: Lanes) -> None:
        """Raise a fault if an earlier instruction of the kernel has another ``.cta_group``, which ptxas refuses."""
        if self._first is None:
            self._first = by
        first = self._first
        group, other = (next(word for word in each.opcode if word.startswith("cta_group")) for each in (by, first))
        if group != other:
            raise Fault(
                "tensor-memory",
                f"tcgen05.{by.opcode[1]} has .{group}, but tcgen05.{first.opcode[1]} has .{other} (PTX ISA 9.2, "
                '"tcgen05.alloc": all tcgen05 instructions of a kernel have one .cta_group). Remedy: use one of the '
                "two in all instructions",
                lanes,
                by,
                [("the other .cta_group", first)],
            )

    def check(self, cta: int, column: int, count: int, by: Instruction, lanes: Lanes) -> None:
        """Raise a fault unless a CTA has allocated `count` columns from `column` on."""
        if column + count > COLUMNS:
            raise Fault(
                "tensor-memory",
                f"{by.opcode[0]}.{by.opcode[1]} accesses {named_columns(column, count)} of tensor memory, which has "
                f'{COLUMNS} (PTX ISA, "Tensor Memory"). Remedy: check the address and the shape',
                lanes,
                by,
            )
        if not self.allocator.covers(cta, column, count):
            raise self._not_allocated(cta, column, count, by, lanes)

    def _not_allocated(self, cta: int, column: int, count: int, by: Instruction, lanes: Lanes) -> Fault:
        former = self.allocator.former(cta, column)
        where, section = f"{named_columns(column, count)} of tensor memory", "Tensor Memory Allocation"
        what = "after tcgen05.dealloc of them" if former is not None else "that the CTA has not allocated"
        remedy = "free them after their last use" if former is not None else "use the address that tcgen05.alloc wrote"
        related = [] if former is None else [("freed", former)]
        related += [("allocated", each.by) for each in self.allocator.of(cta)[:1] if former is None]
        return Fault(
            "tensor-memory",
            f'{by.opcode[0]}.{by.opcode[1]} uses {where} {what} (PTX ISA, "{section}"). Remedy: {remedy}',
            lanes,
            by,
            related,
        )


def _leaked(left: Allocation, lanes: np.ndarray) -> Fault:
    return Fault(
        "tensor-memory",
        f"the CTA ends with {left.columns} columns of tensor memory from column {left.first} on allocated: all of them "
        'must be freed before the kernel ends (PTX ISA, "Tensor Memory Allocation"). Remedy: execute '
        "tcgen05.dealloc with this address and number of columns",
        lanes,
        left.by,
    )
