"""Self-contained HTML pages, which are made from the templates in this folder."""

from __future__ import annotations

from pathlib import Path

__all__ = ["filled"]


def filled(page: Path, **parts: str) -> str:
    """Return a template in which the given parts replace each ``{{name}}``."""
    text = page.read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text
