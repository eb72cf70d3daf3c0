"""A timeline as SVG, with rows for warps, pending copies and mbarriers, and a horizontal time axis."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from .svg import MONO, SANS, document, element, style, text, width_of
from .tracks import Span, Track

__all__ = ["HATCH", "STYLE", "Chart", "Scale", "key", "rows_of", "stacked", "timeline_svg"]

_MARGIN, _SMALL = 16, 10.0
_WARPS, _COPY, _THIN, _MBARRIER, _HEADER = 30, 16, 8, 22, 30  # The rows of the picture have fixed heights in pixels.
_MOST_LABELLED = 10  # Rows of copies have labels if there are at most ten rows.
_SOON = 32  # The picture shows copies that begin within 32 steps as one copy.
_GAP_STEPS_PIXELS = 90  # The distance between two numbers on the axis is at least 90 pixels.

_MARK = "#d43c7c"
_KEY = {  # _KEY maps a CSS class to the text in the legend of colors.
    "run": "runs",
    "wait": "waits",
    "vain": "never completes",
    "wgmma": "wgmma",
    "tcgen05": "tcgen05",
    "load": "load",
    "copy": "copy",
    "store": "store",
    "reduce": "reduction",
    "phase": "phase of an mbarrier",
    "bytes": "missing bytes",
    "arrival": "arrival",
}
_COMMON = (
    f"text{{font:11px {SANS}}}.in{{font:10px {MONO};pointer-events:none}}.head{{font-weight:600;font-size:13px}}"
    ".title{font-weight:600;font-size:16px}.axis{font-size:10px}"
)
_LIGHT = {
    ".paper": "fill:#fff",
    "text": "fill:#1b1f24",
    ".quiet,.axis": "fill:#59636e",
    ".grid": "stroke:#d8dee4",
    ".run": "fill:#9cc4e8",
    ".wait": "fill:#eef0f3",
    ".hatch": "stroke:#aab2bd",
    ".vain": "fill:#f7b4a8",
    ".wgmma,.tcgen05": "fill:#8655b5",
    ".load,.copy": "fill:#5bb98c",
    ".store,.reduce": "fill:#e8a33d",
    ".phase": "fill:#e3e7ec",
    ".odd": "fill:#cdd4dc",
    ".bytes": "fill:#3f9a70",
    ".arrival": "fill:#1b1f24",
    ".rim": "stroke:#fff",
}
_DARK = {
    ".paper": "fill:#12161c",
    "text": "fill:#e6edf3",
    ".quiet,.axis": "fill:#9aa5b1",
    ".grid": "stroke:#2b323b",
    ".run": "fill:#2f5f8a",
    ".wait": "fill:#20262e",
    ".hatch": "stroke:#4a5563",
    ".vain": "fill:#8c3022",
    ".wgmma,.tcgen05": "fill:#a67ed1",
    ".load,.copy": "fill:#2c7a55",
    ".store,.reduce": "fill:#9a6412",
    ".phase": "fill:#2a323c",
    ".odd": "fill:#3d4855",
    ".bytes": "fill:#49b083",
    ".arrival": "fill:#e6edf3",
    ".rim": "stroke:#12161c",
}
STYLE = style(_LIGHT, _DARK, _COMMON)
HATCH = element(
    "defs",
    element(
        "pattern",
        element("rect", width=6, height=6, class_="wait"),
        element("path", d="M0 6L6 0", class_="hatch"),
        id="waits",
        width=6,
        height=6,
        patternUnits="userSpaceOnUse",
    ),
)


class Chart(NamedTuple):
    """The drawn part of a timeline: some CTAs over all steps, with a title and the meaning of a step."""

    title: str
    units: str
    steps: int
    tracks: tuple[Track, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """The conversion from steps to pixels.

    Attributes
    ----------
    pixels, steps : int
    live : bool
        Whether elements keep their steps and details as attributes, for a page with zoom.
    marked : frozenset of str
        The sources of spans that have an outline.
    """

    pixels: float
    steps: int
    live: bool = False
    marked: frozenset[str] = frozenset()

    def __call__(self, step: float) -> float:
        return step * self.pixels / max(1, self.steps)

    def place(self, begin: int, end: int) -> dict[str, object]:
        """Return the extent of a rectangle along the axis. The extent is at least the smallest visible extent."""
        kept = {"data_b": begin, "data_e": end} if self.live else {}
        return {"x": self(begin), "width": max(1.0, self(end) - self(begin)), **kept}


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the picture with its label, its height and its content; if `is_head` is true, the row is a heading."""

    label: str
    height: float
    parts: tuple[str, ...] = ()
    is_head: bool = False


