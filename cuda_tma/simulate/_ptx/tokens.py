"""The tokens of a PTX text, and a cursor that moves over them (PTX ISA, "Lexical Elements")."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, NoReturn

from ..._budget import NESTING, TOKENS
from .._errors import ParseError

# An opcode with its modifiers is one token, and so are `%tid.x`, a directive such as `.reg`, and a type such as `.b32`.
# A long run of integers and commas is one token, because an initializer may contain a hundred thousand integers.
_TOKEN = re.compile(
    r"""(?P<integers>(?<=[{,])\s*(?:(?:0|[1-9]\d{0,14})\s*,\s*){16,})
    |(?P<space>[ \t\r\f]+|//[^\n]*)
    |(?P<newline>\n)
    |(?P<comment>/\*.*?\*/)
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<number>0[fF][0-9a-fA-F]{8}\b|0[dD][0-9a-fA-F]{16}\b|0[xX][0-9a-fA-F]+U?|0[bB][01]+U?
        |\d+\.(?:\d+|(?![A-Za-z_]))(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\d+U?)
    |(?P<name>[A-Za-z_$%][\w$]*(?:\.\w+(?:::\w+)*)*)
    |(?P<dotted>\.\w+(?:::\w+)*)
    |(?P<mark><<|>>|[\[\]{}()<>,;:|!@+\-=~*/&^?])""",
    re.VERBOSE | re.DOTALL,
)


Check = Callable[[], None]
_EVERY = 4096  # The parser checks the time limit after every 4,096 tokens.


def not_at_all() -> None:
    """Check nothing, because the parser has no time limit."""


class Token(NamedTuple):
    kind: str  # The kind of a token is "string", "number", "integers", "name", "dotted", "mark", "body" or "end".
    text: str
    line: int


def tokens(text: str, check: Check, line: int = 1) -> list[Token]:
    """Return all tokens of a PTX text whose first line has number `line`; the last token has the kind "end"."""
    found: list[Token] = []
    at = 0
    match = _TOKEN.match
    while at < len(text):
        token = match(text, at)
        if token is None:
            raise ParseError(f"{text[at : at + 20].splitlines()[0]!r} is not PTX", line)
        at = token.end()
        kind = token.lastgroup
        if kind == "newline":
            line += 1
        elif kind == "comment":
            line += token[0].count("\n")
        elif kind != "space":
            found.append(Token(str(kind), token[0], line))
            if kind == "integers":
                line += token[0].count("\n")
            if not len(found) % _EVERY:
                check()
                if len(found) > TOKENS:
                    raise ParseError(f"the text has more than {TOKENS} tokens", line)
    found.append(Token("end", "", line))
    return found


class Cursor:
    """The position of a parser in a list of tokens.

    Attributes
    ----------
    check : callable
        A function that raises an exception at the time limit of the parser.
    """

    __slots__ = ("_at", "_depth", "_tokens", "check")

    def __init__(self, all_tokens: list[Token], check: Check = not_at_all):
        self._tokens = all_tokens
        self.check = check
        self._at = self._depth = 0

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Limit the depth of nested brackets, braces and signs."""
        self._depth += 1
        if self._depth > NESTING:
            raise ParseError(f"brackets, braces and signs are nested more than {NESTING} deep", self.line)
        yield
        self._depth -= 1

    @property
    def token(self) -> Token:
        return self._tokens[self._at]

    @property
    def text(self) -> str:
        return self._tokens[self._at].text

    @property
    def line(self) -> int:
        return self._tokens[self._at].line

    def next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def take(self, text: str) -> bool:
        """Skip the present token if it has a given text, and return whether it did."""
        if self._tokens[self._at].text != text or self._tokens[self._at].kind in ("string", "end"):
            return False
        self._at += 1
        return True

    def expect(self, text: str) -> None:
        if not self.take(text):
            self.refuse(repr(text))

    def expect_kind(self, kind: str) -> str:
        if self.token.kind != kind:
            self.refuse(f"a {kind}")
        return self.next().text

    def until(self, *ends: str) -> list[Token]:
        """Return the tokens before the first of some marks that is outside of brackets, and skip this mark."""
        start, depth = self._at, 0
        while (token := self.token).text not in ends or depth or token.kind != "mark":
            if token.kind == "end":
                self.refuse(" or ".join(map(repr, ends)))
            if token.kind == "mark":
                depth += (token.text in "([{") - (token.text in ")]}")
                if depth < 0:
                    self.refuse(" or ".join(map(repr, ends)))
            self._at += 1
        self._at += 1
        return self._tokens[start : self._at - 1]

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def refuse(self, expected: str) -> NoReturn:
        found = repr(self.text) if self.token.kind != "end" else "the end"
        raise ParseError(f"found {found} where {expected} was expected", self.line)
