"""Findings as SARIF 2.1.0 (OASIS, "Static Analysis Results Interchange Format"), the format of code scanning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import __version__
from .._files import absolute
from .baseline import FINGERPRINT, fingerprint
from .excerpts import column_of, statements
from .outcome import cause_of, unused

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from ..simulate import Finding, Place, Suppression
    from .outcome import Outcome
    from .sources import Sources

__all__ = ["failure", "log"]

Json = dict[str, Any]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_ROOT = "SRCROOT"  # The base SRCROOT of relative URIs is the working directory.
# The log lists at most 32 blocks and threads of a finding, because a finding may concern millions of threads.
_MOST = 32
_LEVELS = {"error": "error", "advice": "note"}


def log(outcome: Outcome, status: int, sources_of: Callable[[Launched], Sources]) -> Json:
    """Return the SARIF log of a run; a cause in several launches of a kernel is one result.

    Parameters
    ----------
    outcome : Outcome
    status : int
        The exit status of the command.
    sources_of : callable
        A function that returns the files whose lines may be shown for a launch.
    """
    kernels = {launch.kernel: launch.plain_kernel for launch in outcome.judged}
    results: dict[object, Json] = {}
    for launch in outcome.judged:
        sources, index = sources_of(launch), [*kernels].index(launch.kernel)
        for key, made in _results(launch, index, sources, outcome.suppressions):
            if key in results:
                results[key]["occurrenceCount"] += made["occurrenceCount"]
            else:
                results[key] = made
    return _log(_invocation(outcome, status), [*results.values()], [_logical(*names) for names in kernels.items()])


def _results(
    launch: Launched, index: int, sources: Sources, suppressions: Sequence[Suppression]
) -> Iterator[tuple[object, Json]]:
    """Yield the results of a launch, each with a key that is equal for the same cause."""
    report = launch.report
    if report is None:
        return
    for finding in (*report.findings, *report.suppressed):
        made = _Result(finding, launch.plain_kernel, index, sources).json()
        made["partialFingerprints"] = {FINGERPRINT: fingerprint(launch, finding, sources)}
        if finding in report.suppressed:
            reason = next(each.reason for each in suppressions if each.covers(finding))
            # A suppression without a status counts as accepted in SARIF.
            accepted = {"kind": "external", "justification": reason}
            made["suppressions"] = [accepted]
        yield cause_of(launch, finding), made


def failure(message: str, status: int) -> Json:
    """Return the log of a run without a result, which differs from a run without findings."""
    notes = [{"level": "error", "message": {"text": message}}]
    return _log({"executionSuccessful": False, "exitCode": status, "toolExecutionNotifications": notes}, [], [])


def _log(invocation: Json, results: list[Json], logical: list[Json]) -> Json:
    driver = {
        "name": "cuda-tma",
        "fullName": "cuda-tma sanitize",
        "version": __version__,
        "rules": [*_rules()],
    }
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "invocations": [invocation],
                "originalUriBaseIds": {_ROOT: {"uri": f"{Path.cwd().as_uri().rstrip('/')}/"}},
                "columnKind": "unicodeCodePoints",
                "logicalLocations": logical,
                "results": results,
            }
        ],
    }


def _rules() -> Iterator[Json]:
    from ..simulate import KINDS, Finding

    for kind, text in KINDS.items():
        yield {
            "id": kind,
            "name": "".join(word.capitalize() for word in kind.split("-")),
            "shortDescription": {"text": _sentence(kind.replace("-", " "))},
            "fullDescription": {"text": _sentence(text)},
            "help": {"text": f"{_sentence(text)} Remedy: {Finding(kind, 'error', text).general_remedy}."},
            "defaultConfiguration": {"level": "error"},
        }


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _invocation(outcome: Outcome, status: int) -> Json:
    """Return the exit status, the launches that were not checked, and the unused suppressions."""
    texts = [f"{launch.kernel} was not judged: {launch.skipped}" for launch in outcome.skipped]
    texts += [f"{launch.kernel}: {launch.report.unfinished}" for launch in outcome.unfinished if launch.report]
    texts += [f"{outcome.lost} launches are lost: {outcome.cause}"] * bool(outcome.lost)
    skipped = [{"level": "warning", "message": {"text": text}} for text in dict.fromkeys(texts)]
    notes = [
        {
            "level": "warning",
            "message": {"text": f"unused suppression: {each.kind}:{each.place}:{each.reason}"},
            "associatedRule": {"id": each.kind},
        }
        for each in unused(outcome)
    ]
    made: Json = {
        "executionSuccessful": bool(outcome.judged and not outcome.unfinished),
        "toolConfigurationNotifications": notes,
    }
    if skipped:
        made["toolExecutionNotifications"] = skipped
    return made if outcome.program_status is None else {**made, "exitCode": status}


def _logical(name: str, plain: str) -> Json:
    return {"name": plain.rpartition("::")[2], "fullyQualifiedName": plain, "decoratedName": name, "kind": "function"}


class _Result:
    """One finding as a result of SARIF.

    Parameters
    ----------
    finding : Finding
    kernel : str
        The name of the kernel in C++.
    index : int
        The index of the kernel in the list of the run.
    sources : Sources
    """

    def __init__(self, finding: Finding, kernel: str, index: int, sources: Sources):
        self._finding, self._kernel, self._index, self._sources = finding, kernel, index, sources

    def json(self) -> Json:
        """Return the finding as a SARIF result."""
        from ..simulate import KINDS

        finding = self._finding
        made = {
            "ruleId": finding.kind,
            "ruleIndex": [*KINDS].index(finding.kind),
            "level": _LEVELS[finding.severity],
            "message": {"text": finding.message},
            "locations": [{**self._where(finding.source, finding.ptx_line), "logicalLocations": [self._function()]}],
            "occurrenceCount": finding.count,
            "properties": {
                "blocks": [*map(list, finding.blocks[:_MOST])],
                "blockCount": len(finding.blocks),
                "threads": [*finding.threads[:_MOST]],
                "threadCount": len(finding.threads),
            },
        }
        if len(finding.source) > 1:
            frames = [{"location": {"physicalLocation": _physical(place, self._sources)}} for place in finding.source]
            made["stacks"] = [{"message": {"text": "inlined calls"}, "frames": frames}]
        if related := self._related():
            made["relatedLocations"] = [{"id": i, **each} for i, each in enumerate(related, 1)]
        return made

    def _related(self) -> list[Json]:
        finding, found = self._finding, []
        if finding.other or finding.other_ptx_line:
            found.append(("the other access", finding.other, finding.other_ptx_line))
        found += [(what, places, 0) for what, places in finding.related]
        return [{"message": {"text": what}, **self._where(places, line)} for what, places, line in found]

    def _function(self) -> Json:
        return {"index": self._index, "fullyQualifiedName": self._kernel}

    def _where(self, places: Sequence[Place], ptx_line: int) -> Json:
        own, _ = statements(places, self._sources.generated)
        if own:
            return {"physicalLocation": _physical(own[0], self._sources)}
        file = self._sources.file
        where: Json = {"artifactLocation": _artifact(str(file))}
        if ptx_line and file.suffix == ".ptx":  # The PTX that NVRTC generates is not in a file.
            where["region"] = {"startLine": ptx_line}
        return {"physicalLocation": where}


def _physical(place: Place, sources: Sources) -> Json:
    region: Json = {"startLine": max(place.line, 1)}
    lines = sources.lines(place.file)
    if 0 < place.line <= len(lines):
        line = lines[place.line - 1]
        region["snippet"] = {"text": line.rstrip("\r")}
        region["startColumn"] = column_of(line, place.column)
    elif place.column > 0:
        region["startColumn"] = place.column
    return {"artifactLocation": _artifact(place.file), "region": region}


def _artifact(file: str) -> Json:
    """Return the URI of a file; below the working directory, it is relative and therefore equal on every machine."""
    from urllib.parse import quote

    path = absolute(file)
    try:
        return {"uri": quote(os.fsencode(path.relative_to(Path.cwd()).as_posix())), "uriBaseId": _ROOT}
    except ValueError:
        return {"uri": path.as_uri()}
