"""The JSON document of ``cuda-tma sanitize``, which contains all launches, findings, coverage and exit statuses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from .._files import shown_path
from .baseline import fingerprint
from .excerpts import statements
from .gpu_table import gpu_document
from .outcome import Outcome, unused

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from ..simulate import Finding, Place
    from .sources import Sources

__all__ = ["document"]

Json = dict[str, Any]

# The document lists at most 32 blocks and threads of a finding, because a finding may concern millions of threads.
_MOST = 32


def document(outcome: Outcome, status: int, sources_of: Callable[[Launched], Sources]) -> Json:
    """Return the JSON document of an outcome."""
    return {
        "launches": [_launch(launch, sources_of) for launch in outcome.launches],
        "status": status,
        "program_status": outcome.program_status,
        "coverage": {
            "judged": len(outcome.judged_launches),
            "skipped": len(outcome.skipped),
            "left_out": len(outcome.left_out),
            "lost": outcome.lost,
            "known": outcome.known,
            "errors": outcome.count("error"),
            "advice": outcome.count("advice"),
            "seconds": round(outcome.seconds, 3),
        },
        "notes": list(outcome.notes),
        "gpu": gpu_document(outcome),
        "unused_suppressions": [asdict(each) for each in unused(outcome)],
    }


def _launch(launch: Launched, sources_of: Callable[[Launched], Sources]) -> Json:
    config, report, at = launch.config, launch.report, launch.launched_at
    made: Json = {
        "kernel": launch.kernel,
        "grid": config.grid if config is not None else None,
        "block": config.block if config is not None else None,
        "cluster": config.cluster if config is not None else None,
        "shmem_size": config.shmem_size if config is not None else None,
        "runtime": launch.runtime,
        "launched_at": {"file": shown_path(at.file), "line": at.line} if at is not None else None,
        "seconds": round(launch.seconds, 6),
        "skipped": launch.skipped or (None if report is not None else "a filter left it out"),
        "findings": [],
    }
    if report is not None:
        sources = sources_of(launch)
        made["findings"] = [_finding(launch, finding, sources) for finding in report.findings]
        made["suppressed"] = [_finding(launch, finding, sources) for finding in report.suppressed]
        made["schedules"] = report.schedules
        made["thread_instructions"] = report.thread_instructions
        made["output"] = report.output
        made["unfinished"] = report.unfinished or None
        made["hardware"] = launch.hardware or None
    return made


def _finding(launch: Launched, finding: Finding, sources: Sources) -> Json:
    generated = launch.generated
    related = [("the other access", finding.other, finding.other_ptx_line)]
    related += [(what, places, 0) for what, places in finding.related]
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "message": finding.message,
        "rule": finding.rule,
        "remedy": finding.remedy,
        "fingerprint": fingerprint(launch, finding, sources),
        **_where(finding.source, finding.ptx_line, generated),
        "related": [
            {"message": what, **_where(places, line, generated)} for what, places, line in related if places or line
        ],
        "count": finding.count,
        "blocks": finding.blocks[:_MOST],
        "block_count": len(finding.blocks),
        "threads": finding.threads[:_MOST],
        "thread_count": len(finding.threads),
    }


def _where(places: Sequence[Place], ptx_line: int, generated: Collection[str]) -> Json:
    """Return the statement, the other statements of its chain of inlined calls, and the line of the PTX."""
    own, inner = statements(places, generated)
    chain = [_place(place) for place in (*own, *reversed(inner))]
    return {"source": chain[0] if chain else None, "inlined": chain[1:], "ptx_line": ptx_line or None}


def _place(place: Place) -> Json:
    return {"file": shown_path(place.file), "line": place.line, "column": place.column, "function": place.function}
