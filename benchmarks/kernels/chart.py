"""The figures as one picture, with a chart for each family and a line of dots for each case. The example and its rivals
are dots of one line. Dots are filled for sustained times or times in turns, and hollow for bursts. A dashed line marks
the best plain copy of the same size for kernels that move data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..drawing import CEILING, OURS, PEER, begin, svg
from .figures import Figure, Figures

COPY = "cuMemcpyDtoD"
LINE_INCHES, HEAD_INCHES = 0.2, 0.8
MARKERS = ("s", "^", "D", "v")  # Each of the MARKERS is the mark of one rival in the chart.


def draw(tables: Sequence[Figures], path: Path) -> None:
    """Write an SVG of the figures."""
    shown = [table for table in tables if table.measured]
    heights = [HEAD_INCHES + LINE_INCHES * len(_lines(table)) for table in shown]
    with svg(path, max(1.0, sum(heights))) as canvas:
        if shown:
            panels = canvas.subplots(len(shown), 1, height_ratios=heights, squeeze=False)
            for panel, table in zip(panels[:, 0], shown, strict=True):
                _draw_family(panel, table)


def best(figures: Sequence[Figure], rival: str) -> float:
    """Return the highest speed of this rival, or 0 if the rival was not measured."""
    return max((figure.rival_speed for figure in figures if figure.rival == rival), default=0.0)


def _lines(table: Figures) -> list[str]:
    """Return one figure for each case, in order."""
    return [*dict.fromkeys(f"{figure.kernel}: {figure.case}" for figure in table.measured)]


def _draw_family(panel: Any, table: Figures) -> None:
    begin(panel, table.title)
    lines = _lines(table)
    markers = dict(zip(dict.fromkeys(figure.rival for figure in table.measured), MARKERS * 9, strict=False))
    for figure in table.measured:
        at, is_burst = lines.index(f"{figure.kernel}: {figure.case}"), figure.regime == "burst"
        for speed, color, marker in ((figure.rival_speed, PEER, markers[figure.rival]), (figure.speed, OURS, "o")):
            panel.plot(speed, at, marker, color=color, markerfacecolor="white" if is_burst else color, markersize=5)
    for name, color, marker in (("ours", OURS, "o"), *((name, PEER, marker) for name, marker in markers.items())):
        panel.plot([], [], marker, color=color, label=name)
    panel.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    if ceiling := best(table.measured, COPY):
        panel.axvline(ceiling, color=CEILING, linestyle="--", linewidth=1)
    panel.set_yticks(range(len(lines)), lines)
    panel.set_ylim(len(lines) - 0.5, -0.5)
    panel.set_xlim(left=0)
    panel.set_xlabel(table.measured[0].unit)
    panel.grid(axis="y", linewidth=0.3)
