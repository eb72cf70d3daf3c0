"""The report of a launch on the simulator: its findings, its printed output, and its number of instructions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from .._show.timeline import Timeline
from ._errors import TimeLimitReached
from ._findings import Finding
from ._suppression import Suppression

__all__ = ["Report", "SimulationError", "suppressed"]


class SimulationError(RuntimeError):
    """The exception for a simulated launch that has errors.

    Attributes
    ----------
    findings : tuple of Finding
    """

    def __init__(self, findings: tuple[Finding, ...]):
        super().__init__("\n".join(map(str, findings)))
        self.findings = findings

    def __reduce__(self) -> tuple:
        """Return the arguments of the constructor, so that pickle and copy can recreate the exception."""
        return type(self), (self.findings,)


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The result of a launch on the simulator.

    Attributes
    ----------
    findings : tuple of Finding
    output : str
        The text that the kernel printed.
    thread_instructions : int
        The number of executed instructions, summed over all threads.
    schedules : tuple of (str, int)
        The order and the seed of each schedule under which the launch ran; empty if it ran only once.
    suppressed : tuple of Finding
        The findings to which a :class:`Suppression` applies.
    unused_suppressions : tuple of Suppression
        The suppressions that apply to no finding.
    unfinished : str
        A sentence about the time limit that ended the launch; otherwise empty. The findings of an unfinished launch are
        incomplete.
    traced : Timeline, optional
        The result of :meth:`timeline`.
    """

    findings: tuple[Finding, ...] = ()
    output: str = ""
    thread_instructions: int = 0
    schedules: tuple[tuple[str, int], ...] = ()
    suppressed: tuple[Finding, ...] = ()
    unused_suppressions: tuple[Suppression, ...] = ()
    unfinished: str = ""
    traced: Timeline | None = None

    def __repr__(self) -> str:
        """Return a summary of the report in one line."""
        kinds = ", ".join(finding.kind for finding in self.findings) or "no findings"
        return f"<Report: {kinds}; {len(self.output)} characters printed, {self.thread_instructions} instructions>"

    def __str__(self) -> str:
        """Return all findings, one per line, in the format of a compiler."""
        lines = [*map(str, self.findings)] or ["no findings"]
        lines += [f"unused suppression: {each}" for each in self.unused_suppressions]
        lines += [self.unfinished] if self.unfinished else []
        return "\n".join(lines)

    def timeline(self) -> Timeline:
        """Return the activity of warps, copies and mbarriers over time, for a launch with ``trace=True``.

        Returns
        -------
        Timeline
            The timeline of the first schedule.

        Raises
        ------
        ValueError
            If the launch was not traced.
        """
        if self.traced is None:
            raise ValueError("this launch was not traced; pass trace=True to gpu.launch")
        return self.traced

    @property
    def errors(self) -> tuple[Finding, ...]:
        """The findings whose severity is ``"error"``."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def raise_for_errors(self) -> None:
        """Raise an exception if the launch has errors, or if the time limit ended it.

        Raises
        ------
        SimulationError
        TimeLimitReached
            If the time limit ended the launch before it had an error.
        """
        if self.errors:
            raise SimulationError(self.errors)
        if self.unfinished:
            raise TimeLimitReached(self.unfinished)


def suppressed(report: Report, suppressions: Sequence[Suppression]) -> Report:
    """Return a report without the suppressed findings, and with the list of unused suppressions.

    A suppressed finding that ended the launch remains an error, because the simulator did not check the rest of the
    launch.
    """
    if not suppressions:
        return report
    hidden = [finding for finding in report.findings if any(each.covers(finding) for each in suppressions)]
    unused = [each for each in suppressions if not any(each.covers(finding) for finding in hidden)]
    ends = [_end_of_launch(finding) for finding in hidden if finding.ends_launch]
    shown = (*ends, *(finding for finding in report.findings if finding not in hidden))
    return replace(report, findings=shown, suppressed=tuple(hidden), unused_suppressions=tuple(unused))


def _end_of_launch(finding: Finding) -> Finding:
    """Return the error that replaces a suppressed finding which ended the launch."""
    text = "a suppression covers this finding, but the launch ends at it, and the rest is not judged: "
    return replace(finding, message=f"{text}{finding.message}")
