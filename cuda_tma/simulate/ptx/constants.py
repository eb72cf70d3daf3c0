"""Numbers, and integer expressions of them. PTX, "Constants", "Constant Expressions"."""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable

from ..errors import ParseError
from .module import Immediate
from .tokens import Cursor

STARTS = ("-", "+", "~", "!", "(")  # with what a constant may begin, beside a number

# Weakest first.
_BINARY: tuple[dict[str, Callable[[int, int], int]], ...] = (
    {"|": operator.or_},
    {"^": operator.xor},
    {"&": operator.and_},
    {"<<": lambda value, count: value << (count & 63), ">>": lambda value, count: value >> (count & 63)},
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul},
)
_UNARY: dict[str, Callable[[int], int]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "!": lambda value: int(not value),
}


def constant(cursor: Cursor) -> Immediate:
    """A floating-point number with its sign, or an integer expression."""
    negative = cursor.text == "-"
    number = cursor.peek(int(negative))
    if number.kind == "number" and _is_float(number.text):
        for _ in range(1 + negative):
            cursor.next()
        return _float(number.text, negative)
    return Immediate(integer(cursor))


def integer(cursor: Cursor, weakest: int = 0) -> int:
    """An integer expression."""
    if weakest == len(_BINARY):
        return _term(cursor)
    value = integer(cursor, weakest + 1)
    while (operation := _BINARY[weakest].get(cursor.text)) is not None:
        cursor.next()
        value = operation(value, integer(cursor, weakest + 1))
    return value


def _term(cursor: Cursor) -> int:
    if (operation := _UNARY.get(cursor.text)) is not None:
        cursor.next()
        return operation(_term(cursor))
    if cursor.take("("):
        value = integer(cursor)
        cursor.expect(")")
        return value
    if _is_float(cursor.text):
        cursor.refuse("an integer")
    text = cursor.expect_kind("number").rstrip("U")
    octal = text[:1] == "0" and text.isdigit()
    if octal and {*text} & {*"89"}:
        raise ParseError(f"{text} is no octal number", cursor.line)
    return int(text, 8 if octal else 0)


def _is_float(text: str) -> bool:
    return text[:2] in ("0f", "0F", "0d", "0D") or (text[:2].lower() not in ("0x", "0b") and bool({*".eE"} & {*text}))


def _float(text: str, negative: bool) -> Immediate:
    """The bits of an f32 (``0f3F800000``) or f64 (``0d...``, ``1.0``)."""
    prefix = text[:2].lower()
    if prefix == "0f":
        return Immediate(int(text[2:], 16) ^ negative << 31, "f32")
    bits = int(text[2:], 16) if prefix == "0d" else struct.unpack("<Q", struct.pack("<d", float(text)))[0]
    return Immediate(bits ^ negative << 63, "f64")
