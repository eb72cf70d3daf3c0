"""Divisions of CuTe layouts by tilers, and thread-value layouts of tiles. The functions need ``tensor-layouts``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from .._budget import NESTING
from .._given import shown
from ._cute import library
from ._notation import depths, flat, parse

__all__ = ["logical_divide", "make_layout_tv", "make_ordered_layout", "zipped_divide"]

_MODE = re.compile(r"[\d(),: ]+")
_MOST_CHARACTERS = 1000


def make_ordered_layout(shape: Sequence[int], order: Sequence[int]) -> Any:
    """Return the compact layout of a shape whose modes are contiguous in a given order.

    Parameters
    ----------
    shape : sequence of int
        The extent of each mode.
    order : sequence of int
        One number per mode; the mode with the smallest number has stride 1. ``(1, 0)`` makes the last mode contiguous.

    Returns
    -------
    tensor_layouts.Layout

    Raises
    ------
    ValueError
        If `order` is not a permutation with one number for each mode.
    ImportError
        If ``tensor-layouts`` is missing.

    Examples
    --------
    >>> make_ordered_layout((4, 32), order=(1, 0))
    Layout((4, 32), (32, 1))
    """
    if sorted(order) != list(range(len(shape))):
        raise ValueError(
            f"order={tuple(order)} is not a permutation of the {len(shape)} modes; pass each of 0 to {len(shape) - 1} "
            "once"
        )
    strides, stride = [0] * len(shape), 1
    for mode in sorted(range(len(shape)), key=order.__getitem__):
        strides[mode], stride = stride, stride * shape[mode]
    return library().Layout(tuple(shape), tuple(strides))


def make_layout_tv(thread_layout: Any, value_layout: Any) -> tuple[tuple[int, ...], Any]:
    """Return the tile that threads cover with their values, and its layout from (thread, value) to an element.

    The threads tile the values: each thread has a contiguous block of the tile. The function has the name, the order
    of its parameters and the results of CuTe DSL's ``cute.make_layout_tv``.

    Parameters
    ----------
    thread_layout : tensor_layouts.Layout or str
        From the coordinates of a thread to its number, such as ``"(4,32):(32,1)"``.
    value_layout : tensor_layouts.Layout or str
        From the coordinates of a value within a thread to its number, such as ``"(4,4):(4,1)"``.

    Returns
    -------
    tiler : tuple of int
        The extents of the tile, as many as the layouts have modes.
    layout : tensor_layouts.Layout
        From (thread, value) to the number of the element in the tile, in column-major order.

    Raises
    ------
    ValueError
        If a text is not a layout, or if both layouts do not have the same number of modes.
    ImportError
        If ``tensor-layouts`` is missing.

    Examples
    --------
    >>> make_layout_tv("(4,32):(32,1)", "(4,4):(4,1)")
    ((16, 128), Layout(((32, 4), (4, 4)), ((64, 4), (16, 1))))
    """
    cute, threads, values = library(), _layout(thread_layout), _layout(value_layout)
    if cute.rank(threads) != cute.rank(values):
        raise ValueError(
            f"the threads {threads} have {cute.rank(threads)} modes, but the values {values} have {cute.rank(values)}; "
            "pass two layouts with one mode for each dimension of the tile"
        )
    tile = cute.raked_product(threads, values)
    both = cute.Layout((cute.size(threads), cute.size(values)))
    return tuple(cute.product_each(tile.shape)), cute.compose(cute.right_inverse(tile), both)


def logical_divide(layout: Any, tiler: Any) -> Any:
    """Divide each mode of a layout into the elements of a tile and the tiles: ``((tile, tiles), ...)``.

    Parameters
    ----------
    layout : tensor_layouts.Layout or str
    tiler : tensor_layouts.Layout, int, tuple of them, or str
        One part per mode; as text ``"<3:3,(2,4):(1,8)>"``, or ``"<3,8>"`` for contiguous tiles.

    Returns
    -------
    tensor_layouts.Layout

    Raises
    ------
    ValueError
        If a text is not a layout or a tiler, or if the tiler does not divide the layout.
    ImportError
        If ``tensor-layouts`` is missing.

    Examples
    --------
    >>> logical_divide("(9,(4,8)):(59,(13,1))", "<3:3,(2,4):(1,8)>")
    Layout(((3, 3), ((2, 4), (2, 2))), ((177, 59), ((13, 2), (26, 1))))
    """
    return _divided("logical_divide", layout, tiler)


def zipped_divide(layout: Any, tiler: Any) -> Any:
    """Divide a layout by a tiler, with all elements of a tile in the first mode and all tiles in the second.

    Parameters
    ----------
    layout : tensor_layouts.Layout or str
    tiler : tensor_layouts.Layout, int, tuple of them, or str
        As for :func:`logical_divide`.

    Returns
    -------
    tensor_layouts.Layout
        Two modes: ``zipped_divide(layout, tiler)(element, tile)``.

    Raises
    ------
    ValueError
        If a text is not a layout or a tiler, or if the tiler does not divide the layout.
    ImportError
        If ``tensor-layouts`` is missing.

    Examples
    --------
    >>> zipped_divide("(9,(4,8)):(59,(13,1))", "<3:3,(2,4):(1,8)>")
    Layout(((3, (2, 4)), (3, (2, 2))), ((177, (13, 2)), (59, (26, 1))))
    """
    return _divided("zipped_divide", layout, tiler)


def _divided(operation: str, layout: Any, tiler: Any) -> Any:
    cute = library()
    layout, by = _layout(layout), _tiler(tiler)
    try:
        return getattr(cute, operation)(layout, by)
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"{shown(str(tiler))} does not divide {layout}: {error}") from None


def _layout(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    if len(given) > _MOST_CHARACTERS:
        raise ValueError(f"{shown(given)} has {len(given)} characters; pass a layout of at most {_MOST_CHARACTERS}")
    read = parse(given)
    if read.base:
        raise ValueError(f"{shown(given)} has the base {read.base}; pass a layout without a base")
    if 0 in flat(read.shape):
        raise ValueError(f"{shown(given)} has an extent of 0; pass extents of at least 1")
    shape, _, _ = given.partition(":")
    one = not shape.strip().startswith("(")
    return library().Layout(*((read.shape[0], read.stride[0]) if one else (read.shape, read.stride)))


def _tiler(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    inner = given.strip()
    if inner.startswith("<") and inner.endswith(">"):
        return tuple(_mode(given, part.strip()) for part in _parts(inner[1:-1]))
    return _mode(given, inner)


def _mode(given: str, text: str) -> Any:
    """Return one part of a tiler: a number, or a layout."""
    if text.isdecimal() and int(text):
        return int(text)
    if not _MODE.fullmatch(text) or ":" not in text:
        raise ValueError(f"{shown(given)} is not a tiler; pass one part for each mode, such as <3:3,(2,4):(1,8)>")
    return _layout(text)


def _parts(text: str) -> Iterator[str]:
    """Split a text at the commas outside all parentheses."""
    after = depths(text)
    if max(after, default=0) > NESTING:
        raise ValueError(f"{shown(text)} has more than {NESTING} nested parentheses")
    start = 0
    for at, part in enumerate(text):
        if part == "," and after[at] == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]
