"""The parser of numbers and integer expressions (PTX ISA, "Constants" and "Constant Expressions")."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable

import numpy as np

from ..._given import shown
from .._errors import ParseError
from .module import Immediate
from .tokens import Cursor

_MOST_DIGITS = 66  # The longest integer in PTX has 66 characters, which are 0b and 64 binary digits.
STARTS = ("-", "+", "~", "!", "(")  # A constant starts with a digit, or with one of the characters in STARTS.

_WORD = 1 << 64
_Binary = Callable[[int, int], int]
# The table maps each binary operator of PTX to its precedence and its function.
_BINARY: dict[str, tuple[int, _Binary]] = {
    "|": (0, operator.or_),
    "^": (1, operator.xor),
    "&": (2, operator.and_),
    "<<": (3, lambda value, count: value << (count & 63)),
    ">>": (3, lambda value, count: value >> (count & 63)),
    "+": (4, operator.add),
    "-": (4, operator.sub),
    "*": (5, operator.mul),
}
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}


def constant(cursor: Cursor) -> Immediate:
    """Parse a floating-point number with its sign, or an integer expression."""
    negative = cursor.text == "-"
    number = cursor.peek(int(negative))
    if number.kind == "number" and _is_float(number.text):
        for _ in range(1 + negative):
            cursor.next()
        return _float(number.text, negative)
    return Immediate(integer(cursor))


def integers(cursor: Cursor) -> np.ndarray:
    """Return the values of a long run of integers and commas; the array is empty if no run begins at the cursor."""
    if cursor.token.kind != "integers":
        return np.zeros(0, np.int64)
    return np.fromstring(cursor.next().text.rstrip().rstrip(","), np.int64, sep=",")


def integer(cursor: Cursor, weakest: int = 0) -> int:
    """Parse an integer expression of 64 bits, which wraps."""
    value = _term(cursor)
    while (found := _BINARY.get(cursor.text)) is not None and found[0] >= weakest:
        cursor.next()
        strength, operation = found
        value = _wrapped(operation(value, integer(cursor, strength + 1)))
    return value


def _wrapped(value: int) -> int:
    return value if -_WORD // 2 <= value < _WORD else value % _WORD


def _term(cursor: Cursor) -> int:
    if (operation := _UNARY.get(cursor.text)) is not None:
        cursor.next()
        with cursor.nested():
            return _wrapped(operation(_term(cursor)))
    if cursor.take("("):
        with cursor.nested():
            value = integer(cursor)
        cursor.expect(")")
        return value
    if _is_float(cursor.text):
        cursor.refuse("an integer")
    return _number(cursor.expect_kind("number"), cursor.line)


def _number(text: str, line: int) -> int:
    digits = text.rstrip("U")
    octal = digits[:1] == "0" and digits.isdigit()
    if octal and {*digits} & {*"89"}:
        raise ParseError(f"{shown(digits)} is not an octal number", line)
    if len(digits) <= _MOST_DIGITS and (value := int(digits, 8 if octal else 0)) < _WORD:
        return value
    raise ParseError(f"{shown(digits)} has more than 64 bits", line)


def _is_float(text: str) -> bool:
    return text[:2] in ("0f", "0F", "0d", "0D") or (text[:2].lower() not in ("0x", "0b") and bool({*".eE"} & {*text}))


def _float(text: str, negative: bool) -> Immediate:
    """Return the bits of an f32 (``0f3F800000``) or f64 (``0d...``, ``1.0``)."""
    prefix = text[:2].lower()
    if prefix == "0f":
        return Immediate(int(text[2:], 16) ^ negative << 31, "f32")
    bits = int(text[2:], 16) if prefix == "0d" else struct.unpack("<Q", struct.pack("<d", float(text)))[0]
    return Immediate(bits ^ negative << 63, "f64")
