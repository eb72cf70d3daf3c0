"""A launch of a session as a value, and the line of the user's program that made the launch."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FrameType

from .._compile.plain_names import plain_name
from ..simulate._config import Config
from ..simulate._places import is_library
from ..simulate._ptx import Place
from ..simulate._report import Report, suppressed
from ..simulate._suppression import Suppression
from .launches import RecordedLaunch
from .lines import Lines, with_lines

__all__ = ["Launched", "innermost", "launching_place", "with_report"]


@dataclass(frozen=True, slots=True)
class Launched:
    """A launch of a session, with its report.

    Attributes
    ----------
    number : int
        The index of the launch in its process, from 0.
    kernel, runtime : str
    config : Config or None
        The configuration, or None if the launch could not be read.
    seconds : float
    report : Report or None
        The report, or None if the launch was not checked.
    skipped : str
        The reason why the launch could not be checked. The text is empty if the launch was checked, or if a filter
        excludes it.
    is_judged : bool
        False if a filter excludes the launch.
    launched_at : Place or None
        The statement of the user's program.
    sources : mapping of str to str
        The texts of files that the findings quote and that may not exist on disk: C++ that a compiler generated, or PTX
        without line information (`ptx_file`).
    generated : tuple of str
        The names of the files that a compiler generated.
    recorded : callable, optional
        The function that returns the recorded launch, if the session records launches.
    hardware : str
        The comparison with a GPU that ran the launch, or an empty text.
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
    hardware: str = ""

    @property
    def plain_kernel(self) -> str:
        """Return the name of the kernel as in C++."""
        return plain_name(self.kernel)

    @property
    def ptx_file(self) -> str:
        """Return the file name that a finding shows for a line of the PTX."""
        return f"{self.kernel}.ptx"

    def with_skipped(self, reason: str) -> Launched:
        """Return a copy of the launch with the reason why the launch could not be checked."""
        return replace(self, skipped=reason)


def with_report(
    launch: Launched, report: Report, seconds: float, ptx: str, lines: Lines, suppressions: Sequence[Suppression]
) -> Launched:
    """Return a copy with a report, and with the texts that its findings quote.

    If the findings name only lines of the PTX, the PTX is one of the texts.
    """
    report = suppressed(with_lines(report, lines, launch.launched_at), suppressions)
    quoted = {name: text for name, text in lines.sources.items() if name not in lines.embedded}
    quoted |= {launch.ptx_file: ptx} if _needs_ptx(report, quoted) else {}
    return replace(launch, report=report, seconds=seconds, sources=quoted, generated=lines.generated)


def _needs_ptx(report: Report, sources: Mapping[str, str]) -> bool:
    """Return whether a finding exists whose only known line is a line of the PTX."""
    places = (finding.source for finding in (*report.findings, *report.suppressed))
    return any(not any(place.file in sources or os.path.isfile(place.file) for place in source) for source in places)


_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def launching_place() -> Place | None:
    """Return the innermost statement on the stack that is neither in an installed package nor in a compiler's cache."""
    return innermost(_stack(sys._getframe(1)))


def innermost(stack: Iterable[Place]) -> Place | None:
    """Return the first statement that is neither in an installed package nor in a compiler's cache."""
    for place in stack:
        if not place.file.startswith((_PACKAGE, "<")) and not is_library(place.file) and not _is_cached(place.file):
            return replace(place, file=os.path.abspath(place.file))
    return None


def _stack(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield Place(frame.f_code.co_filename, frame.f_lineno, 0, frame.f_code.co_name)
        frame = frame.f_back


def _is_cached(file: str) -> bool:
    """Return whether a compiler wrote a Python file into the compiler's cache."""
    folders = [os.environ.get(name) for name in ("TILELANG_CACHE_DIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")]
    parts = file.split(os.sep)
    is_below = any(folder and file.startswith(os.path.join(os.path.abspath(folder), "")) for folder in folders)
    is_usual = any(part in (".tilelang", ".triton") or part.startswith("torchinductor_") for part in parts)
    return is_below or is_usual
