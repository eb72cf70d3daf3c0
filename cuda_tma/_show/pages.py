"""Pages that stand alone: HTML of this folder, with what is put into it."""

from __future__ import annotations

from pathlib import Path

__all__ = ["filled"]


def filled(page: Path, **parts: str) -> str:
    """A page with parts put where it says ``{{name}}``."""
    text = page.read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text
