"""The moves of ldmatrix, stmatrix and movmatrix: 8 x 8 matrices of 16-bit elements between rows and registers.

Source: PTX ISA, "ldmatrix", "stmatrix" and "movmatrix".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._errors import UnsupportedInstruction
from .._ptx import Instruction
from .byte_moves import ByteMove, byte_move_of

ROW_BYTES = 16


@dataclass(frozen=True)
class MatrixMove:
    """A move of `count` matrices; lane i of the first 8 * count lanes has the address of row i % 8 of matrix i / 8."""

    count: int
    transposed: bool

    @property
    def read_bytes(self) -> int:
        """Return the bytes of a row that a load reads."""
        return ROW_BYTES

    def to_registers(self, rows: np.ndarray) -> np.ndarray:
        """Return the bytes of rows, uint8 [warps, 8 * count, 16], as registers, uint32 [count, warps, 32]."""
        found = np.ascontiguousarray(rows).view(np.uint16).reshape(-1, self.count, 8, 8)
        return self._turned(found).view(np.uint32).reshape(-1, self.count, 32).swapaxes(0, 1)

    def to_rows(self, registers: np.ndarray) -> np.ndarray:
        """Return the rows for registers; this is the inverse of `to_registers`."""
        found = np.ascontiguousarray(registers.swapaxes(0, 1)).view(np.uint16).reshape(-1, self.count, 8, 8)
        return self._turned(found).view(np.uint8).reshape(-1, 8 * self.count, ROW_BYTES)

    def _turned(self, matrices: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(matrices.swapaxes(2, 3)) if self.transposed else matrices


def matrix_move_of(instruction: Instruction) -> MatrixMove | ByteMove:
    """Return the move that an ldmatrix or stmatrix performs.

    Raises
    ------
    UnsupportedInstruction
        If the instruction has an unsupported form.
    """
    # The assembler ptxas accepts the modifiers in any order.
    words = {*instruction.opcode[1:]} - {"shared", "shared::cta", "trans"}
    count = next((count for count in (1, 2, 4) if words == {"sync", "aligned", "m8n8", f"x{count}", "b16"}), None)
    if count is None:
        if (found := byte_move_of(instruction.opcode)) is not None:
            return found
        raise UnsupportedInstruction(".".join(instruction.opcode), instruction.line)
    return MatrixMove(count, "trans" in instruction.opcode)
