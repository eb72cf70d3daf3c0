"""The source lines of a finding on a page: the lines around the places in each file, with marks and labels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, NamedTuple

from .._files import shown_path
from .._given import printable
from .excerpts import statements

if TYPE_CHECKING:
    from ..simulate import Finding, Place
    from .sources import Sources

__all__ = ["excerpts", "plain"]

_CONTEXT = 2  # An excerpt contains 2 lines before and after each marked line.
_MOST_COLUMNS = 200


class _Mark(NamedTuple):
    """A marked line of a file, with its label; the statement of the finding itself has no label."""

    file: str
    line: int
    words: str


def plain(words: str) -> str:
    """Escape the special characters of HTML in a text, and the braces, which have a meaning in templates."""
    return escape(printable(words)).replace("{{", "&#123;&#123;")


def excerpts(finding: Finding, sources: Sources) -> Iterator[str]:
    """Yield a figure for each file that the finding names; the file of the finding's own statement is first."""
    marks = [*_marks("", finding.source, finding.ptx_line, sources)]
    marks += _marks("the other access", finding.other, finding.other_ptx_line, sources)
    for words, places in finding.related:
        marks += _marks(words, places, 0, sources)
    for file in dict.fromkeys(mark.file for mark in marks):
        yield from _figure(file, [mark for mark in marks if mark.file == file], sources.lines(file))


def _marks(words: str, places: Sequence[Place], ptx_line: int, sources: Sources) -> Iterator[_Mark]:
    own, inner = statements(places, sources.generated)
    written = [place for place in inner if place.file in sources.generated]
    for number, place in enumerate(own):
        yield _Mark(place.file, place.line, words if number == 0 else "the call")
    for place in written:
        yield _Mark(place.file, place.line, words)
    if ptx_line and not any(sources.lines(place.file) for place in (*own, *written)):
        yield _Mark(str(sources.file), ptx_line, words)


def _figure(file: str, marks: Sequence[_Mark], lines: Sequence[str]) -> Iterator[str]:
    name = shown_path(file)
    if lines:
        yield f"<figure><figcaption>{plain(name)}:{marks[0].line}</figcaption>"
        yield f'<pre tabindex="0">{"".join(_rows(marks, lines))}</pre></figure>'
        return
    for mark in marks:
        yield f"<figure><figcaption>{plain(f'{mark.words}: ' if mark.words else '')}{plain(name)}:{mark.line}"
        yield "</figcaption></figure>"


def _rows(marks: Sequence[_Mark], lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines around the marks, with a gap in place of omitted lines."""
    chosen = sorted(
        {
            number
            for mark in marks
            for number in range(mark.line - _CONTEXT, mark.line + _CONTEXT + 1)
            if 0 < number <= len(lines)
        }
    )
    for before, number in zip([*chosen[:1], *chosen], chosen, strict=False):
        if number > before + 1:
            yield "<span><i>...</i></span>"
        words = [mark.words for mark in marks if mark.line == number]
        class_ = "" if not words else ' class="hit"' if "" in words else ' class="other"'
        text = plain(lines[number - 1].expandtabs(4)[:_MOST_COLUMNS])
        yield f"<span{class_}><i>{number}</i>{text}</span>"
        if said := "; ".join(dict.fromkeys(filter(None, words))):
            indent = len(lines[number - 1].expandtabs(4)) - len(lines[number - 1].expandtabs(4).lstrip())
            yield f"<span{class_}><i></i>{' ' * min(indent, 80)}<b>^ {plain(said)}</b></span>"
