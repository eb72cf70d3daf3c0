"""Memory that a program has not freed at its end, as findings.

The option ``--leak-check full`` of memcheck also reports memory that is not freed.

The findings are advice, because a program may intentionally keep its memory until its end, and memcheck reports leaks
only on request. The library writes the leaks as the last step of a process (``libcuda/memory/leaks.c``), with the texts
of :func:`leak_text`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ..simulate._findings import Finding
from ..simulate._ptx import Place
from ..simulate._report import Report, suppressed
from ..simulate._suppression import Suppression
from .launched import Launched, launching_place

__all__ = ["leak_text", "leaked"]

# Each key is the number of a kind of memory in driver.h.
_NAMES = {0: "device memory", 1: "memory of a pool", 3: "managed memory"}
_FREES = {1: "cuMemFreeAsync"}
# The libraries in _KEEPERS keep memory in their own pools until the process ends.
_KEEPERS = ("cupy", "numba.cuda", "torch.cuda.memory")
_RULE = "CUDA Driver API: memory stays allocated until it is freed or its context is destroyed"
_Group = tuple[int, str]


def leak_text(kind: int) -> bytes:
    """Return the text that the library writes if an allocation leaks. The text is the allocation's place as JSON, or
    empty if the allocation cannot leak.
    """
    if kind not in _NAMES or any(name in sys.modules for name in _KEEPERS):
        return b""
    at = launching_place()
    return json.dumps(None if at is None else [at.file, at.line, at.column, at.function]).encode() + b"\0"


def leaked(folder: Path, suppressions: tuple[Suppression, ...]) -> list[Launched]:
    """Return a finding for each kind and place of the leaks that the processes of a session have written."""
    counts, sizes = Counter[_Group](), Counter[_Group]()
    for kind, size, text in _lines(folder):
        count, group = (int(text), (kind, "null")) if kind < 0 else (1, (kind, text))
        counts[group] += count
        sizes[group] += size
    launches = []
    for number, ((kind, text), count) in enumerate(counts.items()):
        place = json.loads(text)
        at = None if place is None else Place(*place)
        report = suppressed(Report((_finding(kind, count, sizes[kind, text], at),)), suppressions)
        launches.append(Launched(number, "the program", "CUDA driver", report=report, launched_at=at))
    return launches


def _lines(folder: Path) -> Iterator[tuple[int, int, str]]:
    for path in sorted(folder.glob("*.leaks")):
        for line in path.read_text("utf-8", "replace").splitlines():
            kind, size, text = line.split(" ", 2)
            yield int(kind), int(size), text


def _finding(kind: int, count: int, size: int, at: Place | None) -> Finding:
    name = "memory" if kind < 0 else _NAMES[kind]
    what = f"{size:,} bytes of {name}" if count == 1 else f"{count:,} allocations, {size:,} bytes of {name},"
    verb = "is" if count == 1 else "are"
    remedy = f"free it with {_FREES.get(kind, 'cuMemFree')} or the function of the runtime"
    message = f"{what} {verb} not freed when the program ends. {_RULE}. Remedy: {remedy}"
    source = () if at is None else (at,)
    return Finding("leak", "advice", message, source=source, count=count, rule=_RULE, remedy=remedy)
