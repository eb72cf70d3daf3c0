"""The notation of a layout as CuTe prints it, such as ``((128,?{div=16}),1):((65536,1),0)+32?=64``.

A layout has a shape, and strides with the same nesting. A ``?`` is a value that is unknown before run time. ``?=``
precedes the values of all ``?``, in their order. ``?{div=16}`` requires that a value is a multiple of 16. ``+32`` is
the base, in columns of 32 bits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from math import prod

import numpy as np

from .._budget import NESTING
from .._given import shown

__all__ = ["CuteLayout", "Tree", "depths", "flat", "parse", "size"]

Tree = int | tuple["Tree", ...]

_TEXT = re.compile(r"(?P<layout>.+?)(\+(?P<base>\d{1,6}))?(\?=(?P<values>[\d,]+))?")
_TOKEN = re.compile(r"\s*(?:(?P<number>\d{1,12})|(?P<unknown>\?)(?:\{div=(?P<multiple>\d{1,9})\})?|(?P<mark>[(),:]))")


@dataclass(frozen=True)
class CuteLayout:
    """A shape, strides with the same nesting, and the base in columns."""

    shape: tuple[Tree, ...]
    stride: tuple[Tree, ...]
    base: int = 0

    def offsets(self, modes: int | slice) -> np.ndarray:
        """Return the offset of each index into one or several modes.

        The index of the first mode varies fastest.
        """
        found = np.zeros(1, np.int64)
        for extent, stride in _pairs(self.shape[modes], self.stride[modes]):
            found = (found[None, :] + (np.arange(extent) * stride)[:, None]).ravel()
        return found


def size(shape: Tree) -> int:
    """Return the number of indices into a shape."""
    return prod(flat(shape))


def depths(text: str) -> list[int]:
    """Return the depth of the nested parentheses after each character of a text."""
    return [*accumulate((part == "(") - (part == ")") for part in text)]


def flat(tree: Tree) -> tuple[int, ...]:
    """Return the numbers of a shape or a stride, with the first mode first."""
    return (tree,) if isinstance(tree, int) else tuple(number for each in tree for number in flat(each))


def _pairs(shape: Tree, stride: Tree) -> Iterator[tuple[int, int]]:
    return zip(flat(shape), flat(stride), strict=True)


def parse(text: str) -> CuteLayout:
    """Parse a layout as CuTe prints it, with its base and its values.

    Raises
    ------
    ValueError
        If the text is not a layout, if a ``?`` has no value, or if a value is not a multiple of its ``div``.

    Examples
    --------
    >>> parse("((128,?{div=16}),1):((65536,1),0)+32?=64")
    CuteLayout(shape=((128, 64), 1), stride=((65536, 1), 0), base=32)
    """
    found = _TEXT.fullmatch(text.strip())
    if not found or found["layout"].count(":") != 1 or max(depths(text), default=0) > NESTING:
        raise ValueError(
            f"{shown(text)} is not a layout; pass shape and strides, such as ((128,16),1,4):((64,1),0,16)+32"
        )
    given = [int(value) for value in (found["values"] or "").split(",") if value]
    tokens = [*_tokens(text, found["layout"])]
    unknown = [token for token in tokens if token[0] == "?"]
    if len(unknown) != len(given):
        raise ValueError(
            f"{shown(text)} has {len(unknown)} unknown values, but {len(given)} were given; append one value for each "
            "?, in the same order, as in ?=64,32"
        )
    shape, stride = _trees(text, _known(text, tokens, given))
    if _profile(shape) != _profile(stride):
        raise ValueError(
            f"{shown(text)} has a shape and strides that are nested differently; pass one stride for each extent"
        )
    extents, strides = (each if isinstance(each, tuple) else (each,) for each in (shape, stride))
    return CuteLayout(extents, strides, int(found["base"] or 0))


def _tokens(text: str, layout: str) -> Iterator[tuple[str, int]]:
    """Yield each punctuation mark, each number, and each unknown value with its divisor."""
    at = 0
    while at < len(layout.rstrip()):
        found = _TOKEN.match(layout, at)
        if found is None:
            raise ValueError(f"{shown(text)}: {shown(layout[at:])} is not a number, ? or ?{{div=N}}")
        if found["unknown"]:
            yield "?", int(found["multiple"] or 1)
        else:
            yield (found["mark"], 0) if found["mark"] else ("number", int(found["number"]))
        at = found.end()


def _known(text: str, tokens: list[tuple[str, int]], given: list[int]) -> list[tuple[str, int]]:
    values, known = iter(given), []
    for kind, number in tokens:
        if kind != "?":
            known.append((kind, number))
            continue
        value = next(values)
        if value % number:
            raise ValueError(
                f"{shown(text)} has the value {value} for ?{{div={number}}}, which is not a multiple of {number}"
            )
        known.append(("number", value))
    return known


def _trees(text: str, tokens: list[tuple[str, int]]) -> tuple[Tree, Tree]:
    kinds = [kind for kind, _ in tokens]
    at = kinds.index(":")
    try:
        return _tree(tokens[:at]), _tree(tokens[at + 1 :])
    except IndexError:
        raise ValueError(f"{shown(text)} has parentheses or commas that do not match") from None


def _tree(tokens: list[tuple[str, int]]) -> Tree:
    found, rest = _first(tokens)
    if rest:
        raise IndexError
    return found


def _first(tokens: list[tuple[str, int]]) -> tuple[Tree, list[tuple[str, int]]]:
    kind, number = tokens[0]
    if kind == "number":
        return number, tokens[1:]
    if kind != "(":
        raise IndexError
    modes: list[Tree] = []
    rest = tokens
    while rest[0][0] != ")":
        if rest[0][0] != ("," if modes else "("):
            raise IndexError
        mode, rest = _first(rest[1:])
        modes.append(mode)
    return tuple(modes), rest[1:]


def _profile(tree: Tree) -> object:
    return None if isinstance(tree, int) else tuple(map(_profile, tree))
