"""``python -m benchmarks.kernels.after [EXAMPLE ...]``: what a kernel that keeps data in L2 leaves to the next one.

``evict_last`` on data that is read once may make a kernel faster, and the one after it slower, for whose data L2 then
has less room. So both are timed: the example's kernel as it is and without ``evict_last``, and after each of them
another, which reads and writes 24 MB, half of L2, eight times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from . import example
from .processes import arguments, print_figures
from .regimes import After

__all__ = ["Neighbours"]

EXAMPLES = ("copy_2d", "transpose", "gather_rows", "kv_tiles")
TIMES, ELEMENTS = 8, 1 << 21  # of float32: 8 MB in each of three tensors


class Neighbours:
    """An example as it is, and without ``evict_last``; and the next kernel after each."""

    def __init__(self, name: str) -> None:
        self.keeping, self.plain = example(name), example(name)
        self.plain.SOURCE = self.plain.SOURCE.replace("evict_last()", "evict_normal()")
        self.LARGE = self.keeping.LARGE

    def cases(self, sizes: Sequence[object]) -> Iterator[tuple[Any, ...]]:
        """As an example's. Its rivals run once, as their results are checked too."""
        import torch

        first, second, total = (torch.ones(ELEMENTS, device="cuda") for _ in range(3))
        following = partial(repeated, partial(torch.add, first, second, out=total))
        pairs = zip(self.keeping.cases(sizes), self.plain.cases(sizes), strict=True)
        for (case, keeping, rivals, *work), (_, plain, its_rivals, *_) in pairs:
            for rival in (*rivals.values(), *its_rivals.values()):
                rival()
            yield case, keeping, {"without evict_last": plain}, *work
            beside = {"after it without evict_last": After(plain, following)}
            name = f"{case}: {TIMES} sums of {total.nbytes >> 20} MB after it"
            yield name, After(keeping, following), beside, 0, TIMES * 3 * total.nbytes


def repeated(run: Any) -> None:
    for _ in range(TIMES):
        run()


def main(argv: Sequence[str] | None = None) -> None:
    given = arguments("after", __doc__, EXAMPLES).parse_args(argv)
    print_figures("The next kernel after those that keep data in L2", given, ["--after"])


if __name__ == "__main__":
    main()
