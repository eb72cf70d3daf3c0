"""The outcome of ``cuda-tma sanitize``, with its launches, its exit status, and the line that counts the launches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .exit_status import REFUSED, UNSUPPORTED

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from .._intercept.on_gpu.table import GpuTable
    from ..simulate import Finding, Suppression

__all__ = ["Cause", "Outcome", "cause_of", "causes", "counted", "coverage", "exit_status", "unused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """All launches of one run of the command.

    Attributes
    ----------
    launches : tuple of Launched
    program_status : int or None
        The exit status of the program, or None without a program.
    suppressions : tuple of Suppression
    notes : tuple of str
    lost : int
        The number of launches whose reports could not be written.
    lost_errors : int
        The number of lost launches with an error.
    cause : str
        The reason for the lost launches.
    seconds : float
    known : int
        The number of findings that the outcome omits because an earlier report contains them.
    tables : tuple of GpuTable
        The kernels that the program launched on a GPU.
    """

    launches: tuple[Launched, ...]
    program_status: int | None = None
    suppressions: tuple[Suppression, ...] = ()
    notes: tuple[str, ...] = ()
    lost: int = 0
    lost_errors: int = 0
    cause: str = ""
    seconds: float = 0.0
    known: int = 0
    tables: tuple[GpuTable, ...] = ()

    @property
    def judged(self) -> list[Launched]:
        """Return the launches that have a report."""
        return [launch for launch in self.launches if launch.report is not None]

    @property
    def judged_launches(self) -> list[Launched]:
        """Return the checked launches of kernels, without the findings about calls of the program itself."""
        return [launch for launch in self.judged if launch.config is not None]

    @property
    def skipped(self) -> list[Launched]:
        """Return the launches that the simulator could not check."""
        return [launch for launch in self.launches if launch.skipped]

    @property
    def unfinished(self) -> list[Launched]:
        """Return the launches that reached the time limit."""
        return [launch for launch in self.launches if launch.report is not None and launch.report.unfinished]

    @property
    def left_out(self) -> list[Launched]:
        """Return the launches that a filter excludes."""
        return [launch for launch in self.launches if launch.report is None and not launch.skipped]

    def count(self, severity: str) -> int:
        """Return the number of causes whose findings have a given severity."""
        return sum(cause.finding.severity == severity for cause in causes(self))


class Cause(NamedTuple):
    """A finding with the first launch in which it occurs, and the number of launches that have the same finding."""

    launch: Launched
    finding: Finding
    launches: int


def cause_of(launch: Launched, finding: Finding) -> object:
    """Return a key that is equal for the same finding in several launches of a kernel."""
    places = finding.source or finding.ptx_line, finding.other or finding.other_ptx_line
    return launch.kernel, finding.kind, finding.severity, places


def causes(outcome: Outcome) -> list[Cause]:
    """Return each cause once; errors come first, each in the order of the launches."""
    found: dict[object, Cause] = {}
    for launch in outcome.judged:
        for finding in launch.report.findings if launch.report is not None else ():
            key = cause_of(launch, finding)
            known = found.get(key)
            found[key] = Cause(launch, finding, 1) if known is None else known._replace(launches=known.launches + 1)
    return sorted(found.values(), key=lambda cause: cause.finding.severity != "error")


def exit_status(outcome: Outcome, require_judged: bool = False) -> int:
    """Return 1 after an error, 3 if a launch could not be checked, and otherwise the exit status of the program."""
    reports = [launch.report for launch in outcome.judged if launch.report is not None]
    if outcome.lost_errors or any(report.errors for report in reports):
        return REFUSED
    if not outcome.judged_launches or outcome.unfinished or (require_judged and (outcome.skipped or outcome.lost)):
        return UNSUPPORTED
    return outcome.program_status or 0


def coverage(outcome: Outcome) -> str:
    """Return the line with the numbers of launches (checked, skipped, excluded), of schedules and of seconds."""
    judged = outcome.judged_launches
    tried = max((max(len(launch.report.schedules), 1) for launch in judged if launch.report is not None), default=0)
    parts = [f"{counted(len(judged), 'launch', 'launches')} judged"]
    parts[0] += f" under {counted(tried, 'schedule', 'schedules')}" if tried else ""
    errors, advice = outcome.count("error"), outcome.count("advice")
    if judged or errors:  # If no launch was checked, the message "no errors" would be misleading.
        parts.append(counted(errors, "error", "errors") if errors else "no errors")
    parts += [f"{counted(advice, 'piece', 'pieces')} of advice"] * bool(advice)
    parts += [f"{outcome.known} known from the baseline"] * bool(outcome.known)
    parts += [f"{len(outcome.skipped)} skipped ({_reasons(outcome.skipped)})"] * bool(outcome.skipped)
    parts += [f"{len(outcome.unfinished)} at the time limit"] * bool(outcome.unfinished)
    parts += [f"{len(outcome.left_out)} left out by filters"] * bool(outcome.left_out)
    parts += [f"{outcome.lost} lost ({outcome.cause})"] * bool(outcome.lost)
    return f"{', '.join(parts)}; {outcome.seconds:.1f} s"


def counted(number: int, one: str, several: str) -> str:
    """Return a number with its noun in the singular or plural."""
    return f"{number} {one if number == 1 else several}"


def _reasons(skipped: Sequence[Launched]) -> str:
    counts = Counter(launch.skipped.splitlines()[0] for launch in skipped)
    return "; ".join(reason if number == 1 else f"{number} times: {reason}" for reason, number in counts.items())


def unused(outcome: Outcome) -> list[Suppression]:
    """Return the suppressions that match no finding in any launch."""
    hidden = [finding for launch in outcome.judged if launch.report is not None for finding in launch.report.suppressed]
    return [each for each in outcome.suppressions if not any(each.covers(finding) for finding in hidden)]
