"""The chart of the kernels' speeds, which is drawn from the recorded table when the site is built."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx
from write_figures import rows_of

from benchmarks.kernels.chart import draw
from benchmarks.kernels.figures import Figure, Figures

MARK = "<!-- picture: kernels -->"
PICTURE = """Filled marks are sustained speeds, hollow marks bursts.

![the speeds of the kernels and of their rivals](benchmarks/kernels.svg)"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", _draw)
    app.connect("source-read", _show)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def tables_of(page: str) -> list[Figures]:
    """Return the tables of ``docs/benchmarks/kernels.md``, without the rows that have no speed."""
    tables: dict[str, list[Figure]] = {}
    for row in rows_of(page):
        if row["ours"]:
            operations = 10**9 if row[""] == "TFLOP/s" else 0  # With 10**9 operations, 1 ms is one unit of speed.
            ours_ms, rival_ms = ((1 / float(row[name]),) for name in ("ours", "rival's"))
            figure = Figure(
                row["kernel"].strip("`"), row["case"], row["rival"], ours_ms, rival_ms, row["regime"], operations, 10**9
            )
            tables.setdefault(row["table"], []).append(figure)
    return [Figures(title, figures) for title, figures in tables.items()]


def _draw(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "benchmarks"
    draw(tables_of((folder / "kernels.md").read_text(encoding="utf-8")), folder / "kernels.svg")


def _show(app: Sphinx, page: str, source: list[str]) -> None:
    if page == "speed":
        source[0] = source[0].replace(MARK, PICTURE)
