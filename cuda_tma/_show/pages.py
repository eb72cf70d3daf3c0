"""Self-contained HTML pages, which are templates of this folder with their parts filled in."""

from __future__ import annotations

from pathlib import Path

__all__ = ["filled"]


def filled(page: Path, **parts: str) -> str:
    """Return a page in which parts replace each ``{{name}}``."""
    text = page.read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text
