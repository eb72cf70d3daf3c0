"""Checks of arguments, and short texts that describe arguments of any size in errors.

The checks return plain values. The checks are fast enough to run at the beginning of every function.
"""

from __future__ import annotations

import operator
import re
import reprlib
from collections.abc import Mapping, Sequence, Sized
from typing import Any, TypeVar

from ._errors import TensorMapError

__all__ = ["argument_count", "entry", "integer", "integers", "printable", "shown", "tensor_coordinates"]

_Value = TypeVar("_Value")


class _Words(reprlib.Repr):
    def repr_int(self, x: int, level: int) -> str:
        """Return the text of an integer. Shorten integers of more than 4300 digits, which Python refuses to write."""
        return super().repr_int(x, level) if x.bit_length() < _PRINTED_BITS else f"<int of {x.bit_length()} bits>"


_PRINTED_BITS = 4096
# The pattern matches control characters, and characters that change the direction of text (Unicode, "Bidirectional
# Algorithm").
_CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORDS = _Words()


def shown(value: object) -> str:
    """Return a short text for an argument. The text of an array contains its type, shape and dtype.

    >>> import numpy as np
    >>> shown(np.zeros((64, 64))), shown(bytes(128)), shown(list(range(1000)))
    ('a numpy.ndarray of shape (64, 64) and dtype float64', 'a bytes of 128 values', '[0, 1, 2, 3, 4, 5, ...]')
    """
    if value is None or isinstance(value, int | float | str | tuple | list):
        return _WORDS.repr(value)
    kind = value if isinstance(value, type) else type(value)
    package = kind.__module__.partition(".")[0]
    name = kind.__name__ if package == "builtins" else f"{package}.{kind.__name__}"
    if kind is value:
        return f"the class {name}"
    name = f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"{name} of shape {tuple(value.shape)} and dtype {value.dtype}"
    return f"{name} of {len(value)} values" if isinstance(value, Sized) else name


def printable(text: str) -> str:
    r"""Return a text with escapes for its control characters, because a terminal would execute them.

    >>> printable("a\x1b[31m.cu: error")
    'a\\x1b[31m.cu: error'
    """
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def integer(name: str, value: object) -> int:
    """Return the value as an int. Refuse a value that is not an integer."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TensorMapError(f"{name} is {shown(value)}; pass an integer") from None


def integers(
    name: str, values: Sequence[int] | None, count: int, meaning: str, default: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Return the values as ints, or a given default for a missing value.

    Refuse other types, and a wrong number of values.

    Each value has at most 32 bits (PTX ISA, cp.async.bulk.tensor: tensorCoords are .s32).
    """
    try:
        found = tuple(map(operator.index, values))  # type: ignore[arg-type]
    except TypeError:
        if values is None and default is not None:
            return default
        raise TensorMapError(f"{name} is {shown(values)}; pass {count} integers: {meaning}") from None
    if not found and default is not None:
        return default
    if len(found) != count:
        given = f"={shown(found)}" if isinstance(values, tuple | list) else f", {shown(values)},"
        raise TensorMapError(f"{name}{given} has length {len(found)}; it needs length {count}: {meaning}")
    if found and not (min(found) >= -(2**31) and max(found) < 2**31):
        raise TensorMapError(f"{name}={shown(found)} has a value of more than 32 bits; pass values that fit in 32 bits")
    return found


def tensor_coordinates(
    rank: int, coordinates: Sequence[int] | None, default: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Return the coordinates of an instruction as ints. Refuse values that :func:`integers` refuses."""
    return integers("coordinates", coordinates, rank, "one for each dimension, innermost first", default)


def entry(name: str, value: object, table: Mapping[Any, _Value]) -> _Value:
    """Return a table's entry for a value. Refuse a value without an entry.

    The keys are texts, or members of an enum.

    >>> entry("access", "diagonal", {"row": 1, "column": 2})
    Traceback (most recent call last):
    cuda_tma._errors.TensorMapError: access='diagonal' is not known; choose one of 'row', 'column'
    """
    try:
        return table[value]
    except (KeyError, TypeError):  # Python raises TypeError for a value that cannot be hashed.
        keys = (repr(key) if isinstance(key, str) else f"{int(key)} ({key.short_name})" for key in table)
        given = f"{name}={shown(value)} is not known" if isinstance(value, int | str) else f"{name} is {shown(value)}"
        raise TensorMapError(f"{given}; choose one of {', '.join(keys)}") from None


def argument_count(taker: str, taken: int, given: int) -> str:
    """Return the message for a wrong number of arguments of a function.

    >>> argument_count("kernel k", 2, 1)
    'kernel k takes 2 arguments, and 1 was given'
    """
    return f"{taker} takes {taken} argument{'s' * (taken != 1)}, and {given} {'was' if given == 1 else 'were'} given"