def timeline_svg(chart: Chart, width: int, marked: frozenset[str] = frozenset(), *, has_styles: bool = True) -> str:
    """Draw the whole picture."""
    gutter = 12 + max((width_of(track.name, 10.6) for track in chart.tracks), default=0)
    scale = Scale(width - gutter - 2 * _MARGIN, chart.steps, marked=marked)
    rows = [*rows_of(chart, scale)]
    said = textwrap.wrap(chart.units, int((width - 2 * _MARGIN) / 6.4))
    top = _MARGIN + 60 + 14 * len(said)
    height = top + sum(row.height for row in rows)
    body = [text(chart.title, _MARGIN, _MARGIN + 14, class_="title")]
    body += [text(line, _MARGIN, _MARGIN + 34 + 14 * i, class_="quiet") for i, line in enumerate(said)]
    body.append(key(chart, _MARGIN, top - 14))
    body.append(_axis(scale, _MARGIN + gutter, top + 6, height))
    for y, row in stacked(rows, top):
        class_ = "head" if row.is_head else None
        body.append(text(row.label, _MARGIN, y + (20 if row.is_head else min(15, row.height - 4)), class_=class_))
        body.append(element("g", *row.parts, transform=f"translate({_MARGIN + gutter:g} {y:g})") if row.parts else "")
    paper = element("rect", width=width, height=height + 34, rx=8, class_="paper")
    styles = [STYLE, HATCH] if has_styles else []
    return document([*styles, paper, *body], width, height + 34, chart.title)


def stacked(rows: Iterable[Row], top: float) -> Iterator[tuple[float, Row]]:
    """Yield each row below the preceding row, with the start of the row."""
    for row in rows:
        yield top, row
        top += row.height


def key(chart: Chart, x: float, y: float) -> str:
    """Return the legend of the colors that occur in the picture."""
    spans = [span for track in chart.tracks for span in track.spans]
    there = {"run", *(span.kind for span in spans), *("vain" for span in spans if span.in_vain)}
    there |= {"bytes", "arrival"} if "phase" in there else set()
    parts = []
    for kind in (kind for kind in _KEY if kind in there):
        fill = {"fill": "url(#waits)"} if kind == "wait" else {"class_": kind}
        parts.append(element("rect", x=x, y=y - 9, width=14, height=10, rx=2, **fill))
        parts.append(text(_KEY[kind], x + 19, y, class_="quiet"))
        x += 52 + 5.9 * len(_KEY[kind])
    return "".join(parts)


def _axis(scale: Scale, left: float, top: float, bottom: float) -> str:
    """Draw lines at round numbers of steps, with the numbers below the lines."""
    every = next(
        factor * 10**power
        for power in range(12)
        for factor in (1, 2, 5)
        if scale(factor * 10**power) > _GAP_STEPS_PIXELS
    )
    parts = []
    for step in range(0, scale.steps + 1, every):
        x = left + scale(step)
        parts.append(element("line", x1=x, x2=x, y1=top, y2=bottom + 4, class_="grid"))
        words = f"{step:,}" + (" steps" if step == 0 else "")
        parts.append(text(words, x, bottom + 18, class_="axis", text_anchor="start" if step == 0 else "middle"))
    return "".join(parts)


# ---- rows ----


def rows_of(chart: Chart, scale: Scale) -> Iterator[Row]:
    """Yield the rows of one CTA after the other."""
    for block, tracks in groupby(chart.tracks, attrgetter("block")):
        yield Row(f"block {block}", _HEADER, is_head=True)
        for track in tracks:
            yield from {"warps": _warps, "copies": _copies, "mbarrier": _mbarrier}[track.kind](track, scale)


def _warps(track: Track, scale: Scale) -> Iterator[Row]:
    """Yield the rows of warps with their waits. A strip below a row shows the warps' products."""
    life = element("rect", **scale.place(track.begin, track.end), y=3, height=17, rx=2, class_="run")
    parts = [life]
    for span in track.spans:
        if span.kind in ("wgmma", "tcgen05"):
            parts.append(_bar(span, scale, y=22, height=5, class_=f"{span.kind} rim", stroke_width=0.5))
        else:
            fill = {"class_": "vain"} if span.in_vain else {"fill": "url(#waits)"}
            parts.append(_bar(span, scale, y=3, height=17, label=15, **fill))
    yield Row(track.name, _WARPS, tuple(parts))


