"""A launch of a session as a value, and the line of the user's program that made it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ..simulate.config import Config
from ..simulate.findings import Report
from ..simulate.places import is_library
from ..simulate.ptx import Place

__all__ = ["Launched", "launching_place"]


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

    @property
    def ptx_file(self) -> str:
        """The name by which a finding shows a line of the PTX."""
        return f"{self.kernel}.ptx"

    def with_skipped(self, reason: str) -> Launched:
        """Return it as a launch that could not be judged."""
        return replace(self, skipped=reason)


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
