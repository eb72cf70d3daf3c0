"""Findings that somebody has looked at, and does not want to see again: with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch

from .findings import KINDS, Finding, Report

__all__ = ["Suppression", "suppressed"]


@dataclass(frozen=True, slots=True)
class Suppression:
    """Findings of one kind, in one place, that are not reported.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    place : str
        ``file:line`` as in ``"gemm.cu:41"``, or a function's name; ``*`` and ``?`` stand for any text and character. It
        is looked for along the chain of inlined calls of both places.
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
            raise ValueError(f"kind={self.kind!r}; it is one of {', '.join(KINDS)}")
        if not self.reason.strip():
            raise ValueError(f"the suppression of {self.kind} at {self.place} needs a reason: say why it is right")

    def covers(self, finding: Finding) -> bool:
        """Whether it is about a finding."""
        places = (*finding.source, *finding.other)
        names = [f"{place.file.replace(chr(92), '/').rpartition('/')[2]}:{place.line}" for place in places]
        names += [place.function for place in places if place.function]
        return finding.kind == self.kind and any(fnmatch(name, self.place) for name in names)


def suppressed(report: Report, suppressions: Sequence[Suppression]) -> Report:
    """A report without the findings that are covered; it tells which those are, and who covers nothing."""
    if not suppressions:
        return report
    hidden = [finding for finding in report.findings if any(each.covers(finding) for each in suppressions)]
    unused = [each for each in suppressions if not any(each.covers(finding) for finding in hidden)]
    shown = tuple(finding for finding in report.findings if finding not in hidden)
    return replace(report, findings=shown, suppressed=tuple(hidden), unused_suppressions=tuple(unused))
