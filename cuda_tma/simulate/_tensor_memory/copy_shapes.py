"""The cells of tensor memory that ``tcgen05.cp`` and ``tcgen05.shift`` access (PTX ISA, "tcgen05.cp", "tcgen05.shift").

The cells are those of CUTLASS 4 (``cute/atom/copy_traits_sm100.hpp``). A shift moves each lane of a quarter to the
preceding lane, and does not change the last lane. A copy of 4 lanes can then replace the last lanes. With ``.b8x16``,
each piece of 16 bytes contains 16 packed elements and padding, and each element becomes a byte. The cells of a copy and
of a shift are not verified on hardware.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._errors import UnsupportedInstruction
from .._matrix.padded import bytes_of_padded
from .._ptx import Instruction

__all__ = ["COLUMNS_OF_SHIFT", "CopyShape", "copy_shape_of", "shifted"]

COLUMNS_OF_SHIFT = 8  # The shift applies to 8 columns, which contain 32 bytes of each lane.
_QUARTER = 32
_PIECE_COLUMNS = 4
_SHAPES = {"128x256b": (128, 2), "4x256b": (4, 2), "128x128b": (128, 1), "64x128b": (64, 1), "32x128b": (32, 1)}
# The table maps a shape to the lanes to which the copy writes each row.
_LANES: dict[str, list[range] | list[list[int]]] = {
    "128x256b": [range(128)],
    "128x128b": [range(128)],
    "4x256b": [range(0, 128, 32)],
    "64x128b.warpx2::02_13": [range(64), range(64, 128)],
    "64x128b.warpx2::01_23": [[*range(32), *range(64, 96)], [*range(32, 64), *range(96, 128)]],
    "32x128b.warpx4": [range(first, first + 32) for first in range(0, 128, 32)],
}
# The table maps a qualifier to the number of bits of the elements that the copy extends to bytes.
_ELEMENT_BITS = {"b4x16_p64": 4, "b6x16_p32": 6}


@dataclass(frozen=True)
class CopyShape:
    """The rows of shared memory that one copy reads, and the lanes of tensor memory that it writes.

    Attributes
    ----------
    rows, pieces : int
        The number of rows in shared memory, and the number of 16-byte pieces in each row.
    lanes : numpy.ndarray of intp, [copies, rows]
        The lanes of each row, relative to the lane of the address.
    element_bits : int
        4 or 6 if the copy extends each element to a byte, otherwise 8.
    """

    rows: int
    pieces: int
    lanes: np.ndarray
    element_bits: int = 8

    @property
    def columns(self) -> int:
        """Return the number of columns that the copy writes."""
        return self.pieces * _PIECE_COLUMNS

    def write(self, cells: np.ndarray, column: int, lane: int, data: np.ndarray) -> None:
        """Write rows, uint8 [rows, bytes], to the cells of a CTA, uint32 [column, lane]."""
        data = data if self.element_bits == 8 else bytes_of_padded(data, self.element_bits)
        values = np.ascontiguousarray(data).view(np.uint32).T
        for lanes in self.lanes:
            cells[column : column + self.columns, lanes + lane] = values


def copy_shape_of(instruction: Instruction) -> CopyShape:
    """Return the shape of a ``tcgen05.cp``, whose qualifiers may have any order.

    Raises
    ------
    UnsupportedInstruction
        If the instruction has another form.
    """
    words = instruction.opcode
    shape = next((word for word in words if word in _SHAPES), "")
    multicast = next((word for word in words if word.startswith("warpx")), "")
    name = f"{shape}.{multicast}" if multicast else shape
    if name not in _LANES:
        raise UnsupportedInstruction(".".join(words), instruction.line)
    bits = next((_ELEMENT_BITS[word] for word in words if word in _ELEMENT_BITS), 8)
    return CopyShape(*_SHAPES[shape], np.array([[*lanes] for lanes in _LANES[name]], np.intp), bits)


def shifted(cells: np.ndarray) -> np.ndarray:
    """Return cells, uint32 [columns, lanes], after a shift; the last lane of each quarter does not change."""
    found = cells.reshape(len(cells), -1, _QUARTER).copy()
    found[:, :, :-1] = found[:, :, 1:]
    return found.reshape(cells.shape)
