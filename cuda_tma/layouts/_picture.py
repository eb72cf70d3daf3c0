"""A picture of two layouts side by side as SVG. A cell is an element, and its label is the element's place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from .._show.svg import MONO, SANS, document, element, style, text
from ._element_layout import ElementLayout

__all__ = ["Side", "side_by_side_svg"]

_MOST_ROWS, _MOST_COLUMNS = 16, 16
_WIDE, _HIGH, _GAP, _MARGIN, _INDEX = 46, 28, 40, 16, 26
_SHORT = {
    "thread": "T",
    "value": "v",
    "byte": "",
    "bit": "b",
    "lane": "L",
    "column": "c",
    "half": "h",
    "quarter": "q",
    "eighth": "e",
}
_COMMON = (
    f"text{{font:11px {SANS}}}.cell{{font:10px {MONO};text-anchor:middle}}.title{{font-weight:600;font-size:14px}}"
    ".index{font-size:10px;text-anchor:middle}.differs{stroke-width:1.6}"
    f".found{{font:9px {MONO};text-anchor:middle}}"
)
_LIGHT = {
    ".paper": "fill:#fff",
    "text": "fill:#1b1f24",
    ".quiet,.index": "fill:#59636e",
    ".k0": "fill:#d7e6f5",
    ".k1": "fill:#fbe7c6",
    ".k2": "fill:#d5eedd",
    ".k3": "fill:#eadcf5",
    ".differs": "stroke:#c8321f",
    ".found": "fill:#b02a18",
}
_DARK = {
    ".paper": "fill:#12161c",
    "text": "fill:#e6edf3",
    ".quiet,.index": "fill:#9aa5b1",
    ".k0": "fill:#1f3a55",
    ".k1": "fill:#54401a",
    ".k2": "fill:#1f4630",
    ".k3": "fill:#402c55",
    ".differs": "stroke:#ff7b66",
    ".found": "fill:#ff9a88",
}


class Side(NamedTuple):
    """One layout of the picture, with the elements that differ.

    Attributes
    ----------
    role : str
        The text before the name of the layout.
    layout : ElementLayout
    differs : numpy.ndarray of bool, [rows, columns]
        Whether each element has a border.
    found : numpy.ndarray of int, [rows, columns, 2], or None
        The row and the column of the element at the place of each element that differs; -1 without such an element.
    """

    role: str
    layout: ElementLayout
    differs: np.ndarray
    found: np.ndarray | None = None


def side_by_side_svg(verdict: str, sides: Sequence[Side]) -> str:
    """Draw two layouts of one shape below a sentence."""
    shapes = [side.layout.shape for side in sides]
    rows, columns = (min(*n, most) for *n, most in zip(*shapes, (_MOST_ROWS, _MOST_COLUMNS), strict=True))
    wide = _INDEX + columns * _WIDE
    width, top = 2 * (wide + _MARGIN) + _GAP, 76
    height = top + 18 + rows * _HIGH + _MARGIN
    parts = [style(_LIGHT, _DARK, _COMMON), element("rect", width=width, height=height, rx=8, class_="paper")]
    for line, words in enumerate(_fitting(verdict, width)):
        parts.append(text(words, _MARGIN, _MARGIN + 12 + 15 * line, class_="title"))
    for number, side in enumerate(sides):
        left = _MARGIN + number * (wide + _GAP)
        parts.append(text(_heading(side, rows, columns), left, top - 10, class_="quiet"))
        parts += _indices(left + _INDEX, top + 12, rows, columns)
        for row in range(rows):
            for column in range(columns):
                x, y = left + _INDEX + column * _WIDE, top + 18 + row * _HIGH
                parts += _cell(side, row, column, x, y)
    return document(parts, width, height, verdict)


def _fitting(words: str, width: float) -> list[str]:
    """Return the text as one line, or as two lines if it is too long for one."""
    if len(words) * 7.6 < width - 2 * _MARGIN:
        return [words]
    before, _, after = words.partition(": ")
    return [before + ":", after]


def _heading(side: Side, rows: int, columns: int) -> str:
    layout = side.layout
    part = "" if layout.shape == (rows, columns) else f", the first {rows} x {columns} of {_times(layout.shape)}"
    return f"{side.role} {layout.name} ({', '.join(layout.fields)}){part}"


def _times(shape: tuple[int, int]) -> str:
    return f"{shape[0]} x {shape[1]}"


def _indices(left: float, top: float, rows: int, columns: int) -> Iterator[str]:
    for column in range(columns):
        yield text(str(column), left + (column + 0.5) * _WIDE, top, class_="index")
    for row in range(rows):
        yield text(str(row), left - _INDEX / 2, top + 6 + (row + 0.5) * _HIGH + 4, class_="index")


def _cell(side: Side, row: int, column: int, x: float, y: float) -> Iterator[str]:
    layout, differs = side.layout, bool(side.differs[row, column])
    found = side.found[row, column].tolist() if differs and side.found is not None else None
    tip = f"element ({row}, {column}): {layout.said(row, column)}"
    if found:
        tip += f"; here is {f'element ({found[0]}, {found[1]})' if found[0] >= 0 else 'nothing that was written'}"
    class_ = f"k{_hue(layout, row, column)}" + " differs" * differs
    box = {"x": x + 1, "y": y + 1, "width": _WIDE - 2, "height": _HIGH - 2, "rx": 3}
    yield element("rect", element("title", escape(tip)), **box, class_=class_)
    middle = x + _WIDE / 2
    yield text(_short(layout, row, column), middle, y + (12 if found else 18), class_="cell")
    if found:
        yield text(f"{found[0]},{found[1]}" if found[0] >= 0 else "nothing", middle, y + 23, class_="found")


def _short(layout: ElementLayout, row: int, column: int) -> str:
    fields = zip(layout.fields, layout.place(row, column), strict=True)
    return " ".join(f"{_SHORT[name]}{at}" for name, at in fields)


def _hue(layout: ElementLayout, row: int, column: int) -> int:
    """Return one of four hues.

    The lane of a quad, the chunk of 16 bytes, or the column of tensor memory determines the hue.
    """
    place = layout.place(row, column)
    if layout.space == "shared memory":
        return place[0] // 16 % 4
    return place[0] % 4 if layout.space == "registers" else place[1] // 4 % 4
