"""The loads and stores of many lanes in one step."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from .._ptx import Instruction
from .._warps.group import Group
from .._warps.lanes import Lanes, as_array, count
from .._warps.observe import Access, Events
from .._warps.program import Program
from .._warps.spaces import SHARED_START
from .altered_reads import AlteredReads
from .local_use import LocalUse
from .memory import Memory, Piece

__all__ = ["load", "observe", "store"]

_ORDERED = frozenset({"relaxed", "acquire", "release", "volatile", "acq_rel"})
# The table maps the size of an element in bytes to its base-2 logarithm, by which positions are shifted.
_SHIFTS = {1 << shift: shift for shift in range(5)}


class Loading(Protocol):
    """The interface of a machine for loads and stores: the memory, the events and the checks that they use."""

    @property
    def program(self) -> Program: ...

    @property
    def events(self) -> Events: ...

    @property
    def memory(self) -> Memory: ...

    @property
    def local_use(self) -> LocalUse: ...

    @property
    def altered(self) -> AlteredReads | None: ...


def load(
    group: Group[Loading],
    lanes: Lanes,
    space: str,
    addresses: np.ndarray,
    dtype: np.dtype,
    elements: int,
    by: Instruction,
) -> list[np.ndarray]:
    """Return the loaded values, which are one array for each of `elements` elements, with a value for each lane."""
    size = dtype.itemsize * elements
    pieces = group.parts.memory.pieces(space, lanes, addresses, size)
    if group.parts.events.observer is not None:
        observe(group, "read", lanes, pieces, size, by)
    values = _loaded(pieces, dtype, elements, count(lanes))
    if group.parts.altered is not None:
        group.parts.altered.change(by, lanes, pieces, values)
    return values


def _loaded(pieces: list[Piece], dtype: np.dtype, elements: int, number: int) -> list[np.ndarray]:
    if len(pieces) == 1:
        ((_, buffer, positions, _),) = pieces
        view = buffer.typed(dtype)
        if number == 1:
            at = positions.item() // dtype.itemsize
            return [view[at + i : at + i + 1].copy() for i in range(elements)]
        items = positions >> _SHIFTS[dtype.itemsize]
        return [view[items]] if elements == 1 else [view[items + i] for i in range(elements)]
    values = [np.empty(number, dtype) for _ in range(elements)]
    for chosen, buffer, positions, _ in pieces:
        items, view = positions >> _SHIFTS[dtype.itemsize], buffer.typed(dtype)
        for i, value in enumerate(values):
            value[chosen] = view[items + i]
    return values


def store(
    group: Group[Loading], lanes: Lanes, space: str, addresses: np.ndarray, values: list[np.ndarray], by: Instruction
) -> None:
    """Store one array of values for each element; if lanes write to one address, the value of the last lane remains."""
    dtype = values[0].dtype
    size = dtype.itemsize * len(values)
    pieces = group.parts.memory.pieces(space, lanes, addresses, size, writes=True)
    if group.parts.events.observer is not None:
        observe(group, "write", lanes, pieces, size, by, values)
    for piece in pieces:
        view = piece.buffer.typed(dtype)
        if len(piece.positions) == 1:
            at = piece.positions.item() // dtype.itemsize
            for i, value in enumerate(values):
                view[at + i : at + i + 1] = piece.of(value)
            continue
        items = piece.positions >> _SHIFTS[dtype.itemsize]
        for i, value in enumerate(values):
            view[items + i if i else items] = piece.of(value)


def observe(
    group: Group[Loading],
    kind: str,
    lanes: Lanes,
    pieces: list[Piece],
    size_bytes: int,
    by: Instruction,
    values: list[np.ndarray] | None = None,
    expected: np.ndarray | None = None,
) -> None:
    """Report accesses through the generic proxy to the observer."""
    parts, given = group.parts, expected
    observer, has_reserved = parts.events.observer, parts.program.shared_first != SHARED_START
    for piece in pieces:
        chosen, buffer, positions, space = piece
        some = lanes if chosen is None else as_array(lanes)[chosen]
        if space == "local":
            parts.local_use.note(group, kind, some, piece, size_bytes, by)
            continue
        if observer is None or (has_reserved and _is_of_the_system(group, piece, by)):
            continue
        if space == "global":
            positions = positions + buffer.start
        if chosen is None:
            written = values
        else:
            written = None if values is None else [piece.of(value) for value in values]
            given = None if expected is None else piece.of(expected)
        observer.access(
            Access(kind, "generic", None, some, space, positions, size_bytes, by, None, written, None, given)
        )


def _is_of_the_system(group: Group[Loading], piece: Piece, by: Instruction) -> bool:
    """Return whether a library accesses shared memory that the system reserves.

    The library itself orders its accesses to the reserved memory.
    """
    if piece.space != "shared" or by.opcode[0] == "atom":
        return False
    offsets = piece.positions % group.parts.memory.shared_pitch
    return bool((offsets < SHARED_START).all()) and _ORDERED.isdisjoint(by.opcode)
