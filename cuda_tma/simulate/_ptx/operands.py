"""The parser of the operands of an instruction (PTX ISA, "Instruction Operands")."""

from __future__ import annotations

from collections.abc import Callable

from .._errors import ParseError
from .constants import STARTS, constant, integer, integers
from .module import (
    SPECIAL_REGISTER,
    Address,
    Group,
    Immediate,
    Label,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from .tokens import Cursor, Token

Meaning = Register | Symbol | Label  # A declared name is the name of a register, a symbol or a label.
Find = Callable[[str], Meaning | None]

_WARP_SIZE = Immediate(32)


def operands(listed: list[Token], find: Find, line: int, of_call: bool = False) -> tuple[Operand, ...]:
    """Return all operands of an instruction; `find` returns the meaning of a name.

    A call has some operands in parentheses.
    """
    cursor = Cursor([*listed, Token("end", "", listed[-1].line if listed else line)])
    if cursor.token.kind == "end":
        return ()
    found: list[Operand] = []
    while cursor.token.kind != "end":
        if found:
            cursor.expect(",")
        listed_here = of_call and cursor.text == "("
        found.append(Group(_elements(cursor, find, ")")) if listed_here else _operand(cursor, find))
    return tuple(found)


def _operand(cursor: Cursor, find: Find) -> Operand:
    token = cursor.token
    if token.kind == "name":
        return _named(cursor, find)
    if token.text == "[":
        return _address(cursor, find)
    if token.text == "{":
        with cursor.nested():
            return Vector(_elements(cursor, find, "}"))
    if token.text == "!" and cursor.peek().kind == "name":
        cursor.next()
        return Not(_register(cursor, find))
    if token.kind == "number" or token.text in STARTS:
        return constant(cursor)
    cursor.refuse("an operand")


def _elements(cursor: Cursor, find: Find, end: str) -> tuple[Operand, ...]:
    cursor.next()
    found: list[Operand] = []
    while not cursor.take(end):
        found += map(Immediate, integers(cursor).tolist())
        found.append(_operand(cursor, find))
        if cursor.text != end:
            cursor.expect(",")
    return tuple(found)


def _named(cursor: Cursor, find: Find) -> Operand:
    first = _name(cursor, find)
    if cursor.take("|"):
        return Pair(first, _name(cursor, find))
    if isinstance(first, Symbol) and cursor.text in ("+", "-"):
        return Symbol(first.name, integer(cursor))
    return first


def _name(cursor: Cursor, find: Find) -> Operand:
    token = cursor.token
    name = cursor.expect_kind("name")
    meaning = find(name)
    if meaning is not None:
        return meaning
    if name == "_":
        return Sink()
    if name == "WARP_SZ":
        return _WARP_SIZE
    if name.startswith(SPECIAL_REGISTER):
        return Special(name[1:])
    raise ParseError(f"{name} is not declared", token.line)


def _register(cursor: Cursor, find: Find) -> Register:
    token = cursor.token
    register = _name(cursor, find)
    if not isinstance(register, Register):
        raise ParseError(f"{token.text} is not a register", token.line)
    return register


def _address(cursor: Cursor, find: Find) -> Address:
    """Parse an address such as ``[base+offset]`` or ``[base, {coordinates}]``."""
    cursor.expect("[")
    token = cursor.token
    base = _name(cursor, find) if token.kind == "name" else constant(cursor)
    if not isinstance(base, Register | Symbol | Immediate):
        raise ParseError(f"{token.text} is not an address", token.line)
    offset = integer(cursor) if cursor.text in ("+", "-") else 0
    coordinates = None
    if cursor.take(","):
        if cursor.text != "{":
            cursor.refuse("coordinates in braces")
        coordinates = _elements(cursor, find, "}")
    cursor.expect("]")
    return Address(base, offset, coordinates)
