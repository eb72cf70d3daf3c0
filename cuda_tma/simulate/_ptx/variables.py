"""The parser of declarations of variables and parameters, and of their initializers (PTX ISA, "Variables")."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

import numpy as np

from ..._budget import ALIGNMENT_BYTES, MODULE_BYTES, PARAMETER_BYTES
from ..._given import shown
from .._errors import ParseError
from .constants import STARTS, constant, integer, integers
from .module import MASKS, TYPE_BYTES, Immediate, Reference, Variable
from .tokens import Cursor

SPACES = ("global", "const", "shared", "local", "param", "reg")
LINKAGE = ("extern", "visible", "weak", "common")
_FLOATS = {"f32": "<f", "f64": "<d"}
_OPAQUE_BYTES = {"texref": 8, "samplerref": 8, "surfref": 8}
_ADDRESS_BYTES = 8
_EVERY = 1024  # The parser checks the time limit after every 1,024 items.
_LARGEST = 8  # NumPy has no integers with more than 8 bytes.
# An item of an initializer is an array for a run of integers, a list for a group in braces, or a single value.
_Item = Immediate | Reference | np.ndarray | list


def variables(cursor: Cursor, linkage: str = "") -> Iterator[Variable]:
    """Parse ``.space .align n .type name[dims] = {...}, ...;`` up to its semicolon."""
    space = cursor.next().text[1:]
    align, vector, type_, _ = _modifiers(cursor)
    while True:
        yield _variable(cursor, Variable("", space, type_, align, vector, linkage=linkage))
        if not cursor.take(","):
            return


def parameters(cursor: Cursor) -> tuple[Variable, ...]:
    """Parse ``( .param .b32 name, ... )`` or nothing, and return each parameter with its offset."""
    found: list[Variable] = []
    if cursor.take("("):
        while not cursor.take(")"):
            if cursor.token.kind != "dotted":
                cursor.refuse("a parameter")
            space = cursor.next().text[1:]
            align, vector, type_, is_pointer = _modifiers(cursor)
            found.append(_variable(cursor, Variable("", space, type_, align, vector, is_pointer=is_pointer)))
            cursor.take(",")
    placed = tuple(_at_offsets(found))
    if placed and (end := placed[-1].offset + placed[-1].size_bytes) > PARAMETER_BYTES:
        raise ParseError(
            (f"the parameters take {end} bytes, but those of a function have at most {PARAMETER_BYTES}"), cursor.line
        )
    return placed


def _at_offsets(params: Iterable[Variable]) -> Iterator[Variable]:
    end = 0
    for param in params:
        offset = -(-end // param.align) * param.align
        yield replace(param, offset=offset)
        end = offset + param.size_bytes


def _modifiers(cursor: Cursor) -> tuple[int, int, str, bool]:
    """Parse the alignment (0 by default), the length of a vector, the type, and whether the parameter is a pointer."""
    align, vector, type_, is_pointer = 0, 1, "", False
    while cursor.token.kind == "dotted":
        word = cursor.next().text[1:]
        if word == "align":
            align = _alignment(cursor)
        elif word in ("v2", "v4", "v8"):
            vector = int(word[1:])
        elif word == "attribute":
            cursor.expect("(")
            cursor.until(")")
        elif word in TYPE_BYTES or word in _OPAQUE_BYTES:
            type_ = word
        elif word == "ptr":
            is_pointer = True
            _pointer(cursor)
        else:
            cursor.refuse(f"a type, not .{word},")
    if not type_:
        cursor.refuse("a type")
    return align, vector, type_, is_pointer


def _pointer(cursor: Cursor) -> None:
    """Parse ``.ptr .global .align 16``, which describes the target of a pointer parameter."""
    while cursor.token.kind == "dotted":
        if cursor.next().text == ".align":
            _alignment(cursor)


def _variable(cursor: Cursor, declared: Variable) -> Variable:
    """Parse a name, its dimensions and its initializer; `declared.size_bytes` is the number of elements of a vector."""
    name = cursor.expect_kind("name")
    element_bytes = TYPE_BYTES.get(declared.type) or _OPAQUE_BYTES.get(declared.type, 1)
    item_bytes = element_bytes * declared.size_bytes
    dims: list[int] = []
    size_bytes = item_bytes
    while cursor.take("["):
        dims.append(0 if cursor.text == "]" else _extent(cursor, name))
        size_bytes *= dims[-1]
        if size_bytes > MODULE_BYTES:
            raise ParseError(
                (f"{shown(name)} takes {size_bytes} bytes, but a module has at most {MODULE_BYTES}"), cursor.line
            )
        cursor.expect("]")
    found = replace(declared, name=name, align=declared.align or item_bytes, size_bytes=size_bytes)
    if not cursor.take("="):
        return found
    shape = (*dims, declared.size_bytes) if declared.size_bytes > 1 else tuple(dims)
    line, items = cursor.line, _items(cursor)
    if shape[:1] == (0,) and isinstance(items, list):
        # The array in the declaration x[] = {...} has as many elements as the initializer has items.
        shape = (sum(map(_length, items)), *shape[1:])
    try:
        return _initialised(found, items, shape, element_bytes)
    except (IndexError, OverflowError) as error:
        raise ParseError(f"the initializer of {name} does not fit {dims or 'one element'}: {error}", line) from None


def _extent(cursor: Cursor, name: str) -> int:
    extent = integer(cursor)
    if not 0 <= extent <= MODULE_BYTES:
        raise ParseError(f"{shown(name)}[{extent}] has an invalid extent; write 0 to {MODULE_BYTES}", cursor.line)
    return extent


def _alignment(cursor: Cursor) -> int:
    """Parse an alignment, which is a power of two (PTX ISA 9.0, "Alignment")."""
    align = integer(cursor)
    if not 0 < align <= ALIGNMENT_BYTES or align & (align - 1):
        raise ParseError(f".align has {align}; write a power of two, at most {ALIGNMENT_BYTES}", cursor.line)
    return align


def _items(cursor: Cursor) -> _Item:
    if cursor.take("{"):
        items: list[_Item] = []
        with cursor.nested():
            while not cursor.take("}"):
                if not len(items) % _EVERY:
                    cursor.check()
                if len(run := integers(cursor)):
                    items.append(run)
                    continue
                items.append(_items(cursor))
                cursor.take(",")
        return items
    # In 0xFF00(symbol), the number before the parenthesis is a mask.
    if cursor.token.kind == "number" and cursor.peek().text == "(":
        text, mask = cursor.text, integer(cursor)
        if mask not in MASKS:
            raise ParseError(f"the mask {shown(text)} does not select one byte, as 0xFF00 does", cursor.line)
        cursor.expect("(")
        reference = _reference(cursor)
        cursor.expect(")")
        return replace(reference, mask=mask)
    if cursor.token.kind == "number" or cursor.text in STARTS:
        return constant(cursor)
    return _reference(cursor)


def _reference(cursor: Cursor) -> Reference:
    """Parse a reference such as ``symbol``, ``symbol+4``, or ``generic(symbol)+4``."""
    generic = cursor.text == "generic" and cursor.peek().text == "("
    if generic:
        cursor.next()
        cursor.next()
    name = cursor.expect_kind("name")
    if generic:
        cursor.expect(")")
    addend = integer(cursor) if cursor.text in ("+", "-") else 0
    return Reference(0, name, addend, generic)


def _initialised(variable: Variable, items: _Item, shape: tuple[int, ...], element_bytes: int) -> Variable:
    """Return a variable with its initial bytes; inner braces begin a row, and missing items are zero."""
    count = prod(shape)
    if not 0 < count * element_bytes <= MODULE_BYTES:
        raise IndexError(f"{count} elements")
    data = bytearray(count * element_bytes)
    references = []
    for index, item in _placed(items, shape):
        if index + _length(item) > count:
            raise IndexError("it has more numbers than the variable has elements")
        offset = index * element_bytes
        if isinstance(item, Reference):
            if item.mask is None and element_bytes < _ADDRESS_BYTES:
                raise IndexError(f"an element that holds an address must have {_ADDRESS_BYTES} bytes")
            references.append(replace(item, offset=offset))
        else:
            stored = _stored(item, variable.type, element_bytes)
            data[offset : offset + len(stored)] = stored
    return replace(variable, size_bytes=len(data), initial=bytes(data), references=tuple(references))


def _placed(items: _Item, shape: tuple[int, ...]) -> Iterator[tuple[int, Immediate | Reference | np.ndarray]]:
    """Yield each item with its index among all elements, row after row."""
    if not isinstance(items, list):
        yield 0, items
        return
    at = 0
    for item in items:
        if isinstance(item, list):
            if not shape:
                raise IndexError("its braces are nested more deeply than the variable's dimensions")
            inner = prod(shape[1:])
            at = -(-at // inner) * inner
            yield from ((at + index, each) for index, each in _placed(item, shape[1:]))
            at += inner
        else:
            yield at, item
            at += _length(item)


def _length(item: _Item) -> int:
    """Return the number of elements of an item that is not in braces."""
    return len(item) if isinstance(item, np.ndarray) else 1


def _stored(item: Immediate | np.ndarray, type_: str, size: int) -> bytes:
    """Return a number or a run of integers as the bytes of a type; integers wrap, and other numbers are rounded."""
    kind = _FLOATS.get(type_)
    if isinstance(item, np.ndarray):
        if kind is None and size <= _LARGEST:
            return item.astype(f"<u{size}").tobytes()
        return b"".join(_stored(Immediate(value), type_, size) for value in item.tolist())
    if kind is not None:
        given = {"": lambda: item.value, "f32": lambda: _float(item, "I", "f"), "f64": lambda: _float(item, "Q", "d")}
        return struct.pack(kind, given[item.type]())
    return (item.value & (1 << 8 * size) - 1).to_bytes(size, "little")


def _float(item: Immediate, bits: str, kind: str) -> float:
    return struct.unpack(kind, struct.pack(bits, item.value))[0]
