"""Recordings of hardware: a gzip file with one JSON object a line."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path

__all__ = ["first_of_each", "read", "write"]


def read(path: str | Path) -> list[dict]:
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def write(path: str | Path, rows: Iterable[dict]) -> None:
    """The same rows give the same bytes."""
    text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    Path(path).write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def first_of_each(group: Callable[[dict], Hashable], rows: Iterable[dict]) -> list[dict]:
    """The first row of each group."""
    first: dict[Hashable, dict] = {}
    for row in rows:
        first.setdefault(group(row), row)
    return list(first.values())
