"""The conversion of a report to JSON values and back, for journals and for the processes that read journals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ...simulate._findings import Finding
from ...simulate._ptx import Place
from ...simulate._report import Report
from ...simulate._suppression import Suppression

__all__ = ["report_of", "values_of"]

Values = dict[str, Any]


def values_of(report: Report) -> Values:
    """Return the values of a report without its timeline."""
    return {
        "findings": [asdict(finding) for finding in report.findings],
        "output": report.output,
        "thread_instructions": report.thread_instructions,
        "schedules": report.schedules,
        "suppressed": [asdict(finding) for finding in report.suppressed],
        "unused_suppressions": [asdict(each) for each in report.unused_suppressions],
        "unfinished": report.unfinished,
    }


def report_of(values: Values) -> Report:
    """Return the report that the result of :func:`values_of` describes."""
    return Report(
        findings=tuple(map(_finding, values["findings"])),
        output=values["output"],
        thread_instructions=values["thread_instructions"],
        schedules=tuple((order, seed) for order, seed in values["schedules"]),
        suppressed=tuple(map(_finding, values["suppressed"])),
        unused_suppressions=tuple(Suppression(**each) for each in values["unused_suppressions"]),
        unfinished=values.get("unfinished", ""),
    )


def _finding(values: Values) -> Finding:
    places = {name: _places(values[name]) for name in ("source", "other")}
    blocks = tuple((x, y, z) for x, y, z in values["blocks"])
    related = tuple((words, _places(each)) for words, each in values["related"])
    return Finding(**{**values, **places, "blocks": blocks, "threads": tuple(values["threads"]), "related": related})


def _places(values: Sequence[Values]) -> tuple[Place, ...]:
    return tuple(Place(**each) for each in values)
