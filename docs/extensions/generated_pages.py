"""Pages that are generated when the site is built.

There is a page for each header, and for each error of the driver.
"""

from __future__ import annotations

from pathlib import Path

from error_pages import error_pages
from header_pages import header_pages
from sphinx.application import Sphinx

PAGES = {"headers": header_pages, "errors": error_pages}


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx) -> None:
    """Write the page if it has changed, so that Sphinx does not read an unchanged page again."""
    for folder, pages in PAGES.items():
        made, place = pages(), Path(app.srcdir) / folder
        place.mkdir(exist_ok=True)
        for stale in set(place.glob("*.md")) - {place / name for name in made}:
            stale.unlink()
        for name, text in made.items():
            if not (place / name).exists() or (place / name).read_text(encoding="utf-8") != text:
                (place / name).write_text(text, encoding="utf-8")
