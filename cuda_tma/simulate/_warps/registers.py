"""The registers of each active function, which are a matrix [register, lane] for each width.

A typed register is a view of a row of its matrix. PTX has thousands of virtual registers, but the operating system
allocates memory only for rows that a kernel accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from .._ptx import TYPE_BYTES, RegisterName

__all__ = ["VIEW", "RegisterFile", "Row", "Tracked", "rows_of"]


class Tracked(Protocol):
    """The interface of facts about registers that are valid until threads enter the function again."""

    def forget(self, lanes: np.ndarray) -> None:
        """Remove the facts about the registers of some lanes."""


# The table maps a size in bytes to NumPy types, of which the first is the type of the matrix of registers.
_CONTAINERS: Mapping[int, tuple[np.dtype, ...]] = {
    0: (np.dtype(bool),),
    1: (np.dtype(np.uint8), np.dtype(np.int8)),
    2: (np.dtype(np.uint16), np.dtype(np.int16), np.dtype(np.float16)),
    4: (np.dtype(np.uint32), np.dtype(np.int32), np.dtype(np.float32)),
    8: (np.dtype(np.uint64), np.dtype(np.int64), np.dtype(np.float64)),
    # NumPy has no integer type of 16 bytes, so complex128 is the type of an item of 16 bytes.
    16: (np.dtype(np.complex128),),
}
VIEW = {dtype: number for number, dtype in enumerate(d for views in _CONTAINERS.values() for d in views)}
# A Row consists of a register size in bytes, and of the index of a row in the matrix for registers of that size.
Row = tuple[int, int]


def rows_of(registers: Sequence[RegisterName]) -> tuple[tuple[Row, ...], dict[int, int]]:
    """Return the place of each register of a function, and the number of rows of each matrix."""
    counts = dict.fromkeys(_CONTAINERS, 0)
    found = []
    for register in registers:
        size = TYPE_BYTES[register.type]
        found.append((size, counts[size]))
        counts[size] += 1
    return tuple(found), counts


class RegisterFile:
    """The registers of one function at one depth of calls.

    Attributes
    ----------
    views : list of numpy.ndarray
        The views of the matrices by type: ``views[VIEW[dtype]][row, lane]``.
    carry : numpy.ndarray of bool
        The carry flag in the condition code register of each lane.
    parameters : numpy.ndarray of uint8, [lane, byte]
        The parameters of this function, and of the functions that it calls.
    flights : Tracked or None
        The registers that products in flight use; None if the function needs no check of such registers.
    """

    __slots__ = ("carry", "flights", "parameters", "views")

    def __init__(self, rows: Mapping[int, int], parameter_bytes: int, lanes: int):
        self.views: list[np.ndarray] = []
        for size, dtypes in _CONTAINERS.items():
            matrix = np.zeros((rows[size], lanes), dtypes[0])
            self.views += [matrix.view(dtype) for dtype in dtypes]
        self.carry = np.zeros(lanes, bool)
        self.flights: Tracked | None = None
        self.parameters = np.zeros((lanes, parameter_bytes), np.uint8)

    @property
    def memory(self) -> list[np.ndarray]:
        """All arrays that contain registers, without duplicate views."""
        owned = {id(view.base): view for view in self.views}
        return [*owned.values(), self.carry, self.parameters]
