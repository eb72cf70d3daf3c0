"""The command ``python -m benchmarks.kernels.against VARIANT [EXAMPLE ...]``, which compares the time of each example's
kernel with that of a variant.

The section below lists the values of VARIANT.

The example and its variant run in one process, in turns, through the installed package. Each example checks the results
of its launches.

Variants
--------
- ``unwatched``: the example is compiled with a watchdog, and its variant without a watchdog;
- ``evicted``: the variant has no ``evict_last``. The next kernel is timed, too. It reads and writes 24 MB, half of L2,
  eight times, and has less space in L2 if the preceding kernel keeps data there;
- a folder with ``examples`` and ``cuda_tma/include`` of another commit, whose kernels are the variants.

Examples
--------
    mkdir -p build/earlier && git archive COMMIT examples cuda_tma/include | tar -x -C build/earlier
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import cuda_tma

from . import example
from .figures import Figures, markdown, together
from .processes import in_processes
from .regimes import After, Run

PRODUCTS = ("gemm", "conv_im2col", "grouped_gemm")
# In a run of the kind "evicted", other data has replaced the data of the example in L2.
EXAMPLES = {"evicted": ("copy_2d", "transpose", "gather_rows", "kv_tiles")}
WATCHDOG_MS = 10_000
TIMES, ELEMENTS = 8, 1 << 21  # ELEMENTS float32 elements take 8 MB in each of three tensors.
_INCLUDE = re.compile(r"^#include <(cuda_tma/\w+\.cuh)>$", re.MULTILINE)
_ONCE = "#pragma once\n"


class Pair:
    """An example whose only rival is the kernel of its variant. `follow` makes a run that is timed after each of both
    kernels.
    """

    def __init__(self, ours: Any, variant: Any, rival: str, follow: Callable[[], Run] | None = None) -> None:
        self.ours, self.variant, self.rival, self.follow = ours, variant, rival, follow
        self.LARGE = ours.LARGE

    def cases(self, sizes: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """Yield the cases of an example. The other rivals run once, because the example also checks their results."""
        following = self.follow() if self.follow else None
        pairs = zip(self.ours.cases(sizes), self.variant.cases(self.variant.LARGE), strict=True)
        for (case, ours, rivals, *work), (_, variant, its_rivals, *_) in pairs:
            for rival in (*rivals.values(), *its_rivals.values()):
                rival()
            yield case, ours, {self.rival: variant}, *work
            if following:
                beside = {f"after it {self.rival}": After(variant, following)}
                yield f"{case}: the next kernel", After(ours, following), beside, 0, TIMES * 3 * 4 * ELEMENTS


def pair_of(variant: str, name: str) -> Pair:
    """Return an example and the variant of the example."""
    if variant == "unwatched":
        return _unwatched(name)
    return _evicted(name) if variant == "evicted" else Pair(example(name), _earlier(name, Path(variant)), "earlier")


def _unwatched(name: str) -> Pair:
    watched = example(name)
    compile_watched = partial(cuda_tma.compile, watchdog_ms=WATCHDOG_MS)
    watched.cuda_tma = SimpleNamespace(**{**vars(cuda_tma), "compile": compile_watched})
    return Pair(watched, example(name), "without watchdog")


def _evicted(name: str) -> Pair:
    plain: Any = example(name)
    plain.SOURCE = plain.SOURCE.replace("evict_last()", "evict_normal()")
    return Pair(example(name), plain, "without evict_last", _sums)


def _sums() -> Run:
    import torch

    first, second, total = (torch.ones(ELEMENTS, device="cuda") for _ in range(3))

    def run() -> None:
        for _ in range(TIMES):
            torch.add(first, second, out=total)

    return run


def _earlier(name: str, folder: Path) -> Any:
    """Load the example of another commit, with the other modules and the header of that commit."""
    modules: dict[str, ModuleType] = {}
    neighbor = sys.modules.pop("_example", None)
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
        if neighbor is not None:
            sys.modules["_example"] = neighbor
    found: Any = modules[name]
    found.SOURCE = with_headers(found.SOURCE, folder / "cuda_tma" / "include")
    return found


def with_headers(source: str, include: Path) -> str:
    """Replace each ``#include`` of the package's headers by the text of the header."""
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
    parser = argparse.ArgumentParser(
        "python -m benchmarks.kernels.against",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("variant", metavar="VARIANT", help="unwatched, evicted, or a folder")
    parser.add_argument("examples", nargs="*", metavar="EXAMPLE", help="default: those that the variant concerns")
    parser.add_argument("--runs", type=int, default=3, help="processes (default: 3)")
    given = parser.parse_args(argv)
    folder = Path(given.variant)
    if given.variant not in ("unwatched", "evicted") and not (
        (folder / "examples").is_dir() and (folder / "cuda_tma" / "include").is_dir()
    ):
        parser.error(f"{given.variant} does not hold examples and cuda_tma/include: see --help")
    names = given.examples or EXAMPLES.get(given.variant, PRODUCTS)
    figures = together(in_processes(names, given.runs, ["--against", given.variant]))
    print(markdown(Figures(f"Kernels and their variants: {given.variant}", figures)))


if __name__ == "__main__":
    main()
