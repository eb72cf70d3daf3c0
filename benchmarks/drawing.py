"""Code that the pictures of all benchmarks share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

OURS, PEER, CEILING = "#76b900", "#b0b7bf", "#4a4f57"
WIDTH_INCHES = 13


@contextmanager
def svg(path: Path, height_inches: float) -> Iterator[Any]:
    """Yield an empty figure, and write the figure at the end of the block. Equal drawings give equal bytes.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.hashsalt": "benchmarks", "font.size": 8, "svg.fonttype": "none"}):
        figure = Figure(figsize=(WIDTH_INCHES, height_inches), layout="constrained")
        yield figure
        figure.savefig(path, format="svg", metadata={"Date": None})


def begin(panel: Any, title: str) -> None:
    """Draw the heading of a panel, and a frame on two sides."""
    panel.set_title(title, loc="left", fontweight="bold")
    panel.spines[["top", "right"]].set_visible(False)
