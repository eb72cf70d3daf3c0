"""``python -m benchmarks.kernels.watched [EXAMPLE ...]``: what a watchdog costs: each kernel with one, beside itself.

Both run in one process, in turns, and what they left is checked.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import cuda_tma

from . import example
from .figures import Figures, markdown, together
from .processes import in_processes

__all__ = ["Watched"]

EXAMPLES = ("gemm", "conv_im2col", "grouped_gemm")
WATCHDOG_MS = 10_000


class Watched:
    """An example whose kernels are compiled with a watchdog; the rival is the same without."""

    def __init__(self, name: str) -> None:
        self.watched, self.plain = example(name), example(name)
        self.LARGE = self.plain.LARGE
        compile_watched = partial(cuda_tma.compile, watchdog_ms=WATCHDOG_MS)
        self.watched.cuda_tma = SimpleNamespace(**{**vars(cuda_tma), "compile": compile_watched})

    def cases(self, sizes: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """As an example's. Its rivals run once, as their results are checked too."""
        pairs = zip(self.watched.cases(sizes), self.plain.cases(sizes), strict=True)
        for (case, run, rivals, *work), (_, plain, its_rivals, *_) in pairs:
            for rival in (*rivals.values(), *its_rivals.values()):
                rival()
            yield case, run, {"without watchdog": plain}, *work


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.kernels.watched", description=__doc__)
    parser.add_argument("examples", nargs="*", default=EXAMPLES, metavar="EXAMPLE", help=" ".join(EXAMPLES))
    parser.add_argument("--runs", type=int, default=3, help="processes (default: 3)")
    given = parser.parse_args(argv)
    runs = in_processes(given.examples, given.runs, ["--watched"])
    print(markdown(Figures("Kernels with a watchdog, beside themselves without", together(runs))))


if __name__ == "__main__":
    main()
