"""The search for the bodies of functions in a PTX text, so that a body is parsed only when a kernel needs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

from .tokens import Check, Token, tokens

__all__ = ["BODY", "tokens_outside", "with_places_of_statements"]

BODY = "body"  # A token of kind "body" contains the text of a function from its opening brace to its closing brace.
_OUTSIDE = re.compile(r'"|//|/\*|\.(?:entry|func|pragma)\b|[{;]')
_INSIDE = re.compile(r'"|//|/\*|[{}]')
_EVERY = 4096  # The search checks the time limit after every 4,096 braces, strings and comments.
# The compiler NVVM marks inline assembly by a comment before it and a comment after it.
_ASM_BEGIN, _ASM_END = "// begin inline asm", "// end inline asm"
_LOC = re.compile(r"^[ \t]*\.loc\b[^\n]*", re.MULTILINE)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


def tokens_outside(text: str, check: Check) -> list[Token]:
    """Return the tokens of a PTX text, where one token contains the whole body of a function."""
    found: list[Token] = []
    at, line = 0, 1
    for start, end in _bodies(text, check):
        found += tokens(text[at:start], check, line)[:-1]
        line += text.count("\n", at, start)
        found.append(Token(BODY, text[start:end], line))
        at, line = end, line + text.count("\n", start, end)
    return found + tokens(text[at:], check, line)


def _bodies(text: str, check: Check) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each function body that has a closing brace."""
    at, is_function, is_pragma = 0, False, False
    for number in count(1):
        if (found := _OUTSIDE.search(text, at)) is None:
            return
        if not number % _EVERY:
            check()
        at, mark = _behind(text, found), found[0]
        if mark == ".pragma":
            # The directive .pragma ends in a semicolon, and may be between the head and the body of a function.
            is_pragma = True
        elif mark.startswith("."):
            is_function = True
        elif mark == ";":
            is_function, is_pragma = is_function and is_pragma, False
        elif mark == "{" and is_function:
            if (end := _end(text, at, check)) is None:
                return
            yield found.start(), end
            at, is_function = end, False


def _end(text: str, at: int, check: Check) -> int | None:
    """Return the end of the body whose opening brace ends at `at`; None if the text has no closing brace."""
    depth = 1
    for number in count(1):
        if (found := _INSIDE.search(text, at)) is None:
            return None
        if not number % _EVERY:
            check()
        at, mark = _behind(text, found), found[0]
        depth += (mark == "{") - (mark == "}")
        if not depth:
            return at
    return None


def _behind(text: str, found: re.Match[str]) -> int:
    """Return the end of a mark, a string or a comment; the end of the text if a string or comment has no end."""
    mark, end = found[0], len(text)
    if mark == '"':
        string = _STRING.match(text, found.start())
        return string.end() if string is not None else end
    if mark in ("//", "/*"):
        stop = "\n" if mark == "//" else "*/"
        at = text.find(stop, found.end())
        return at + len(stop) if at >= 0 else end
    return found.end()


def with_places_of_statements(body: str) -> str:
    """Remove each ``.loc`` inside inline asm, so that its instructions have the place of the asm statement.

    The compiler of CuTe DSL adds the line within the asm to the line of the statement (observed with 4.8.1).
    """
    outside, *parts = body.split(_ASM_BEGIN)
    kept = [outside]
    for part in parts:
        asm, end, rest = part.partition(_ASM_END)
        kept += [_ASM_BEGIN, _LOC.sub("", asm) if end else asm, end, rest]
    return "".join(kept)
