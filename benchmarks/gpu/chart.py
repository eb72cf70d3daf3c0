"""The comparisons as one picture, in which each comparison has a panel with a bar for each row and a mark at
the goal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..comparison import Comparison, Row
from ..drawing import CEILING as FLOOR
from ..drawing import OURS, PEER, begin, svg

GOAL = "#d1242f"
OUR_OTHER = "#c3e08a"  # OUR_OTHER is the color of calls for which the benchmarks set no goal.
ROW_INCHES = 0.26
PANEL_INCHES = 0.75
COLUMNS = 2


def draw(comparisons: Sequence[Comparison], path: Path) -> None:
    """Write an SVG of the tables, if the tables contain a measurement."""
    shown = [comparison for comparison in comparisons if _measured(comparison)]
    if not shown:
        return
    pairs = [shown[at : at + COLUMNS] for at in range(0, len(shown), COLUMNS)]
    heights = [PANEL_INCHES + ROW_INCHES * max(len(_measured(c)) for c in pair) for pair in pairs]
    with svg(path, sum(heights)) as figure:
        panels = figure.subplots(len(pairs), COLUMNS, squeeze=False, gridspec_kw={"height_ratios": heights}).flat
        for panel in panels[len(shown) :]:
            panel.set_axis_off()
        for panel, comparison in zip(panels[: len(shown)], shown, strict=True):
            _draw_panel(panel, comparison)


def _measured(comparison: Comparison) -> list[Row]:
    return [row for row in comparison.rows if not row.error]


def _draw_panel(panel: Any, comparison: Comparison) -> None:
    rows = _measured(comparison)
    begin(panel, comparison.title)
    panel.set_yticks(range(len(rows)), [row.name.replace("`", "") for row in rows])
    panel.invert_yaxis()
    panel.set_xlim(0, 1.15 * max(max(row.median_ns, comparison.limit_ns(row) or 0) for row in rows))
    panel.locator_params(axis="x", nbins=5)  # At most five ticks leave space for numbers of six digits.
    panel.set_xlabel("nanoseconds")
    for at, row in enumerate(rows):
        panel.barh(at, row.median_ns, color=_color(comparison, row), height=0.7)
        limit_ns = comparison.limit_ns(row)
        if limit_ns is not None:
            panel.plot([limit_ns, limit_ns], [at - 0.45, at + 0.45], color=GOAL, linewidth=1.5)
        panel.text(max(row.median_ns, limit_ns or 0), at, f" {comparison.shown(row.median_ns)}", va="center")


def _color(comparison: Comparison, row: Row) -> str:
    if row.name in comparison.floor:
        return FLOOR
    if row.name.startswith(("cuda_tma", "`cuda_tma")):
        return OURS if row.is_ours else OUR_OTHER
    return OURS if row.is_ours else PEER
