"""The instructions ``ldmatrix`` and ``stmatrix``: 8 x 8 matrices between shared memory and a warp's registers."""

from __future__ import annotations

import numpy as np

from .._matrix import MatrixMove, matrix_move_of
from .._matrix.byte_moves import ByteMove
from .._memory.access import observe
from .._memory.memory import Piece
from .._sync.warp_sync import when_together
from .._warps.binder import U32, Address64, Binder
from .._warps.code import Outcome, Step
from .._warps.lanes import WARP, Lanes, Warps, warps_of
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Warp Level Matrix Instructions: {}"
_ROW = np.dtype(np.complex128)  # The type complex128 has 16 bytes, which is the size of a row of a matrix.


class Rows:
    """The rows of 8 x 8 matrices, whose addresses are in the first lanes of each warp."""

    def __init__(self, binder: Binder, address: Address64, move: MatrixMove | ByteMove):
        self._address, self._lanes, self._read_bytes = address, 8 * move.count, move.read_bytes
        self._space, self._instruction = space_of(binder.instruction.opcode), binder.instruction

    def __call__(self, group: Group, warps: Warps, kind: str, values: np.ndarray | None = None) -> np.ndarray:
        """Return the rows, [warps, rows], as indices of 16-byte items of `Memory.shared`.

        For a write, `values` contains the written values.
        """
        addresses = self._address(group, warps.whole).reshape(-1, WARP)[:, : self._lanes].ravel()
        givers = (warps.numbers[:, None] * WARP + np.arange(self._lanes)).ravel()
        memory = group.parts.memory
        positions = memory.in_shared(self._space, givers, addresses, _ROW.itemsize, _ROW.itemsize)
        if group.parts.events.observer is not None:
            piece = Piece(None, memory.shared, positions, "shared")
            written = None if values is None else [values.ravel()]
            size = self._read_bytes if kind == "read" else _ROW.itemsize
            observe(group, kind, givers, [piece], size, self._instruction, written)
        return positions.reshape(-1, self._lanes) // _ROW.itemsize


@instruction("ldmatrix", section=SECTION.format("ldmatrix"), moves=True)
def ldmatrix(binder: Binder) -> Step:
    results, address = binder.flat(binder.instruction.operands[:1]), binder.instruction.operands[1]
    move, pc = matrix_move_of(binder.instruction), binder.pc
    rows, writes = Rows(binder, binder.address(address), move), [binder.write(result, U32) for result in results]
    _check_count(binder, len(writes), move)

    def act(group: Group, lanes: Lanes) -> None:
        warps = warps_of(lanes)
        items = group.parts.memory.shared.typed(_ROW)[rows(group, warps, "read")]
        values = move.to_registers(items.view(np.uint8).reshape(*items.shape, _ROW.itemsize))
        for write, value in zip(writes, values, strict=True):
            write(group, lanes, value[warps.active])

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act)

    return step


def _check_count(binder: Binder, given: int, move: MatrixMove | ByteMove) -> None:
    if given != move.count:
        raise binder.unsupported(f"of {move.count} matrices with {given} registers")


@instruction("stmatrix", section=SECTION.format("stmatrix"), moves=True)
def stmatrix(binder: Binder) -> Step:
    address, *sources = binder.instruction.operands
    move, pc = matrix_move_of(binder.instruction), binder.pc
    rows = Rows(binder, binder.address(address), move)
    reads = [binder.read(source, U32) for source in binder.flat(tuple(sources))]
    _check_count(binder, len(reads), move)

    def act(group: Group, lanes: Lanes) -> None:
        warps = warps_of(lanes)
        shape = warps.active.shape
        registers = np.stack([np.broadcast_to(read(group, warps.whole), shape[0] * WARP) for read in reads])
        items = move.to_rows(registers.reshape(len(reads), *shape)).view(_ROW)[..., 0]
        group.parts.memory.shared.typed(_ROW)[rows(group, warps, "write", items)] = items

    def step(group: Group, lanes: Lanes) -> Outcome:
        return when_together(group, lanes, pc, act)

    return step
