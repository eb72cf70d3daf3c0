"""Random mutants of the package's modules by area. The draw prefers mutants of locks, cleanup, refusals, limits and
caches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from evaluation.mutation.operators import Mutant, mutants_of

__all__ = ["AREAS", "area_of", "drawn", "every_mutant"]

# Each area of cuda_tma has a share of the mutants, and patterns of file names; a module belongs to the first area that
# matches. The area "left out" contains modules that need torch, Triton, TileLang or CuTe DSL, and modules that only
# child processes import.
AREAS = {
    "left out": (0, "torch/* _intercept/* __main__.py _version.py _option_fields.py */__init__.py __init__.py"),
    "sanitizer": (15, "simulate/_sanitize/* simulate/_trace/*"),
    "simulator": (35, "simulate/*"),
    "compilation, watchdog": (20, "_compile/* _watchdog/* _launch/* _cuda/* _compile_*.py hang.py graph.py _files.py"),
    "command line": (10, "_command/*"),
    "maps and pictures": (20, "*"),
}  # fmt: skip
CLEANUP = ("dropped with", "finally only without an error", "dropped finally", "dropped cleanup", "dropped handler")


def area_of(path: str) -> str:
    """Return the area of a module, by the module's path from the root of the repository."""
    name = path.removeprefix("cuda_tma/")
    return next(area for area, (_, globs) in AREAS.items() if any(fnmatch(name, glob) for glob in globs.split()))


def _weight(mutant: Mutant) -> float:
    """Return the weight of a mutant, relative to a changed operator."""
    return 10 if mutant.kind in CLEANUP else 4 if mutant.guard else 0.5 if mutant.kind == "constant" else 1


def every_mutant(root: Path, glob: str = "*") -> Iterator[Mutant]:
    """Yield each mutant of the modules whose path from the root matches, except modules without an area."""
    for file in sorted((root / "cuda_tma").rglob("*.py")):
        path = str(file.relative_to(root))
        if fnmatch(path, glob) and (AREAS[area_of(path)][0] or glob != "*"):
            yield from mutants_of(path, file.read_bytes())


def drawn(root: Path, count: int, seed: int, glob: str = "*") -> list[Mutant]:
    """Return different random mutants, each of which compiles as Python."""
    chance = random.Random(seed)
    areas: dict[str, list[Mutant]] = {}
    for mutant in every_mutant(root, glob):
        areas.setdefault(area_of(mutant.path), []).append(mutant)
    names, found = sorted(areas), dict[Mutant, None]()
    shares = [AREAS[name][0] or 1 for name in names]
    weights = {name: [_weight(mutant) for mutant in areas[name]] for name in names}
    for _ in range(20 * count):
        if len(found) == count:
            break
        area = chance.choices(names, shares)[0]
        mutant = chance.choices(areas[area], weights[area])[0]
        if mutant not in found and mutant.is_python((root / mutant.path).read_bytes()):
            found[mutant] = None
    return list(found)
