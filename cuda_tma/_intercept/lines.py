"""The translation from lines of generated C++ to lines of the user's program."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from .._budget import SOURCE_BYTES
from .._files import text_of_file
from ..simulate._findings import Finding
from ..simulate._places import is_library, statements
from ..simulate._ptx import Place
from ..simulate._report import Report

__all__ = ["Lines", "lines_of", "with_lines"]

_FILE = re.compile(r'^[ \t]*\.file[ \t]+\d{1,10}[ \t]+"([^"\n]{1,4096})"', re.MULTILINE)
# The search for a kernel's source in a Python program omits sources of fewer than 20 characters.
_LEAST_CHARACTERS = 20


@dataclass(frozen=True, slots=True)
class Lines:
    """The sources of a kernel, and the origin of each source.

    Attributes
    ----------
    sources : mapping of str to str
        The texts of the sources by their names in the PTX.
    generated : tuple of str
        The names of the texts that a compiler generated.
    embedded : mapping of str to Place
        The names of the texts that are string literals of the program, and the place of each literal's first line.
    """

    sources: Mapping[str, str] = field(default_factory=dict)
    generated: tuple[str, ...] = ()
    embedded: Mapping[str, Place] = field(default_factory=dict)


def lines_of(
    ptx: str, sources: Mapping[str, str], generated: Collection[str], text: str, launched_at: Place | None
) -> Lines:
    """Return the sources of a kernel.

    Parameters
    ----------
    ptx : str
    sources, generated
        The sources of an adapter. The names of the sources may lack a folder that the names in the PTX contain.
    text : str
        The C++ text of the kernel, or an empty string if the text is not known.
    launched_at : Place or None
        The statement that launched the kernel. The function searches the file of the statement for `text`.
    """
    files = _files(ptx)
    names = {name: _name_in(files, name) for name in sources}
    known = {names[name]: content for name, content in sources.items()}
    embedded = {}
    own = next((file for file in files if not is_library(file) and not os.path.exists(file)), None)
    if text and not known and own is not None:
        known[own] = text
        line = _line_of(text, launched_at.file) if launched_at is not None else 0
        if line and launched_at is not None:
            embedded[own] = Place(launched_at.file, line, 0)
    return Lines(known, tuple(names[name] for name in generated if name in names), embedded)


@lru_cache(maxsize=64)
def _files(ptx: str) -> tuple[str, ...]:
    """Return the names of the files in a PTX text."""
    return tuple(dict.fromkeys(_FILE.findall(ptx)))


def _name_in(files: Collection[str], name: str) -> str:
    """Return the name of a file in the PTX."""
    ends = [file for file in files if Path(file).name == Path(name).name]
    return name if name in files or len(ends) != 1 else ends[0]


@lru_cache(maxsize=64)
def _line_of(text: str, program: str) -> int:
    """Return the line of a program at which a literal with this text begins, or 0 if no literal or several literals
    have the text.
    """
    try:
        whole = text_of_file(program, SOURCE_BYTES, "replace")
    except (OSError, ValueError):
        return 0
    if len(text.strip()) < _LEAST_CHARACTERS or whole.count(text) != 1:
        return 0
    return whole.count("\n", 0, whole.index(text)) + 1


# ---- reports ----


def with_lines(report: Report, lines: Lines, launched_at: Place | None) -> Report:
    """Return a report in which places in the program replace the places in embedded sources.

    The outermost call of a place in generated code is the statement that launched the kernel.
    """
    if not lines.embedded and not (lines.generated and launched_at is not None):
        return report

    def chain(places: tuple[Place, ...]) -> tuple[Place, ...]:
        moved = tuple(_moved(place, lines.embedded) for place in places)
        own, _ = statements(moved, lines.generated)
        if launched_at is None or not own or own[-1].file not in lines.generated:
            return moved
        return (*moved, launched_at)

    def finding(given: Finding) -> Finding:
        related = tuple((words, chain(places)) for words, places in given.related)
        texts: dict[str, Any] = {
            name: _reworded(getattr(given, name), lines.embedded) for name in ("message", "rule", "remedy")
        }
        return replace(given, source=chain(given.source), other=chain(given.other), related=related, **texts)

    return replace(report, findings=tuple(map(finding, report.findings)))


def _moved(place: Place, embedded: Mapping[str, Place]) -> Place:
    first = embedded.get(place.file)
    return place if first is None else replace(place, file=first.file, line=first.line + place.line - 1)


def _reworded(text: str, embedded: Mapping[str, Place]) -> str:
    """Replace each line of an embedded source in a text by the line of the program."""
    for name, first in embedded.items():
        here, there = re.escape(Path(name).name), Path(first.file).name
        text = re.sub(
            rf"(?<![\w./-]){here}:(\d{{1,9}})\b",
            lambda found, first=first, there=there: f"{there}:{first.line + int(found[1]) - 1}",  # type: ignore[misc]
            text,
        )
    return text
