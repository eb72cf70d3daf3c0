"""Findings that somebody has looked at, and does not want to see again: with a reason."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .._budget import SUPPRESSIONS_BYTES
from .._compile.plain_names import plain_name
from .._files import text_of_file
from .._given import shown
from ._findings import KINDS, Finding
from ._ptx import Place

__all__ = ["Suppression", "read_suppressions"]

_COLON = re.compile(r"(?<!:):(?!:)")  # alone: "::" is of a name of C++
_DRIVE = re.compile(r"[A-Za-z]")  # before a colon and a slash: of a path of Windows
_LINE = re.compile(r"[\d*?]+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """Findings of one kind, in one place, that are not reported.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    place : str
        ``file:line`` as in ``"gemm.cu:41"`` or ``"src/gemm.cu:41"``, or a function's name, as C++ or PTX has it; ``*``
        and ``?`` stand for any text and character. It is looked for along the chain of inlined calls of both places;
        where PTX has no line information, ``"PTX line 41"`` is a place.
    reason : str
        Why that is right.

    Raises
    ------
    ValueError
        If there is no such kind, or no reason.

    Examples
    --------
    >>> Suppression("race", "histogram.cu:1*", "counts may be lost, the sum is an estimate").kind
    'race'
    """

    kind: str
    place: str
    reason: str

    def __post_init__(self) -> None:
        """Neither may be left out."""
        if self.kind not in KINDS:
            raise ValueError(f"kind={shown(self.kind)}; it is one of {', '.join(KINDS)}")
        if not self.reason.strip():
            raise ValueError(f"the suppression of {self.kind} at {self.place} needs a reason: say why it is right")

    @classmethod
    def parse(cls, text: str) -> Suppression:
        """Of ``kind:place:reason``, as the command line takes it.

        Raises
        ------
        ValueError
            If that is not its form; or as the constructor.

        Examples
        --------
        >>> Suppression.parse("race:histogram.cu:41:counts may be lost: it is an estimate")
        Suppression(kind='race', place='histogram.cu:41', reason='counts may be lost: it is an estimate')
        """
        kind, place, reason = _parts(text)
        if not kind or not place:
            raise ValueError(f"{shown(text)} is no kind:place:reason, such as race:gemm.cu:41:the sum is an estimate")
        return cls(kind, place, reason)

    def covers(self, finding: Finding) -> bool:
        """Whether it is about a finding."""
        pattern = self.place.replace("\\", "/")
        return finding.kind == self.kind and any(fnmatchcase(name, pattern) for name in _names(finding, pattern))


def _parts(text: str) -> tuple[str, str, str]:
    """Kind, place and reason; without all three, no place. Each colon is looked at once."""
    if len(parts := _COLON.split(text, 2)) < 3:
        return text, "", ""
    kind, place, reason = (part.strip() for part in parts)
    if _DRIVE.fullmatch(place) and reason[:1] in ("\\", "/"):
        file, _, reason = reason.partition(":")
        place, reason = f"{place}:{file.strip()}", reason.strip()
    line, _, after = reason.partition(":")
    if _LINE.fullmatch(line.strip()):  # the end of a place; without more, there is no reason
        place, reason = f"{place}:{line.strip()}", after.strip()
    return kind, place, reason


def _names(finding: Finding, pattern: str) -> Iterator[str]:
    """What a place may be called: as much of its path as the pattern has, and its function, mangled and plain."""
    for place in (*finding.source, *finding.other):
        yield f"{_end(place, pattern.count('/'))}:{place.line}"
        if place.function:
            yield from (place.function, plain_name(place.function))
    yield from (f"PTX line {line}" for line in (finding.ptx_line, finding.other_ptx_line) if line)


def _end(place: Place, folders: int) -> str:
    return "/".join(place.file.replace("\\", "/").split("/")[-1 - folders :])


def read_suppressions(path: str | os.PathLike[str]) -> tuple[Suppression, ...]:
    """Those of a file: each a line ``kind:place:reason``; empty lines and what begins with ``#`` are let pass.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    tuple of Suppression

    Raises
    ------
    OSError
        If it cannot be read.
    ValueError
        If a line has another form, which the error names, or the file is too large.
    """
    found = []
    for number, line in enumerate(text_of_file(path, SUPPRESSIONS_BYTES).splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                found.append(Suppression.parse(line))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return tuple(found)
