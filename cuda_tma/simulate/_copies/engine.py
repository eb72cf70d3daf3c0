"""The engine of asynchronous operations, each of which takes effect in one or two stages.

An operation may take effect at any time between its instruction and the wait for the operation. A kernel must be
correct for each possible time. The order of the launch determines the time. In the order ``early``, an operation takes
effect at once. In the order ``late``, an operation takes effect when no thread can continue without the operation. In
the order ``random``, an operation takes effect at a random time, which the seed determines.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence

import numpy as np

__all__ = ["ORDERS", "Engine", "Operation"]

ORDERS = ("early", "late", "random")
# In the order "random", a pending operation completes after a turn of the threads with a probability of 0.3.
_NOW = 0.3


class Operation:
    """The remaining stages of one asynchronous operation.

    Attributes
    ----------
    ctas : tuple of int
        The resident CTAs whose shared memory the first stage reads.
    """

    __slots__ = ("_done", "_stages", "ctas")

    def __init__(self, stages: Iterable[Callable[[], None]], ctas: tuple[int, ...] = ()):
        self._stages = [*stages]
        self._done = 0
        self.ctas = ctas

    @property
    def pending(self) -> bool:
        """Return whether the operation still has a stage to execute."""
        return self._done < len(self._stages)

    def advance(self, stages: int | None = None) -> None:
        """Execute the remaining stages up to number `stages`; the default is all remaining stages."""
        last = len(self._stages) if stages is None else stages
        while self._done < last:
            # The counter changes before the call, so that a stage that raises an error also counts as done.
            self._done += 1
            self._stages[self._done - 1]()


class _Group:
    """A group of asynchronous operations that one wait completes together.

    Attributes
    ----------
    operations : list of Operation
    owners : sequence of int
        The threads that share the group.
    is_closed : bool
        Whether one of the owners has committed the group.
    """

    __slots__ = ("_done", "is_closed", "operations", "owners")

    def __init__(self, operations: list[Operation], owners: Sequence[int]):
        self.operations, self.owners, self.is_closed = operations, owners, False
        self._done: list[int | None] = []

    def advance(self, stages: int | None) -> None:
        """Execute the remaining stages of each operation up to number `stages`; the default is all remaining stages."""
        if stages not in self._done:
            for operation in self.operations:
                operation.advance(stages)
            if self.is_closed:
                self._done.append(stages)


class Engine:
    """All pending asynchronous operations, and the groups by which threads wait for these operations.

    Attributes
    ----------
    is_early : bool
        Whether each operation takes effect at once.
    """

    def __init__(self, order: str, generator: np.random.Generator | None, cluster_ctas: int):
        self.is_early, self._random, self._cluster_ctas = order == "early", generator, cluster_ctas
        self._pending: list[Operation] = []
        self._open: dict[tuple[str, int], _Group] = {}
        self._groups: dict[tuple[str, int], deque[_Group]] = defaultdict(deque)

    def submit(self, operation: Operation, kind: str | None = None, owners: Sequence[int] = ()) -> None:
        """Begin an operation, and add it to the open groups of `owners` if `kind` is given."""
        if self.is_early:
            operation.advance()
            return
        self._pending.append(operation)
        if not kind or not owners:
            return
        known = self._open.get((kind, owners[0]))
        if known is not None and not known.is_closed and known.owners == owners:
            known.operations.append(operation)
            return
        keys = [(kind, owner) for owner in owners]
        if all(key not in self._open for key in keys):
            self._open.update(dict.fromkeys(keys, _Group([operation], owners)))
            return
        for key in keys:
            before = self._open[key].operations if key in self._open else ()
            self._open[key] = _Group([*before, operation], key[1:])

    def commit(self, kind: str, owners: Iterable[int]) -> None:
        """Commit the open groups of `owners`."""
        if not self.is_early:
            for owner in owners:
                group = self._open.pop((kind, owner), None) or _Group([], (owner,))
                group.is_closed = True
                self._groups[kind, owner].append(group)

    def wait(self, kind: str, owners: Iterable[int], most: int, stages: int | None = None) -> None:
        """Complete all groups of `owners` except the last `most` groups.

        With `stages`, complete only the first stages of their operations.
        """
        if self.is_early:
            return
        for owner in owners:
            groups = self._groups[kind, owner]
            for group in [*groups][: max(0, len(groups) - most)]:
                group.advance(stages)
                if stages is None:
                    groups.popleft()

    def begun_by(self, kind: str, owner: int) -> list[Operation]:
        """Return the committed and uncommitted operations of a thread for which the thread has not waited."""
        groups = [*self._groups.get((kind, owner), ()), self._open.get((kind, owner))]
        return [operation for group in groups if group is not None for operation in group.operations]

    # ---- times of completion ----

    @property
    def is_busy(self) -> bool:
        """Return whether an operation is pending."""
        return bool(self._pending)

    def maybe_complete(self) -> None:
        """If the order is random, complete a pending operation at random times."""
        if self._random is not None and self._pending and self._random.random() < _NOW:
            self._pending.pop(int(self._random.integers(len(self._pending)))).advance()

    def complete_one(self) -> bool:
        """Complete a pending operation of each cluster, because no thread can continue.

        Return False if no operation is pending. The simulator runs faster if clusters continue together.
        """
        chosen: dict[int, Operation] = {}
        for operation in self._pending if self._random is None else self._shuffled(self._random):
            if operation.pending:
                chosen.setdefault(operation.ctas[0] // self._cluster_ctas, operation)
        done = {*map(id, chosen.values())}
        self._pending = [each for each in self._pending if each.pending and id(each) not in done]
        for operation in chosen.values():
            operation.advance()
        return bool(chosen)

    def _shuffled(self, random: np.random.Generator) -> list[Operation]:
        return [self._pending[at] for at in random.permutation(len(self._pending)).tolist()]

    def complete_all(self) -> None:
        """Complete all operations at the end of the grid."""
        while self.complete_one():
            pass

    def complete_reads_of(self, ctas: range) -> None:
        """Complete the reads of `ctas`, so that the CTAs may reuse the shared memory that was read."""
        for operation in self._pending:
            if any(cta in ctas for cta in operation.ctas):
                operation.advance(1)
