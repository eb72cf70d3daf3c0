"""A parser of the C++ elements that mutants need, which are comments, strings, brackets and statements."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*', re.S | re.M)
_OPEN, _CLOSE = "([{", ")]}"


@dataclass(frozen=True)
class Statement:
    """The characters `start` to `end` of a text. A simple statement ends with a semicolon, and is not a loop or
    branch."""

    start: int
    end: int
    is_simple: bool


def masked(text: str) -> str:
    """Return the text with blanks in place of comments, strings and preprocessor lines. No position of the text
    changes.
    """
    return _COMMENT_OR_STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def strings_of(text: str) -> Iterator[tuple[int, int]]:
    """Yield each text between double quotes."""
    for match in _COMMENT_OR_STRING.finditer(text):
        if match[0].startswith('"'):
            yield match.start() + 1, match.end() - 1


def closing(code: str, at: int) -> int:
    """Return the position of the bracket that closes the bracket at a position, or -1."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] in _OPEN) - (code[place] in _CLOSE)
        if depth == 0:
            return place
    return -1


def arguments_of(code: str, at: int) -> list[tuple[int, int]] | None:
    """Return the arguments in the parentheses at a position."""
    end = closing(code, at)
    if end < 0:
        return None
    spans, start, depth = [], at + 1, 0
    for place in range(at + 1, end + 1):
        if depth == 0 and code[place] in ",)":
            spans.append((start, place))
            start = place + 1
        else:
            depth += (code[place] in _OPEN) - (code[place] in _CLOSE)
    trimmed = [_trimmed(code, *span) for span in spans]
    return [span for span in trimmed if span[0] < span[1]]


def _trimmed(code: str, start: int, end: int) -> tuple[int, int]:
    piece = code[start:end]
    return start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())


def call_at(statement: str) -> str | None:
    """Return the function of a statement that is one call, such as ``wait`` for ``full[i].wait(0);``."""
    match = re.match(r"(?:[\w:]+(?:\[[^\]]*\]|\([^()]*\))?(?:\.|->))*(\w+)(?:<[^;]*>)?\(", statement)
    if match is None:
        return None
    end = closing(statement, match.end() - 1)
    return match[1] if statement[end + 1 :].strip() == ";" else None


# ---- statements ----


def blocks_of(code: str) -> list[list[Statement]]:
    """Return the statements of each block, which belongs to a function, a loop, a branch or a lambda."""
    starts = re.finditer(
        r"(?:\)|\]|\bconst|\belse|\bdo|\bmutable)\s*\{|\)\s*:[^;{}]*(?:\{[^{}]*\}|\([^()]*\))\s*\{", code
    )
    return [_statements(code, match.end()) for match in starts] + _single(code)


def _single(code: str) -> list[list[Statement]]:
    """Return the statements that follow a condition without braces, each as a block."""
    found = []
    for match in re.finditer(r"\b(?:if(?: constexpr)?|for|while) *\(", code):
        end = closing(code, match.end() - 1)
        if end > 0 and (place := _skipped(code, end + 1)) < len(code) and code[place] != "{":
            found.append([_statement(code, place)])
    return found


def _skipped(code: str, at: int) -> int:
    while at < len(code) and code[at].isspace():
        at += 1
    return at


def _statements(code: str, at: int) -> list[Statement]:
    found = []
    while (at := _skipped(code, at)) < len(code) and code[at] != "}":
        found.append(_statement(code, at))
        at = max(found[-1].end, at + 1)
    return found


def _statement(code: str, at: int) -> Statement:
    if code[at] == "{":
        return Statement(at, closing(code, at) + 1, False)
    if head := re.compile(r"(if(?: constexpr)?|for|while|switch) *(?=\()").match(code, at):
        end = _statement(code, _skipped(code, closing(code, head.end()) + 1)).end
        following = _skipped(code, end)
        if head[1].startswith("if") and re.compile(r"else\b").match(code, following):
            end = _statement(code, _skipped(code, following + 4)).end
        return Statement(at, end, False)
    if re.compile(r"do\b").match(code, at):
        end = _statement(code, _skipped(code, at + 2)).end
        return Statement(at, code.index(";", end) + 1, False)
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] in _OPEN) - (code[place] in _CLOSE)
        if depth < 0:
            return Statement(at, place, False)
        if depth == 0 and code[place] == ";":
            return Statement(at, place + 1, True)
    return Statement(at, len(code), False)
