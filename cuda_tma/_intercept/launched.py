"""A launch of a session as a value, and the line of the user's program that made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from ..simulate.config import Config
from ..simulate.findings import Finding, Report
from ..simulate.launches import RecordedLaunch
from ..simulate.places import is_library, statements
from ..simulate.ptx import Place

__all__ = ["Launched", "launching_place", "with_report"]


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch of a session.

    Attributes
    ----------
    number : int
        From 0, in its process.
    kernel, runtime : str
    config : Config or None
        None if the launch could not be read.
    seconds : float
    report : Report or None
        None if the launch was not judged.
    skipped : str
        The reason why the launch could not be judged; empty if it was judged, or left out by a filter.
    is_judged : bool
        False if a filter left it out.
    launched_at : Place or None
        The statement of the user's program.
    sources : mapping of str to str
        The text of files that its findings name and that need not exist on disk: C++ that a compiler generated; the
        PTX, as `ptx_file`, if it has no line information.
    generated : tuple of str
        The names of those files that a compiler wrote.
    recorded : callable, optional
        It returns the recorded launch, if the session records.
    """

    number: int
    kernel: str
    runtime: str
    config: Config | None = None
    seconds: float = 0.0
    report: Report | None = None
    skipped: str = ""
    is_judged: bool = True
    launched_at: Place | None = None
    sources: Mapping[str, str] = field(default_factory=dict, repr=False)
    generated: tuple[str, ...] = ()
    recorded: Callable[[], RecordedLaunch] | None = field(default=None, repr=False, compare=False)

    @property
    def ptx_file(self) -> str:
        """The name by which a finding shows a line of the PTX."""
        return f"{self.kernel}.ptx"

    def with_skipped(self, reason: str) -> Launched:
        """Return it as a launch that could not be judged."""
        return replace(self, skipped=reason)


def with_report(
    launch: Launched,
    report: Report,
    seconds: float,
    ptx: str,
    sources: Mapping[str, str],
    generated: Collection[str],
) -> Launched:
    """Return it as judged, with the texts that its findings quote.

    The PTX is one of them if no other line can be shown. A finding in code that a compiler wrote also has the
    statement that launched the kernel, as the outermost call.
    """
    if generated and launch.launched_at is not None:
        report = _with_callers(report, launch.launched_at, generated)
    quoted = {**sources, **({launch.ptx_file: ptx} if _needs_ptx(report, sources) else {})}
    names = tuple(name for name in generated if name in quoted)
    return replace(launch, report=report, seconds=seconds, sources=quoted, generated=names)


def _with_callers(report: Report, caller: Place, generated: Collection[str]) -> Report:
    """Return a report whose places in generated files end in the statement that launched the kernel."""

    def extended(places: tuple[Place, ...]) -> tuple[Place, ...]:
        own, _ = statements(places, generated)
        return (*places, caller) if own and own[-1].file in generated else places

    def with_caller(finding: Finding) -> Finding:
        return replace(finding, source=extended(finding.source), other=extended(finding.other))

    findings, hidden = (tuple(map(with_caller, each)) for each in (report.findings, report.suppressed))
    return replace(report, findings=findings, suppressed=hidden)


def _needs_ptx(report: Report, sources: Mapping[str, str]) -> bool:
    """Whether a finding has no line that can be shown but that of the PTX."""
    places = (finding.source for finding in (*report.findings, *report.suppressed))
    return any(not any(place.file in sources or os.path.isfile(place.file) for place in source) for source in places)


_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def launching_place() -> Place | None:
    """Return the innermost statement on the stack that lies in no installed package."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_PACKAGE, "<")) and not is_library(file):
            return Place(os.path.abspath(file), frame.f_lineno, 0, frame.f_code.co_name)
        frame = frame.f_back
    return None
