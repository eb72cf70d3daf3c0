"""The text of a finding for users, which contains the event, the marked source lines, the rule and the remedy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .._files import shown_path
from ..simulate._places import by_way_of, statements

if TYPE_CHECKING:
    from ..simulate import Finding, Place
    from .sources import Sources

__all__ = ["Styled", "column_of", "described", "statements"]

Styled = tuple[str, str]  # A Styled pair consists of a piece of text, and of the name of its style in the library rich.

_MOST_COLUMNS = 160  # A source line is cut to 160 columns, because generated lines may be very long.
_STYLES = {"error": "bold red", "advice": "bold yellow"}


def described(finding: Finding, sources: Sources) -> list[Styled]:
    """Return the text of a finding in styled pieces, the last of which ends with a newline.

    Parameters
    ----------
    finding : Finding
    sources : Sources
        The files whose lines may be shown. For PTX without line information, these are the lines of the PTX text.
    """
    style = _STYLES[finding.severity]
    pieces: list[Styled] = [(f"{finding.severity}[{finding.kind}]", style), (f": {finding.happened}\n", "bold")]
    pieces += _excerpt(finding.source, finding.ptx_line, sources, style)
    if finding.other or finding.other_ptx_line:
        pieces.append(("  the other access:\n", ""))
        pieces += _excerpt(finding.other, finding.other_ptx_line, sources, "bold cyan")
    for what, places in finding.related:
        pieces.append((f"  {what}:\n", ""))
        pieces += _excerpt(places, 0, sources, "bold cyan")
    if finding.rule:
        pieces += [("  rule: ", "bold"), (f"{finding.rule}\n", "")]
    pieces += [("  remedy: ", "bold green"), (f"{finding.remedy or finding.general_remedy}\n", "")]
    if where := _where(finding):
        pieces += [("  where: ", "bold"), (f"{where}\n", "")]
    return pieces


def _where(finding: Finding) -> str:
    parts = []
    for name, values in (("block", finding.blocks), ("thread", finding.threads)):
        if values:
            parts.append(f"{name} {values[0]}" + (f" and {len(values) - 1} more" if len(values) > 1 else ""))
    if finding.count > 1:
        parts.append(f"{finding.count} times")
    return ", ".join(parts)


def _excerpt(places: Sequence[Place], ptx_line: int, sources: Sources, style: str) -> Iterator[Styled]:
    own, inner = statements(places, sources.generated)
    written = [place for place in inner if place.file in sources.generated]
    by_way = by_way_of([place for place in inner if place not in written])
    for number, place in enumerate(own):
        yield from _line(place, by_way if number == 0 else ", which calls that", sources, style)
    for place in written:
        yield from _line(place, ", which a compiler generated", sources, style)
    if not ptx_line or any(sources.lines(place.file) for place in (*own, *written)):
        return
    file = sources.file
    if file.suffix == ".ptx":  # A .ptx file itself contains the line of the finding.
        yield f"  --> {shown_path(str(file))}:{ptx_line}\n", "blue"
        lines = sources.lines(str(file))
        if ptx_line <= len(lines):
            yield f"{ptx_line:5} | ", "blue"
            yield f"{_cut(lines[ptx_line - 1].strip(), 0)[0]}\n", style
    elif not own:
        yield f"  --> {shown_path(str(file))}, line {ptx_line} of its PTX\n", "blue"


def _line(place: Place, words: str, sources: Sources, style: str) -> Iterator[Styled]:
    column = f":{place.column}" if place.column else ""
    yield f"  --> {shown_path(place.file)}:{place.line}{column}{words}\n", "blue"
    lines = sources.lines(place.file)
    if 0 < place.line <= len(lines):
        yield from _marked(lines[place.line - 1], place, style)


def _marked(line: str, place: Place, style: str) -> Iterator[Styled]:
    """Yield a source line, and a second line with a mark at the column."""
    at = column_of(line, place.column) - 1
    before = line[:at].expandtabs(4)
    text, start = _cut(before + line[at:].expandtabs(4), len(before))
    yield f"{place.line:5} | ", "blue"
    yield f"{text}\n", ""
    yield "      | ", "blue"
    yield f"{' ' * start}^\n", style


def _cut(text: str, at: int) -> tuple[str, int]:
    """Return at most `_MOST_COLUMNS` columns that include the marked column, and the position of this column."""
    first = max(0, at - _MOST_COLUMNS // 2) if len(text) > _MOST_COLUMNS else 0
    head = "..." if first else ""
    tail = "..." if len(text) > first + _MOST_COLUMNS else ""
    return f"{head}{text[first : first + _MOST_COLUMNS]}{tail}", at - first + len(head)


def column_of(line: str, column: int) -> int:
    """Return a column counted in characters from 1, because compilers count bytes."""
    return len(line.encode()[: max(column - 1, 0)].decode(errors="ignore")) + 1