def _copies(track: Track, scale: Scale) -> Iterator[Row]:
    """Yield rows of copies.

    Concurrent copies are in separate rows. If there are many copies, the function merges copies that begin at similar
    steps.
    """
    lines = _packed(track.spans)
    if len(lines) > _MOST_LABELLED:
        lines = _packed([*_together(track.spans)])
    height = _COPY if len(lines) <= _MOST_LABELLED else _THIN
    for number, spans in enumerate(lines):
        bars = [_copy_bar(span, scale, height) for span in spans]
        yield Row(track.name if number == 0 else "", height, tuple(bars))
    yield Row("", 6)


def _copy_bar(span: Span, scale: Scale, height: float) -> str:
    return _bar(span, scale, y=1, height=height - 2, rx=2, class_=span.kind, label=12 if height == _COPY else None)


def _packed(spans: Sequence[Span]) -> list[list[Span]]:
    """Pack spans into rows, so that concurrent spans are in different rows. Use as few rows as possible."""
    lines: list[list[Span]] = []
    for span in spans:
        free = next((line for line in lines if line[-1].end <= span.begin), None)
        if free is None:
            lines.append([span])
        else:
            free.append(span)
    return lines


def _together(spans: Sequence[Span]) -> Iterator[Span]:
    """Merge the copies of one statement that several warps begin at about the same time."""
    groups: list[list[Span]] = []
    for span in spans:
        found = next((g for g in groups[::-1] if g[0].source == span.source and span.begin - g[-1].begin < _SOON), None)
        if found is None:
            groups.append([span])
        else:
            found.append(span)
    for group in groups:
        details = [f"{len(group)} at about the same time:"] * (len(group) > 1) + [span.detail for span in group[:4]]
        more = ["..."] * (len(group) > 4)
        label = f"{len(group)} × {group[0].label.split()[0]}" if len(group) > 1 else group[0].label
        yield replace(group[0], end=group[-1].end, label=label, detail="\n".join(details + more))


def _mbarrier(track: Track, scale: Scale) -> Iterator[Row]:
    """Yield the row of an mbarrier, with its phases in two shades, and the missing bytes above the phases."""
    parts = []
    for span in track.spans:
        odd = "odd" if int(span.label) % 2 else "phase"
        class_ = "vain" if span.in_vain and span.detail and track.levels[-1][1:] != (0, 0) else odd
        parts.append(_bar(span, scale, y=2, height=16, class_=f"{class_} rim"))
        if scale.live or scale(span.end - span.begin) > 20:
            middle = (span.begin + span.end) / 2
            at = {"data_b": middle, "data_w": 20} if scale.live else {}
            parts.append(text(span.label, scale(middle), 14, class_="in", text_anchor="middle", **at))
    parts += [*_lacking(track, scale), *_arrivals(track, scale)]
    yield Row(track.name, _MBARRIER, tuple(parts))


def _lacking(track: Track, scale: Scale) -> Iterator[str]:
    """Yield the expected bytes that have not arrived, as a bar whose height is the number of these bytes."""
    most = max((tx for _, _, tx in track.levels), default=0)
    for (begin, _, tx), (end, _, _) in _ends_of(track):
        if tx > 0 and most:
            high = max(1.0, 5 * tx / most)
            yield element("rect", **scale.place(begin, end), y=18 - high, height=high, class_="bytes")


def _arrivals(track: Track, scale: Scale) -> Iterator[str]:
    """Yield a mark for each arrival at the mbarrier."""
    for (_, before, _), (at, after, _) in _ends_of(track):
        if after < before and at < track.end:
            yield element("rect", **scale.place(at, at) | {"width": 1.5}, y=2, height=5, class_="arrival")


def _ends_of(track: Track) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """Return each level together with the next level."""
    following = (*track.levels[1:], (track.end, 0, 0))
    return zip(track.levels, following, strict=True)


def _bar(span: Span, scale: Scale, *, label: float | None = None, **attributes: object) -> str:
    """Return a rectangle with its details. Add the label of the rectangle if there is room."""
    place = scale.place(span.begin, span.end)
    if span.source in scale.marked:
        attributes |= {"stroke": _MARK, "stroke_width": 2}
    words = ""
    if label is not None and (scale.live or width_of(span.label, _SMALL) + 6 <= float(str(place["width"]))):
        at = {"data_b": span.begin, "data_w": width_of(span.label, _SMALL) + 6} if scale.live else {}
        words = text(span.label, scale(span.begin) + 3, label, class_="in", **at)
    if scale.live:
        return element("rect", **place, **attributes, data_tip=span.detail) + words
    return element("rect", element("title", escape(span.detail)), **place, **attributes) + words
