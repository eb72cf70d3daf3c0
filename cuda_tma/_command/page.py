"""The page of ``--html``, which contains every launch, and every finding with its source lines and its timeline."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .. import __version__
from .._files import shown_path
from .outcome import Cause, Outcome, causes, counted, coverage, unused
from .page_excerpts import excerpts, plain

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from ..simulate import Finding
    from .sources import Sources

__all__ = ["page"]

_MOST_CAUSES = 200
_MOST_ROWS = 500


def page(outcome: Outcome, status: int, sources_of: Callable[[Launched], Sources]) -> str:
    """Return the HTML page, which has no script and uses no network."""
    from .._show import pages, svg, timeline_svg
    from .page_timelines import timelines

    found = causes(outcome)
    drawn = timelines(found)
    shared = svg.element("svg", timeline_svg.STYLE, timeline_svg.HATCH, class_="shared", aria_hidden="true")
    return pages.filled(
        Path(pages.__file__).with_name("sanitized.html"),
        sans=svg.SANS,
        mono=svg.MONO,
        title=plain(_title(outcome)),
        coverage=plain(coverage(outcome)),
        shared=shared if drawn else "",
        findings="\n".join(_causes(found, drawn, sources_of)),
        launches="\n".join(_launches(outcome)),
        rest="\n".join(_rest(outcome)),
        version=__version__,
        status=str(status),
    )


def _title(outcome: Outcome) -> str:
    errors, judged = outcome.count("error"), len(outcome.judged_launches)
    counted = f"{errors} error{'s' * (errors > 1)}" if errors else "No errors"
    return f"{counted} in {judged} launch{'es' * (judged != 1)}"


# ---- findings ----


def _causes(
    found: Sequence[Cause], drawn: Mapping[int, str], sources_of: Callable[[Launched], Sources]
) -> Iterator[str]:
    if found:
        yield "<h2>Findings</h2>"
    for number, cause in enumerate(found[:_MOST_CAUSES]):
        yield from _article(number, cause, drawn.get(number, ""), sources_of(cause.launch))
    if len(found) > _MOST_CAUSES:
        yield f"<p>{len(found) - _MOST_CAUSES} more findings are in the JSON document.</p>"


def _article(number: int, cause: Cause, timeline: str, sources: Sources) -> Iterator[str]:
    finding = cause.finding
    tag = f'<span class="tag is-{finding.severity}">{finding.severity}</span>'
    yield f'<article id="finding-{number + 1}">{tag}<span class="tag">{plain(finding.kind)}</span>'
    yield f"<h3>{plain(finding.happened)}</h3>"
    yield from excerpts(finding, sources)
    yield from _facts(cause)
    if timeline:
        yield "<details open><summary>Timeline around the finding</summary>"
        yield f'<div class="wide" tabindex="0">{timeline}</div></details>'
    yield "</article>"


def _facts(cause: Cause) -> Iterator[str]:
    finding, launch = cause.finding, cause.launch
    rows = [("Rule", finding.rule), ("Remedy", finding.remedy or finding.general_remedy)]
    rows += [("Threads", _threads(finding)), ("Launch", _launch(launch, cause.launches))]
    yield "<dl>" + "".join(f"<dt>{name}</dt><dd>{plain(text)}</dd>" for name, text in rows if text) + "</dl>"


def _threads(finding: Finding) -> str:
    parts = []
    for name, values in (("block", finding.blocks), ("thread", finding.threads)):
        if values:
            parts.append(f"{name} {values[0]}" + (f" and {len(values) - 1} more" if len(values) > 1 else ""))
    return ", ".join(parts + [f"{finding.count} times"] * (finding.count > 1))


def _launch(launch: Launched, number: int) -> str:
    at = launch.launched_at
    place = f", launched by {shown_path(at.file)}:{at.line}" if at is not None else ""
    return f"{launch.kernel}{place}" + (f"; {number} launches have this finding" if number > 1 else "")


# ---- launches ----


def _launches(outcome: Outcome) -> Iterator[str]:
    """Yield the table of launches; launches that differ only in their time share a row."""
    rows: dict[tuple[str, ...], list[Launched]] = {}
    for launch in outcome.launches:
        rows.setdefault(_row(launch), []).append(launch)
    if not rows:
        return
    names = ("kernel", "runtime", "grid", "block", "cluster", "launched by", "result", "launches", "seconds")
    head = "".join(f"<th>{name}</th>" for name in names)
    yield f"<h2>Launches</h2><table><thead><tr>{head}</tr></thead><tbody>"
    for row, launches in [*rows.items()][:_MOST_ROWS]:
        seconds = sum(launch.seconds for launch in launches)
        cells = [*row[:6], _result(launches[0]), str(len(launches)), f"{seconds:.2f}"]
        yield "<tr>" + "".join(map(_cell, names, cells)) + "</tr>"
    yield "</tbody></table>"
    if len(rows) > _MOST_ROWS:
        yield f"<p>{len(rows) - _MOST_ROWS} more rows are in the JSON document.</p>"


def _row(launch: Launched) -> tuple[str, ...]:
    config, at = launch.config, launch.launched_at
    shape = [_extents(getattr(config, name, None)) for name in ("grid", "block", "cluster")]
    place = f"{shown_path(at.file)}:{at.line}" if at is not None else ""
    return launch.kernel, launch.runtime, *shape, place, _result(launch)


def _extents(values: Sequence[int] | None) -> str:
    return "×".join(map(str, values)) if values else ""


def _result(launch: Launched) -> str:
    if launch.report is None:
        return launch.skipped or "left out by a filter"
    errors = len(launch.report.errors)
    advice = len(launch.report.findings) - errors
    parts = [counted(errors, "error", "errors")] * bool(errors)
    parts += [f"{counted(advice, 'piece', 'pieces')} of advice"] * bool(advice)
    parts += [launch.report.unfinished] * bool(launch.report.unfinished)
    return ", ".join(parts) or "right"


def _cell(name: str, text: str) -> str:
    class_ = ' class="number"' if name in ("launches", "seconds") else ""
    if name == "result":
        kind = "error" if "error" in text else "right" if text == "right" else "advice"
        return f'<td data-name="{name}"><span class="tag is-{kind}">{plain(text)}</span></td>'
    return f'<td{class_} data-name="{name}">{plain(text)}</td>' if text else "<td></td>"


# ---- the rest ----


def _rest(outcome: Outcome) -> Iterator[str]:
    lines = [f"note: {text}" for text in outcome.notes]
    lines += [f"unused suppression: {each.kind}:{each.place}:{each.reason}" for each in unused(outcome)]
    for launch in outcome.judged:
        for finding in launch.report.suppressed if launch.report is not None else ():
            reason = next((each.reason for each in outcome.suppressions if each.covers(finding)), "")
            lines.append(f"suppressed: {finding.kind} in {launch.kernel}: {reason}")
    if lines:
        rows = "".join(f"<p>{plain(line)}</p>" for line in dict.fromkeys(lines))
        yield f"<h2>Notes and suppressions</h2>{rows}"
