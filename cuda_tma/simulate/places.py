"""The order in which a finding shows its places: the user's statement first, the device header's after it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ..include_path import include_path
from .ptx import Place

__all__ = ["absolute", "by_way_of", "shown_path", "statements"]


def statements(places: Sequence[Place]) -> tuple[list[Place], list[Place]]:
    """Divide a chain of inlined calls into the user's places and those in the device header.

    A chain that lies in the header as a whole keeps its outermost place as the user's.
    """
    header = f"{Path(include_path())}{os.sep}"
    own = [place for place in places if not place.file.startswith(header)]
    return (own, [place for place in places if place not in own]) if own else (list(places[-1:]), list(places[:-1]))


def by_way_of(inner: Sequence[Place]) -> str:
    """Name the places in the device header that lead from the user's statement to the instruction."""
    names = ", ".join(f"{Path(place.file).name}:{place.line}" for place in reversed(inner))
    return f", by way of {names}" if names else ""


def absolute(file: str) -> Path:
    """Return a path without ``..``, which compilers keep; links are kept."""
    return Path(os.path.abspath(file))


def shown_path(file: str) -> str:
    """Return a path relative to the working directory if the file lies below it."""
    try:
        return str(absolute(file).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return file
