"""The parser of source places: ``.file``, ``.loc`` and the section of names (PTX ISA, "Debugging Directives")."""

from __future__ import annotations

import os
import re

import numpy as np

from ..._budget import NAME_BYTES
from .._errors import ParseError
from .constants import integer, integers
from .module import Place
from .tokens import Cursor, Token

STRINGS = ".debug_str"  # The section .debug_str contains the names of inlined functions.
_At = tuple[int, int, int]  # A place in the source is a tuple of the number of the file, the line, and the column.


class Names:
    """The names of files and functions for the numbers in ``.loc``.

    The names are at the end of a PTX text, so the parser reads them before the rest.
    """

    def __init__(self, all_tokens: list[Token]):
        self._files: dict[int, str] = {}
        self._labels: dict[str, int] = {}
        self._strings, self._left_bytes = b"", NAME_BYTES
        cursor = Cursor(all_tokens)
        while (token := cursor.next()).kind != "end":
            if token.text == ".file" and cursor.token.kind == "number":
                number = integer(cursor)
                self._files[number] = _path(cursor.expect_kind("string")[1:-1])
            elif token.text == ".section" and cursor.text == STRINGS:
                self._read_strings(cursor)

    def file(self, number: int) -> str:
        return self._files.get(number, f"file {number}")

    def function(self, label: str, offset: int, line: int) -> str | None:
        """Return the zero-terminated text at a label, or at the start of the section."""
        start = self._labels.get(label, len(self._strings)) + offset
        end = self._strings.find(b"\0", start)
        text = self._strings[start : end if end >= 0 else None]
        self._left_bytes -= len(text)
        if start < 0 or self._left_bytes < 0:
            raise ParseError(f"the names of inlined functions are missing, or longer than {NAME_BYTES} bytes", line)
        return text.decode(errors="replace") or None

    def _read_strings(self, cursor: Cursor) -> None:
        label = cursor.next().text
        labels = {label: 0}
        data = bytearray()
        cursor.expect("{")
        while not cursor.take("}"):
            if cursor.token.kind == "name":
                labels[cursor.next().text] = len(data)
                cursor.expect(":")
            elif cursor.take(".b8"):
                data.append(integer(cursor) & 0xFF)
                while cursor.take(","):
                    data += integers(cursor).astype(np.uint8).tobytes()
                    data.append(integer(cursor) & 0xFF)
            else:
                cursor.refuse("a byte")
        self._labels, self._strings = labels, bytes(data)


def _path(written: str) -> str:
    """Return a file name without escapes.

    Compilers escape non-ASCII characters, quotes and backslashes as in C, with octal bytes.
    """
    data = re.sub(rb"\\([0-7]{1,3}|.)", _unescaped, written.encode(), flags=re.DOTALL)
    return os.fsdecode(data)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    return bytes([int(escape[1], 8) % 256]) if escape[1].isdigit() else escape[1]


class Places:
    """The source places of the instructions of one function; each ``.loc`` applies until the next ``.loc``.

    ``inlined_at`` is the place of the call. If the place of the call is inlined too, the last ``.loc`` for this place
    contains its caller.
    """

    def __init__(self, names: Names, function: str):
        self._names = names
        self._function = function
        self._chains: dict[_At, tuple[Place, ...]] = {}
        self.here: tuple[Place, ...] = ()

    def read(self, cursor: Cursor) -> None:
        """Parse the rest of a ``.loc`` directive."""
        at = _at(cursor)
        function: str | None = self._function
        callers: tuple[Place, ...] = ()
        while cursor.take(","):
            word = cursor.expect_kind("name")
            if word == "function_name":
                label = cursor.next().text
                function = self._names.function(label, integer(cursor) if cursor.take("+") else 0, cursor.line)
            elif word == "inlined_at":
                caller = _at(cursor)
                callers = self._chains.get(caller) or (self._place(caller, self._function),)
            else:
                cursor.refuse("function_name or inlined_at")
        # Compilers use line 0, as in ".loc 1 0 3", for code without a line in the source.
        self.here = self._chains[at] = (self._place(at, function), *callers)

    def _place(self, at: _At, function: str | None) -> Place:
        return Place(self._names.file(at[0]), at[1], at[2], function)


def _at(cursor: Cursor) -> _At:
    return integer(cursor), integer(cursor), integer(cursor)
