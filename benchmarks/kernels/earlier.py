"""``python -m benchmarks.kernels.earlier FOLDER [EXAMPLE ...]``: each example's kernel beside that of another commit.

FOLDER holds ``examples`` and ``cuda_tma/include`` of that commit::

    mkdir -p build/earlier && git archive COMMIT examples cuda_tma/include | tar -x -C build/earlier

Both run in one process, in turns, through the package that is installed, and what they left is checked by the example
that each belongs to. The header that an earlier kernel includes is its own: it is put into its source.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from . import example
from .processes import arguments, print_figures

__all__ = ["Pair", "with_headers"]

EXAMPLES = ("gemm", "conv_im2col", "grouped_gemm")
_INCLUDE = re.compile(r"^#include <(cuda_tma/\w+\.cuh)>$", re.MULTILINE)
_ONCE = "#pragma once\n"


class Pair:
    """An example as it is and as it was: its cases are those of both, and the rival is the earlier kernel."""

    def __init__(self, name: str, folder: Path) -> None:
        self.now, self.earlier = example(name), _earlier(name, folder)
        self.LARGE = self.now.LARGE

    def cases(self, sizes: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """As an example's. Its rivals run once, as their results are checked too."""
        pairs = zip(self.now.cases(sizes), self.earlier.cases(self.earlier.LARGE), strict=True)
        for (case, run, rivals, *work), (_, earlier, its_rivals, *_) in pairs:
            for rival in (*rivals.values(), *its_rivals.values()):
                rival()
            yield case, run, {"earlier": earlier}, *work


def _earlier(name: str, folder: Path) -> Any:
    """The example of another commit, which finds the neighbour of its own time, and its own header."""
    modules: dict[str, ModuleType] = {}
    neighbour = sys.modules.pop("_example", None)
    try:
        for stem in ("_example", name):
            spec = importlib.util.spec_from_file_location(stem, folder / "examples" / f"{stem}.py")
            assert spec is not None and spec.loader is not None
            modules[stem] = importlib.util.module_from_spec(spec)
            if stem == "_example":
                sys.modules[stem] = modules[stem]
            spec.loader.exec_module(modules[stem])
    finally:
        sys.modules.pop("_example", None)
        if neighbour is not None:
            sys.modules["_example"] = neighbour
    found: Any = modules[name]
    found.SOURCE = with_headers(found.SOURCE, folder / "cuda_tma" / "include")
    return found


def with_headers(source: str, include: Path) -> str:
    """A source with the text of the package's headers in the place of their ``#include``."""
    seen: set[str] = set()

    def text_of(match: re.Match[str]) -> str:
        header = match[1]
        if header in seen:
            return ""
        text = (include / header).read_text()
        if _ONCE in text:
            seen.add(header)
        return _INCLUDE.sub(text_of, text.replace(_ONCE, ""))

    return _INCLUDE.sub(text_of, source)


def main(argv: Sequence[str] | None = None) -> None:
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("folder", type=Path, metavar="FOLDER")
    parser = arguments("earlier", __doc__, EXAMPLES, [first])
    given = parser.parse_args(argv)
    if not (given.folder / "examples").is_dir() or not (given.folder / "cuda_tma" / "include").is_dir():
        parser.error(f"{given.folder} does not hold examples and cuda_tma/include: see --help")
    print_figures(f"Kernels beside those in {given.folder}", given, ["--earlier", str(given.folder)])


if __name__ == "__main__":
    main()
