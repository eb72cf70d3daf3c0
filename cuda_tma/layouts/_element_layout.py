"""A layout as a value that contains the place of each element of a matrix."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._budget import LAYOUT_STEPS
from .._given import shown

__all__ = ["FIELDS", "ElementLayout", "check_size"]

# The fields of a place depend on the memory space. A value's number is its position among the registers of its thread.
# In tensor memory, an element with fewer than 32 bits is a part of a column.
_PARTS = {16: "half", 8: "quarter", 4: "eighth"}
FIELDS = {"registers": ("thread", "value"), "shared memory": ("byte",), "tensor memory": ("lane", "column")}


@dataclass(frozen=True, slots=True, eq=False)
class ElementLayout:
    """The place of each element of a matrix in one space.

    Attributes
    ----------
    name : str
    space : str
        ``"registers"``, ``"shared memory"`` or ``"tensor memory"``.
    bits : int
        The number of bits of an element.
    places : numpy.ndarray of int64, [rows, columns, fields]
        The place of each element: thread and value, or the byte, or lane and column. In tensor memory, an element with
        fewer than 32 bits also has the part of its column; in shared memory, one with fewer than 8 bits also has the
        first bit in its byte.
    source : str
        The document that defines the layout.
    """

    name: str
    space: str
    bits: int
    places: np.ndarray
    source: str = ""

    @property
    def shape(self) -> tuple[int, int]:
        """The rows and columns of the matrix."""
        return self.places.shape[0], self.places.shape[1]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of a place in this layout."""
        part: tuple[str, ...] = ()
        if self.space == "tensor memory" and self.bits < 32:
            part = (_PARTS[self.bits],)
        elif self.space == "shared memory" and self.bits < 8:
            part = ("bit",)
        return FIELDS[self.space] + part

    def place(self, row: int, column: int) -> tuple[int, ...]:
        """Return the place of one element of the matrix."""
        return tuple(self.places[row, column].tolist())

    def has(self, row: int, column: int) -> bool:
        """Return whether the matrix has this element."""
        return row < self.shape[0] and column < self.shape[1]

    def said(self, row: int, column: int) -> str:
        """Return the place of one element as text, such as ``thread 5, value 2``."""
        return ", ".join(f"{name} {at}" for name, at in zip(self.fields, self.place(row, column), strict=True))

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"<ElementLayout {self.name}: {rows} x {columns} in {self.space}>"


def check_size(name: str, elements: int, modes: int = 1) -> None:
    """Refuse a layout of too many elements before any element is computed."""
    if elements * modes > LAYOUT_STEPS:
        raise ValueError(
            f"{shown(name)} has more than {LAYOUT_STEPS // modes:,} elements, the limit of a comparison; pass the "
            "layout of one tile"
        )
