"""Copies of generated C++ next to a report, so that the places of its findings can name these copies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .outcome import Outcome

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from ..simulate import Finding, Place, Report

__all__ = ["kept_beside"]

# The pattern matches characters that some operating systems do not allow in file names.
_UNFIT = re.compile(r"[^\w.-]")


def kept_beside(outcome: Outcome, report: str) -> tuple[Outcome, dict[Path, str]]:
    """Return an outcome with findings that name the copies, and return the text of each copy.

    Parameters
    ----------
    outcome : Outcome
    report : str
        The name of the report's file. The folder of the copies has the name of the report with the suffix ``.sources``.
    """
    folder, kept = Path(f"{report}.sources").absolute(), dict[Path, str]()

    def place_of(name: str, text: str) -> Path:
        plain = _UNFIT.sub("_", Path(name).name).lstrip(".") or "generated"
        number = 0
        while kept.get(path := folder / (f"{number}-{plain}" if number else plain), text) != text:
            number += 1
        kept[path] = text
        return path

    def moved(launch: Launched) -> Launched:
        quotes = launch.report is not None and (launch.report.findings or launch.report.suppressed)
        if launch.report is None or not launch.generated or not quotes:
            return launch
        names = {name: str(place_of(name, launch.sources[name])) for name in launch.generated}
        sources = {names.get(name, name): text for name, text in launch.sources.items()}
        report = _renamed(launch.report, names)
        return replace(launch, report=report, sources=sources, generated=tuple(names.values()))

    return replace(outcome, launches=tuple(map(moved, outcome.launches))), kept


def _renamed(report: Report, names: Mapping[str, str]) -> Report:
    def places(given: tuple[Place, ...]) -> tuple[Place, ...]:
        return tuple(replace(place, file=names.get(place.file, place.file)) for place in given)

    def finding(given: Finding) -> Finding:
        related = tuple((words, places(each)) for words, each in given.related)
        return replace(given, source=places(given.source), other=places(given.other), related=related)

    return replace(
        report, findings=tuple(map(finding, report.findings)), suppressed=tuple(map(finding, report.suppressed))
    )
