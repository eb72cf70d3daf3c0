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

_COLON = re.compile(r"(?<!:):(?!:)")  # A single colon separates the parts; "::" is a part of a C++ name.
_DRIVE = re.compile(r"[A-Za-z]")  # A letter before a colon and a slash is the drive letter of a Windows path.
_LINE = re.compile(r"[\d*?]+")


@dataclass(frozen=True, slots=True)
class Suppression:
    """A rule by which the report omits the findings of one kind at one place.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    place : str
        ``file:line`` as in ``"gemm.cu:41"`` or ``"src/gemm.cu:41"``, or a function's name in C++ or PTX. ``*`` and
        ``?`` match any text and any character. A finding matches if one of its statements, or an inlined call that
        leads to it, matches the pattern. If the PTX has no line information, ``"PTX line 41"`` is a place.
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
        """Check that the kind exists and that there is a reason."""
        if self.kind not in KINDS:
            raise ValueError(f"kind={shown(self.kind)}; pass one of {', '.join(KINDS)}")
        if not self.reason.strip():
            raise ValueError(
                f"the suppression of {self.kind} at {self.place} has no reason; add the reason why the finding is "
                "acceptable"
            )

    @classmethod
    def parse(cls, text: str) -> Suppression:
        """Parse ``kind:place:reason``, the form of the command line.

        Raises
        ------
        ValueError
            If the text does not have this form, or the constructor raises it.

        Examples
        --------
        >>> Suppression.parse("race:histogram.cu:41:counts may be lost: it is an estimate")
        Suppression(kind='race', place='histogram.cu:41', reason='counts may be lost: it is an estimate')
        """
        kind, place, reason = _parts(text)
        if not kind or not place:
            raise ValueError(
                f"{shown(text)} does not have the form kind:place:reason; write for example race:gemm.cu:41:the sum is "
                "an estimate"
            )
        return cls(kind, place, reason)

    def covers(self, finding: Finding) -> bool:
        """Return whether the suppression applies to a finding."""
        pattern = self.place.replace("\\", "/")
        return finding.kind == self.kind and any(fnmatchcase(name, pattern) for name in _names(finding, pattern))


def _parts(text: str) -> tuple[str, str, str]:
    """Return the kind, the place and the reason in a text; the place is empty if a part is missing."""
    if len(parts := _COLON.split(text, 2)) < 3:
        return text, "", ""
    kind, place, reason = (part.strip() for part in parts)
    if _DRIVE.fullmatch(place) and reason[:1] in ("\\", "/"):
        file, _, reason = reason.partition(":")
        place, reason = f"{place}:{file.strip()}", reason.strip()
    line, _, after = reason.partition(":")
    # A place ends in its line number, and the reason of a suppression follows the place.
    if _LINE.fullmatch(line.strip()):
        place, reason = f"{place}:{line.strip()}", after.strip()
    return kind, place, reason


def _names(finding: Finding, pattern: str) -> Iterator[str]:
    """Yield each place of a finding as ``file:line``, and the mangled and plain names of its functions.

    Each path has the same number of folders as the pattern.
    """
    for place in (*finding.source, *finding.other):
        yield f"{_end(place, pattern.count('/'))}:{place.line}"
        if place.function:
            yield from (place.function, plain_name(place.function))
    yield from (f"PTX line {line}" for line in (finding.ptx_line, finding.other_ptx_line) if line)


def _end(place: Place, folders: int) -> str:
    return "/".join(place.file.replace("\\", "/").split("/")[-1 - folders :])


def read_suppressions(path: str | os.PathLike[str]) -> tuple[Suppression, ...]:
    """Return the suppressions in a file of lines ``kind:place:reason``, empty lines and ``#`` comments.

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
        If a line is not ``kind:place:reason``, or the file is too large; the error contains the line.
    """
    found = []
    for number, line in enumerate(text_of_file(path, SUPPRESSIONS_BYTES).splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                found.append(Suppression.parse(line))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}") from None
    return tuple(found)
