"""Self-contained pages in addition to the pages of the site, which are the swizzle explorer and a timeline with
a zoom."""

from __future__ import annotations

from pathlib import Path

from draw_docs import gemm
from sphinx.application import Sphinx

from cuda_tma import plot


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        out = Path(app.outdir)
        (out / "swizzle_explorer.html").write_text(plot.explorer(), encoding="utf-8")
        gemm().write(out / "timeline_gemm.html")
