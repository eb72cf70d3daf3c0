"""A timeline as one page with zoom and scrolling, which shows details at the pointer or the focus."""

from __future__ import annotations

from html import escape
from pathlib import Path

from .pages import filled
from .svg import MONO, SANS, document, element, text
from .timeline_svg import HATCH, STYLE, Chart, Scale, key, rows_of, stacked

__all__ = ["timeline_html"]

_PIXELS = 1400  # Without a zoom, the width of the timeline is 1400 pixels.
_HEAD, _FOOT = 18, 6

# The function replaces each name in double braces, such as {{name}}, in the template of the page.
_PAGE = Path(__file__).with_name("timeline.html")


def timeline_html(chart: Chart) -> str:
    """Return the whole page of a timeline."""
    scale = Scale(_PIXELS, chart.steps, live=True)
    rows = [*rows_of(chart, scale)]
    bottom = _HEAD + sum(row.height for row in rows)
    names, bars = [], []
    for y, row in stacked(rows, _HEAD):
        class_ = "head" if row.is_head else None
        names.append(text(row.label, 0, y + (20 if row.is_head else min(15, row.height - 4)), class_=class_))
        if row.parts:
            bars.append(element("g", *row.parts, transform=f"translate(0 {y:g})"))
    gutter = 14 + max((7 * len(row.label) for row in rows), default=0)
    return filled(
        _PAGE,
        title=escape(chart.title),
        units=escape(chart.units),
        sans=SANS,
        mono=MONO,
        key=document([key(chart, 2, 14)], 860, 20, "legend of the colors"),
        names=document(names, gutter, bottom + _FOOT, "the rows' names"),
        time=document([STYLE, HATCH, element("g", " ", id="axis"), *bars], _PIXELS, bottom + _FOOT, chart.title),
        steps=str(max(1, chart.steps)),
        pixels=str(_PIXELS),
        bottom=f"{bottom:g}",
    )
