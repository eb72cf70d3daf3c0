"""``python -m benchmarks.kernels.watched [EXAMPLE ...]``: what a watchdog costs: each kernel with one, beside itself.

Both run in one process, in turns, and what they left is checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import cuda_tma

from . import example
from .processes import arguments, print_figures

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
    given = arguments("watched", __doc__, EXAMPLES).parse_args(argv)
    print_figures("Kernels with a watchdog, beside themselves without", given, ["--watched"])


if __name__ == "__main__":
    main()
