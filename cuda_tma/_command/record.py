"""The option ``--record FILE`` of ``cuda-tma sanitize``, which writes the checked launches and their sources."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .exit_status import Misuse
from .judgement import schedules_of, seed_of

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from .._intercept.launches import RecordedLaunch
    from .outcome import Outcome
    from .sources import Sources

__all__ = ["record"]

_FILE = re.compile(r'^[ \t]*\.file[ \t]+\d{1,10}[ \t]+"([^"\n]{1,4096})"', re.MULTILINE)
_MOST_FILES = 64


def record(arguments: argparse.Namespace, outcome: Outcome, sources_of: Callable[[Launched], Sources]) -> None:
    """Write the recorded launches of an outcome to a file."""
    from .._intercept.launches import write_recording

    settings: dict[str, Any] = {"schedules": schedules_of(arguments), "seed": seed_of(arguments)}
    settings["strict"] = arguments.strict
    try:
        write_recording(arguments.record, _recorded(outcome, sources_of), settings)
    except OSError as error:
        raise Misuse(f"--record {arguments.record} cannot be written: {error.strerror or error}") from None


def _recorded(outcome: Outcome, sources_of: Callable[[Launched], Sources]) -> Iterator[RecordedLaunch]:
    known: dict[tuple[str, str], dict[str, str]] = {}
    for launch in outcome.judged:
        if launch.recorded is not None:
            recorded = launch.recorded()
            place = launch.launched_at.file if launch.launched_at is not None else ""
            key = recorded.ptx, place
            if key not in known:
                known[key] = _quoted(recorded, sources_of(launch))
            yield replace(recorded, sources={**known[key], **recorded.sources})


def _quoted(launch: RecordedLaunch, sources: Sources) -> dict[str, str]:
    """Return the texts of the files that findings can name, if a report may show these files."""
    own = [place.file for place in launch.embedded.values()]
    names = [*dict.fromkeys([*own, *_FILE.findall(launch.ptx)])][:_MOST_FILES]
    return {name: "\n".join(lines) for name in names if (lines := sources.lines(name))}
