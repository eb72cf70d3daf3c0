"""The output of commands: JSON, tables and errors, for any kind of standard output and standard error."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from .._budget import COMPLAINT_CHARACTERS
from .._given import printable

__all__ = ["complain", "escape_unprintable", "print_json", "print_styled", "print_table", "silence"]


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def complain(text: str) -> None:
    """Print an error on standard error, if the stream is open."""
    if sys.stderr is None:  # A closed stream is None, for which print() would write to standard output.
        return
    try:
        print(f"cuda-tma: {printable(_cut(text))}", file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def _cut(text: str) -> str:
    more = len(text) - COMPLAINT_CHARACTERS
    return f"{text[:COMPLAINT_CHARACTERS]}... and {more} more characters" if more > 0 else text


def silence(stream: TextIO | None) -> None:
    """Discard the rest of a stream's buffer, because Python would print an error for the buffer at exit."""
    if stream is not None:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def escape_unprintable() -> None:
    """Write a character as an escape if the encoding of standard output lacks it, for example in a file name."""
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors="backslashreplace")


def print_styled(pieces: Iterable[tuple[str, str]]) -> None:
    """Print pieces of text in styles of rich, with colors if the output is a terminal and rich is installed."""
    pieces = [(printable(text), style) for text, style in pieces]
    try:
        if sys.stdout is None or not sys.stdout.isatty():
            raise ImportError
        from rich.console import Console
        from rich.text import Text
    except ImportError:
        print("".join(text for text, _ in pieces), end="")
        return
    Console(highlight=False, soft_wrap=True).print(Text.assemble(*pieces), end="")


def print_table(title: str, head: Sequence[str], rows: Iterable[Sequence[str]], *, prose: bool = False) -> None:
    """Print a table with rich if it is installed and the table fits the terminal, otherwise in plain columns.

    Only the last column is wrapped, between words, and only if `prose` is true. A user cannot copy a path that is
    wrapped. A table that does not fit has plain columns, because a user can still copy a line that the terminal wraps.
    """
    rows = list(rows)
    if not (sys.stdout is not None and sys.stdout.isatty() and _print_by_rich(title, head, rows, prose)):
        _print_plain(title, head, rows)


def _print_by_rich(title: str, head: Sequence[str], rows: list[Sequence[str]], prose: bool) -> bool:
    """Print a table with rich, and return whether that was possible."""
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    console = Console()
    widths = _widths(head, rows)
    if prose:
        widths[-1] = max(len(word) for row in (head, *rows) for word in row[-1].split())
    # Each column of a table needs a vertical line and two spaces.
    if sum(widths) + 3 * len(widths) + 1 > console.width:
        return False
    # The console prints a Text object unchanged, even if it contains [brackets].
    table = Table(title=Text(title) if title else None)
    for name in head:
        table.add_column(name, no_wrap=not (prose and name == head[-1]))
    for row in rows:
        table.add_row(*map(Text, row))
    console.print(table)
    return True


def _print_plain(title: str, head: Sequence[str], rows: list[Sequence[str]]) -> None:
    if title:
        print(title)
    widths = _widths(head, rows)
    for row in (head, *rows):
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _widths(head: Sequence[str], rows: list[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(head, *rows, strict=True)]
