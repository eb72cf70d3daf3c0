"""The figures as one picture: bars for what moves data, and a roofline for what multiplies, sustained.

Both ceilings are rivals, measured in the same run: cuMemcpyDtoD is the slope, and torch.matmul at its best the roof.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..drawing import CEILING, OURS, PEER, begin, svg
from .figures import Figure, Figures

SLOPE, ROOF = "cuMemcpyDtoD", "torch.matmul"
BAR_INCHES = 0.42


def draw(tables: Sequence[Figures], path: Path) -> None:
    """Write an SVG."""
    measured = [figure for table in tables for figure in table.measured]
    moving = [figure for figure in measured if not figure.flops]
    multiplying = [figure for figure in measured if figure.flops and figure.regime != "burst"]
    with svg(path, max(4.5, 1 + BAR_INCHES * len(moving))) as canvas:
        bars, roofline = canvas.subplots(1, 2)
        _draw_bars(bars, moving, best(moving, SLOPE))
        _draw_roofline(roofline, multiplying, best(moving, SLOPE), best(multiplying, ROOF))


def best(figures: Sequence[Figure], rival: str) -> float:
    """The highest speed of this rival; 0 if it was not measured."""
    return max((figure.rival_speed for figure in figures if figure.rival == rival), default=0.0)


def _draw_bars(panel: Any, figures: Sequence[Figure], ceiling: float) -> None:
    begin(panel, "Data moved: read and written")
    panel.set_xlabel(f"TB/s; dashed: {SLOPE} at its best")
    cases: dict[str, list[Figure]] = {}  # of each one a bar of ours, and one of each rival
    for figure in figures:
        cases.setdefault(f"{figure.kernel}: {figure.case}", []).append(figure)
    middles, top = [], 0.0
    for of_case in cases.values():
        bars = [(of_case[0].speed, OURS, ""), *((f.rival_speed, PEER, f" {f.rival}") for f in of_case)]
        for at, (speed, color, name) in enumerate(bars):
            panel.barh(top + at, speed, height=0.9, color=color)
            panel.text(speed, top + at, f" {speed:.2f}{name}", va="center")
        middles.append(top + (len(bars) - 1) / 2)
        top += len(bars) + 0.6
    panel.set_yticks(middles, list(cases))
    panel.invert_yaxis()
    if ceiling:
        panel.axvline(ceiling, color=CEILING, linestyle="--", linewidth=1)
    panel.set_xlim(0, 1.5 * max([ceiling, *(figure.speed for figure in figures)]) or 1)


def _draw_roofline(panel: Any, figures: Sequence[Figure], slope: float, roof: float) -> None:
    begin(panel, "Matrices multiplied, sustained")
    panel.set(xscale="log", yscale="log", xlabel="operations for each byte that must move", ylabel="TFLOP/s")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.yaxis.set_minor_formatter("{x:g}")
    if slope and roof:
        ridge = roof / slope  # TFLOP/s over TB/s
        panel.plot([ridge / 4, ridge, ridge * 256], [roof / 4, roof, roof], color=CEILING, linewidth=1)
        panel.text(ridge / 3.6, roof / 4, f"{SLOPE}, {slope:.2f} TB/s", va="center")
        panel.text(ridge * 256, roof * 0.98, f"{ROOF}, {roof:.0f} TFLOP/s", ha="right", va="top")
    numbers: dict[str, int] = {}  # of the cases: their names are longer than the points are apart
    for figure in figures:
        number = numbers.setdefault(f"{figure.kernel}: {figure.case}", len(numbers) + 1)
        panel.plot(figure.intensity, figure.rival_speed, "o", color=PEER)
        panel.plot(figure.intensity, figure.speed, "o", color=OURS)
        panel.annotate(str(number), (figure.intensity, figure.speed), (0, 5), textcoords="offset points", ha="center")
    legend = "\n".join(
        textwrap.fill(f"{number}  {case}", 60, subsequent_indent="    ") for case, number in numbers.items()
    )
    panel.text(0.3, 0.1, legend, transform=panel.transAxes, va="bottom")
    panel.plot([], [], "o", color=OURS, label="ours")
    panel.plot([], [], "o", color=PEER, label="its rival")
    panel.legend(loc="lower right", frameon=False)
