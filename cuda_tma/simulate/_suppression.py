"""Suppressions of reviewed findings, each with a reason."""

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

_COLON = re.compile(r"(?<!:):(?!:)")  # a single one: "::" belongs to a C++ name
_DRIVE = re.compile(r"[A-Za-z]")  # before a colon and a slash: the drive of a Windows path
_LINE = re.compile(r"[\d*?]+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """Findings of one kind, in one place, that are not reported.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    place : str
        ``file:line`` as in ``"gemm.cu:41"`` or ``"src/gemm.cu:41"``, or a function's name in C++ or PTX. ``*`` and
        ``?`` match any text and character. It is compared with the chain of inlined calls of both places; if the PTX
        has no line information, ``"PTX line 41"`` is a place.
    reason : str
        The reason why the finding is acceptable.

    Raises
    ------
    ValueError
        If the kind does not exist, or the reason is missing.

    Examples
    --------
    >>> Suppression("race", "histogram.cu:1*", "counts may be lost, the sum is an estimate").kind
    'race'
    """

    kind: str
    place: str
    reason: str

    def __post_init__(self) -> None:
        """Require a kind and a reason."""
        if self.kind not in KINDS:
            raise ValueError(f"kind={shown(self.kind)}; it is one of {', '.join(KINDS)}")
        if not self.reason.strip():
            raise ValueError(f"the suppression of {self.kind} at {self.place} needs a reason: add why it is acceptable")

    @classmethod
    def parse(cls, text: str) -> Suppression:
        """Parse ``kind:place:reason``, the form of the command line.

        Raises
        ------
        ValueError
            If the text has another form; otherwise as the constructor.

        Examples
        --------
        >>> Suppression.parse("race:histogram.cu:41:counts may be lost: it is an estimate")
        Suppression(kind='race', place='histogram.cu:41', reason='counts may be lost: it is an estimate')
        """
        kind, place, reason = _parts(text)
        if not kind or not place:
            raise ValueError(f"{shown(text)} is not kind:place:reason, such as race:gemm.cu:41:the sum is an estimate")
        return cls(kind, place, reason)

    def covers(self, finding: Finding) -> bool:
        """Return whether the suppression applies to a finding."""
        pattern = self.place.replace("\\", "/")
        return finding.kind == self.kind and any(fnmatchcase(name, pattern) for name in _names(finding, pattern))


def _parts(text: str) -> tuple[str, str, str]:
    """Return kind, place and reason; if one is missing, no place. Each colon is examined once."""
    if len(parts := _COLON.split(text, 2)) < 3:
        return text, "", ""
    kind, place, reason = (part.strip() for part in parts)
    if _DRIVE.fullmatch(place) and reason[:1] in ("\\", "/"):
        file, _, reason = reason.partition(":")
        place, reason = f"{place}:{file.strip()}", reason.strip()
    line, _, after = reason.partition(":")
    if _LINE.fullmatch(line.strip()):  # the end of a place; without more text, the reason is missing
        place, reason = f"{place}:{line.strip()}", after.strip()
    return kind, place, reason


def _names(finding: Finding, pattern: str) -> Iterator[str]:
    """Yield the names of a place: as much of its path as the pattern has, and its function, mangled and plain."""
    for place in (*finding.source, *finding.other):
        yield f"{_end(place, pattern.count('/'))}:{place.line}"
        if place.function:
            yield from (place.function, plain_name(place.function))
    yield from (f"PTX line {line}" for line in (finding.ptx_line, finding.other_ptx_line) if line)


def _end(place: Place, folders: int) -> str:
    return "/".join(place.file.replace("\\", "/").split("/")[-1 - folders :])


def read_suppressions(path: str | os.PathLike[str]) -> tuple[Suppression, ...]:
    """Return the suppressions of a file: ``kind:place:reason`` on each line, except empty lines and ``#`` comments.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    tuple of Suppression

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If a line has another form, which the error shows, or the file is too large.
    """
    found = []
    for number, line in enumerate(text_of_file(path, SUPPRESSIONS_BYTES).splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                found.append(Suppression.parse(line))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return tuple(found)
