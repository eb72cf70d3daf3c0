"""The comparison of two layouts of one matrix, for each element and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .._given import shown
from . import _columns
from ._element_layout import ElementLayout
from ._exchange import Exchange, exchange_of
from ._named import layout, two_layouts
from ._picture import Side, side_by_side_svg
from ._tensor_memory import packed as packed_fragment

__all__ = ["Comparison", "compare"]

_MOST_LISTED = 16


@dataclass(frozen=True)
class Comparison:
    """The places of a matrix's elements in two layouts, the layout of a write and the layout of a read.

    Attributes
    ----------
    written, read : ElementLayout
        The two layouts of the comparison.
    same : numpy.ndarray of bool, [rows, columns]
        Whether each element has the same place in both layouts.
    found : numpy.ndarray of int64, [rows, columns, 2]
        The row and the column of the element that was written at the place from which each element is read, or -1 if
        nothing was written there.
    loaded : ElementLayout, optional
        The layout from which threads load elements before they write them.
    packed : tuple of (str, ElementLayout)
        The names of layouts of 32-bit values, and the layouts of packed elements that replace them in the comparison.

    Examples
    --------
    >>> found = compare("wgmma.d:f32", "wgmma.a:e4m3")
    >>> found.equal, found.found[0, 2].tolist()
    (False, [8, 0])
    >>> print(found)  # doctest: +ELLIPSIS
    wgmma.d:f32:64x32 and wgmma.a:e4m3:64x32 differ: 256 of 2,048 elements have the same thread and value...
    """

    written: ElementLayout
    read: ElementLayout
    same: np.ndarray
    found: np.ndarray
    loaded: ElementLayout | None = None
    packed: tuple[tuple[str, ElementLayout], ...] = ()

    @property
    def is_comparable(self) -> bool:
        """Return whether both layouts are in the same space, with places of the same fields."""
        return self.written.fields == self.read.fields

    @property
    def equal(self) -> bool:
        """Return whether every element has the same place in both layouts."""
        return bool(self.same.all())

    @property
    def lost(self) -> int:
        """The number of elements that are read from places to which nothing was written."""
        return int((self.found[..., 0] < 0).sum())

    @cached_property
    def exchange(self) -> Exchange | None:
        """The exchange that converts the first layout into the second, if both are in registers and differ."""
        in_registers = self.written.space == self.read.space == "registers"
        return exchange_of(self.written.places, self.read.places) if in_registers and not self.equal else None

    def threads(self) -> dict[int, tuple[int, int]]:
        """Return for each thread the number of elements that have one place in both layouts, and of all elements.

        >>> [*compare("wgmma.d:f32", "wgmma.a:e4m3").threads().items()][:4]
        [(0, (4, 16)), (1, (0, 16)), (2, (0, 16)), (3, (4, 16))]
        """
        threads = self.read.places[..., 0]
        return {
            thread: (int(self.same[threads == thread].sum()), int((threads == thread).sum()))
            for thread in np.unique(threads).tolist()
        }

    def elements(self) -> Iterator[dict[str, object]]:
        """Yield row, column and both places of every element, and the element at the second place, or None."""
        for row, column in np.ndindex(self.same.shape):
            found = self.found[row, column].tolist()
            yield {
                "row": row,
                "column": column,
                "written": self.written.place(row, column) if self.written.has(row, column) else None,
                "read": self.read.place(row, column),
                "found": None if found[0] < 0 else tuple(found),
            }

    def svg(self) -> str:
        """Return a picture of both layouts.

        The label of an element that differs names the element that was written to its place.
        """
        differs = ~self.same if self.is_comparable else np.zeros_like(self.same)
        sides = Side("written as", self.written, differs), Side("read as", self.read, differs, self.found)
        return side_by_side_svg(next(self._lines()), sides)

    def __str__(self) -> str:
        """Return the comparison as text: the number of elements that differ, the first of them, and the conversion."""
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        names = f"{self.written.name} and {self.read.name}"
        count, fields = self.same.size, " and ".join(self.read.fields)
        if not self.is_comparable:
            yield f"{names} {self._apart()}"
            yield f"element (0, 0): {self.written.said(0, 0)}; {self.read.said(0, 0)}"
            return
        if self.equal:
            yield f"{names} are equal: all {count:,} elements have the same {fields}"
            yield from self._packing()
            yield from self._in_tensor_memory()
            yield from self._conversion()
            return
        yield f"{names} differ: {int(self.same.sum()):,} of {count:,} elements have the same {fields}"
        yield from self._packing()
        yield from self._first()
        yield from self._in_tensor_memory()
        if self.lost:
            yield f"{self.lost:,} elements are read where nothing was written: earlier content, perhaps NaN"
        if self.exchange is not None:
            yield from self._threads()
            yield from self.exchange.lines()

    def _apart(self) -> str:
        if self.written.space != self.read.space:
            return (
                f"are in different spaces, {self.written.space} and {self.read.space}; compare two layouts of one space"
            )
        words = (
            f"have elements of {self.written.bits} and {self.read.bits} bits; compare two layouts of one element width"
        )
        if self.read.space != "tensor memory":
            return words
        each = 32 // min(self.written.bits, self.read.bits)
        spelled = {2: "tmem:bf16x2", 4: "tmem:e4m3x4"}.get(each, "tmem:bf16x2")
        return f"{words}. A store that packs {each} elements into 32 bits is, for example, {spelled}:(128,64):(65536,1)"

    def _packing(self) -> Iterator[str]:
        for name, found in self.packed:
            each = 32 // found.bits
            yield f"{name} has values of 32 bits, which are compared as {each} packed elements each: {found.name}"

    def _in_tensor_memory(self) -> Iterator[str]:
        if self.read.space == "tensor memory":
            yield from _columns.lines(self.written, self.read, self.loaded)

    def _conversion(self) -> Iterator[str]:
        if self.read.space == "registers" and self.written.bits != self.read.bits:
            yield (
                f"so a thread's values pass on once they are converted from {self.written.bits} to {self.read.bits} "
                f"bits, {32 // self.read.bits} in each register, in their order"
            )

    def _first(self) -> Iterator[str]:
        row, column = np.argwhere(~self.same)[0].tolist()
        found = self.found[row, column].tolist()
        if not self.written.has(row, column):
            yield f"the first is element ({row}, {column}): it is not written"
            return
        there = f"element ({found[0]}, {found[1]})" if found[0] >= 0 else "nothing that was written"
        yield (
            f"the first is element ({row}, {column}): written to {self.written.said(row, column)}, and read from "
            f"{self.read.said(row, column)}, where {there} lies"
        )

    def _threads(self) -> Iterator[str]:
        counts: dict[tuple[int, int], list[int]] = {}
        for thread, numbers in self.threads().items():
            counts.setdefault(numbers, []).append(thread)
        for (kept, of), threads in sorted(counts.items(), reverse=True)[:4]:
            which = "every thread" if len(counts) == 1 else f"{len(threads)} threads ({_listed(threads)})"
            verb = "finds" if len(counts) == 1 else "find"
            yield f"{which} {verb} {kept} of {of} values right"


def compare(
    written: ElementLayout | str, read: ElementLayout | str, *, loaded: ElementLayout | str | None = None
) -> Comparison:
    """Compare the places of each element in two layouts.

    Parameters
    ----------
    written, read : ElementLayout or str
        Layouts of matrices of the same shape. The first is the result of one instruction, and the second the operand of
        another. A text is a name for :func:`layout`. A name without a shape has the shape of the other layout. Two such
        names have the smallest shape that fits both. Values of 32 bits in tensor memory (``tmem:f32``) are compared
        with narrower elements as packed elements.
    loaded : ElementLayout or str, optional
        The accumulator that threads load before they convert and write it, for two layouts in tensor memory.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        If the shapes differ. The rows of two layouts in tensor memory may have different lengths.
    """
    written, read = given = _layouts(written, read)
    written, read = _packed(written, read), _packed(read, written)
    packed = tuple((old.name, new) for old, new in zip(given, (written, read), strict=True) if old is not new)
    before = None if loaded is None else _layout("loaded", loaded, None)
    in_tensor_memory = written.space == read.space == "tensor memory" and written.shape[0] == read.shape[0]
    if before is not None and not before.space == written.space == read.space == "tensor memory":
        raise ValueError(
            f"the loaded layout {before.name} is in {before.space}, the written layout in {written.space}, and the "
            f"read layout in {read.space}: pass a loaded layout only if all three are in tensor memory"
        )
    if written.shape != read.shape and not in_tensor_memory:
        raise ValueError(
            f"{written.name} is {written.shape[0]} x {written.shape[1]}, and {read.name} {read.shape[0]} x "
            f"{read.shape[1]}: use one shape for both"
        )
    if written.fields != read.fields:
        return Comparison(written, read, np.zeros(read.shape, bool), np.full((*read.shape, 2), -1), before, packed)
    same, columns = np.zeros(read.shape, bool), slice(min(written.shape[1], read.shape[1]))
    same[:, columns] = (written.places[:, columns] == read.places[:, columns]).all(axis=-1)
    return Comparison(written, read, same, _found(written.places, read.places), before, packed)


def _packed(given: ElementLayout, other: ElementLayout) -> ElementLayout:
    """Return a layout of 32-bit values in tensor memory as packed elements, if the other layout's are narrower.

    Threads pack two bf16 into each register before a store, and CuTe prints the target of the store with the type f32.
    """
    if not given.space == other.space == "tensor memory" or given.bits <= other.bits:
        return given
    found = packed_fragment(given.name, other.name)
    return given if found is None else found.elements()


def _layouts(written: object, read: object) -> tuple[ElementLayout, ElementLayout]:
    """Return both arguments as layouts. A name becomes the layout with the name."""
    if isinstance(written, str) and isinstance(read, str):
        return two_layouts(written, read)
    shape = next((each.shape for each in (written, read) if isinstance(each, ElementLayout)), None)
    return _layout("written", written, shape), _layout("read", read, shape)


def _layout(name: str, given: object, shape: tuple[int, int] | None) -> ElementLayout:
    if isinstance(given, str):
        return layout(given, shape)
    if not isinstance(given, ElementLayout):
        raise TypeError(f"{name} is {shown(given)}; pass a layout or its name, such as 'wgmma.d:f32:64x32'")
    return given


def _found(written: np.ndarray, read: np.ndarray) -> np.ndarray:
    """Return, for each place of the read, the element that was written to this place."""
    rows, columns, fields = written.shape
    base = int(max(written.max(), read.max())) + 1
    keys = [(places * base ** np.arange(fields)[::-1]).sum(axis=-1).ravel() for places in (written, read)]
    order = np.argsort(keys[0])
    at = np.minimum(np.searchsorted(keys[0][order], keys[1]), rows * columns - 1)
    number = np.where(keys[0][order][at] == keys[1], order[at], -1)
    found = np.stack(np.divmod(number, columns), axis=-1)
    found[number < 0] = -1
    return found.reshape(*read.shape[:2], 2)


def _listed(numbers: list[int]) -> str:
    said = ", ".join(map(str, numbers[:_MOST_LISTED]))
    return f"{said}, ..." if len(numbers) > _MOST_LISTED else said
