"""The cell of tensor memory that ``tcgen05.ld`` and ``tcgen05.st`` move to or from each register of a warp.

With ``.pack::16b`` and ``.unpack::16b``, a register contains the lower halves of two columns, with the first column in
its lower half. Source: PTX ISA, "Data Movement Shape" and "Packing and unpacking". The cells within a shape are those
of CUTLASS 4 (``cute/atom/copy_traits_sm100.hpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._errors import UnsupportedInstruction
from .._ptx import Immediate, Instruction
from .._warps.lanes import WARP
from .._warps.tensor_events import GROUP_LANES, Touch

__all__ = ["Shape", "shape_of"]

# The table maps a shape to the number of columns that the shape accesses with .x1.
_COLUMNS = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, "16x32bx2": 1}
_REGISTERS = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
_COUNTS = {f"x{1 << i}": 1 << i for i in range(8)}
_MOST_REGISTERS = 128


@dataclass(frozen=True)
class Shape:
    """The cells that one instruction accesses, relative to its address.

    Attributes
    ----------
    name : str
        The name of the shape, such as ``"32x32b"``.
    lane_count : int
        The number of lanes that the instruction accesses, 16 or 32.
    lanes, columns : numpy.ndarray of intp, [registers, 32]
        The cell of each register of each thread. With `halves`, this is the first of two adjacent cells.
    halves : bool
        Whether a register contains the lower halves of two columns.
    """

    name: str
    lane_count: int
    lanes: np.ndarray
    columns: np.ndarray
    halves: bool

    @property
    def registers(self) -> int:
        """Return the number of registers of each thread."""
        return len(self.lanes)

    @cached_property
    def spans(self) -> tuple[tuple[int, int], ...]:
        """Return the first column and the number of columns of each range; the halves of 16x32bx2 may be apart."""
        used = np.unique([self.columns, self.columns + self.halves])
        return tuple((int(each[0]), len(each)) for each in np.split(used, np.flatnonzero(np.diff(used) > 1) + 1))

    @property
    def is_plain(self) -> bool:
        """Return whether register i of thread t is the cell in column i of lane t."""
        return self.name == "32x32b" and not self.halves

    def touches(self, cta: int, column: int, lane: int, writes: bool) -> tuple[Touch, ...]:
        """Return the cells of a CTA that the instruction accesses, as values for an observer."""
        groups = tuple(range(lane // GROUP_LANES, (lane + self.lane_count) // GROUP_LANES))
        return tuple(Touch(cta, column + at, size, groups, not writes, writes) for at, size in self.spans)

    def read(self, cells: np.ndarray, column: int, lane: int) -> np.ndarray:
        """Return registers, uint32 [registers, 32], from the cells of a CTA, uint32 [column, lane]."""
        if self.is_plain:
            return cells[column : column + self.registers, lane : lane + WARP]
        found = cells[self.columns + column, self.lanes + lane]
        if self.halves:
            upper = cells[self.columns + column + 1, self.lanes + lane]
            return found & np.uint32(0xFFFF) | upper << np.uint32(16)
        return found

    def write(self, cells: np.ndarray, column: int, lane: int, values: np.ndarray) -> None:
        """Write registers, uint32 [registers, 32], to the cells of a CTA."""
        if self.is_plain:
            cells[column : column + self.registers, lane : lane + WARP] = values
        elif self.halves:
            cells[self.columns + column, self.lanes + lane] = values & np.uint32(0xFFFF)
            cells[self.columns + column + 1, self.lanes + lane] = values >> np.uint32(16)
        else:
            cells[self.columns + column, self.lanes + lane] = values


def shape_of(instruction: Instruction) -> Shape:
    """Return the shape of a ``tcgen05.ld`` or ``tcgen05.st``.

    Raises
    ------
    UnsupportedInstruction
        If the form of the instruction is not supported.
    """
    words = instruction.opcode
    name = next((word for word in words if word in _COLUMNS), None)
    count = next((_COUNTS[word] for word in words if word in _COUNTS), None)
    if name is None or count is None or count * _REGISTERS[name] > _MOST_REGISTERS:
        raise UnsupportedInstruction(".".join(words), instruction.line)
    halves = "pack::16b" in words or "unpack::16b" in words
    split = next((each.value for each in instruction.operands if isinstance(each, Immediate)), 0)
    lanes, columns = _cells(name, count, halves)
    if name == "16x32bx2":
        columns = columns + split * (np.arange(WARP) >= WARP // 2)
    return Shape(name, 32 if name == "32x32b" else 16, lanes, columns, halves)


def _cells(name: str, count: int, halves: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the lane and the column of the cell of each register and thread."""
    register, thread = np.ogrid[: count * _REGISTERS[name], :WARP]
    if name in ("32x32b", "16x32bx2"):
        lane, column = thread % (32 if name == "32x32b" else 16), register
    elif name == "16x64b":
        lane, column = thread // 4 + 8 * (thread % 2), thread // 2 % 2 + 2 * register
    elif name == "16x128b":
        lane, column = thread // 4 + 8 * (register % 2), thread % 4 + 4 * (register // 2)
    else:
        lane, column = thread // 4 + 8 * (register // 2 % 2), thread % 4 * 2 + register % 2 + 8 * (register // 4)
    lanes, columns = np.broadcast_arrays(lane, column)
    return lanes.astype(np.intp), columns.astype(np.intp) * (1 + halves)
