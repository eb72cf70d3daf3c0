"""Replays of a launch, which decide whether the value of a racing read has an effect.

A racing read may return the value before the write or the value after the write. A replay of the launch returns other
values for the read. The value has no effect if the memory, the output and the number of executed instructions stay the
same. Compilers emit reads without effect: all threads load a scalar, but only one thread uses the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from .._config import Config
from .._kernel import Kernel
from .._machine.machine import Settings
from .._machine.run import Running
from .._memory.altered_reads import AlteredReads
from .._memory.global_memory import GlobalMemory
from .._memory.scratch_memory import ScratchMemory
from .._memory.undefined import Undefined
from .._sanitize import Pair, Sanitizer, UndefinedRead
from .._sanitize.replays import Launched
from .._sanitize.report.remedies import CONFIRMED, NO_EFFECT

__all__ = ["Replay"]

_MOST_REPLAYS = 8  # The simulator replays a launch at most eight times.
_OTHER_BYTES = 0xFF, 0x55
_SPARE_STEPS = 10_000  # A replay may take twice the steps of the launch, plus 10,000 steps.
# The keys of _Bytes are the start addresses of segments.
_Bytes = dict[int, bytes]


class _Outcome(NamedTuple):
    """The memory, the output and the number of instructions of a run, by which replays are compared."""

    memory: _Bytes
    output: str
    thread_steps: int


@dataclass(frozen=True, eq=False)
class Replay:
    """A launch that the simulator can run again.

    Parameters
    ----------
    kernel : Kernel
    config : Config
    block : numpy.ndarray of uint8
        The block of parameters of the kernel.
    memory : GlobalMemory
    settings : Settings
    """

    kernel: Kernel
    config: Config
    block: np.ndarray
    memory: GlobalMemory
    settings: Settings

    def without_effect(self, pairs: Collection[Pair], launched: Launched) -> dict[Pair, str]:
        """Return the pairs whose loads have no effect, each with the reason.

        Parameters
        ----------
        pairs : collection of Pair
            Pairs of a load and a write that race.
        launched : Launched
            The observer of the launch, which has just ended without a fault.
        """
        before = _initial(launched, self.memory)
        if before is None:
            return {}
        most_steps = 2 * launched.progress()[2] + _SPARE_STEPS
        return dict(self._decided(pairs, before, _outcome(launched, self.memory, before), most_steps))

    def with_effect(self, reads: Mapping[tuple, UndefinedRead], launched: Launched) -> set[tuple]:
        """Return the keys of the reads of undefined values that have an effect."""
        before = _initial(launched, self.memory) if reads else None
        if before is None:
            return set()
        expected = _outcome(launched, self.memory, before)
        most_steps = 2 * launched.progress()[2] + _SPARE_STEPS

        def has_effect(some: Collection[UndefinedRead]) -> bool:
            outcomes = (self._run(Sanitizer(), before, most_steps, undefined=each) for each in _undefined(some))
            return any(outcome != expected for outcome in outcomes) and not self.settings.deadline.has_passed

        if not has_effect([*reads.values()]):
            return set()
        some = [*reads.items()][: (_MOST_REPLAYS - 2) // 2]
        return {key for key, read in some if len(reads) == 1 or has_effect([read])}

    def _decided(
        self, pairs: Collection[Pair], before: _Bytes, expected: _Outcome, most_steps: int
    ) -> Iterator[tuple[Pair, str]]:
        watching = Sanitizer(watched=pairs)
        self._run(watching, before, most_steps)
        racing = watching.racing
        yield from ((pair, CONFIRMED) for pair in pairs if racing.is_confirmed(pair[0]))
        pairs = [pair for pair in pairs if not racing.is_confirmed(pair[0])]
        pairs = [(read, write) for read, write in pairs if racing.found[id(read), id(write)]]
        if not racing.is_complete or not pairs:
            return

        def is_same(some: Collection[Pair]) -> bool:
            altered = AlteredReads(_executions(racing.found, some), before, expected.memory)
            return self._run(Sanitizer(), before, most_steps, altered) == expected

        if is_same(pairs):
            yield from ((pair, NO_EFFECT) for pair in pairs)
        elif len(pairs) > 1:
            yield from ((pair, NO_EFFECT) for pair in pairs[: _MOST_REPLAYS - 2] if is_same([pair]))

    def _run(
        self,
        observer: Sanitizer,
        before: _Bytes,
        most_steps: int,
        altered: AlteredReads | None = None,
        undefined: Undefined | None = None,
    ) -> _Outcome | None:
        """Run the launch again on a copy of memory; return None if it ends in a fault."""
        memory = ScratchMemory(self.memory, before)
        settings = replace(self.settings, max_steps=most_steps, altered=altered, undefined=undefined)
        running = Running(self.kernel, self.config, self.block, memory, settings, observer)
        running.go()
        used = _initial(observer, memory)
        running.close()
        return None if running.has_faulted or used is None else _outcome(observer, memory, used)


def _initial(observer: Launched, memory: GlobalMemory) -> _Bytes | None:
    """Return the initial bytes of the arrays that outlive the launch; None if an array has no shadow."""
    before = observer.before()
    if before is None:
        return None
    return {segment.start: data for segment, data in before.items() if memory.find(segment.start) is segment}


def _outcome(observer: Launched, memory: GlobalMemory, used: _Bytes) -> _Outcome:
    """Return the outcome of a launch, with the present bytes of the used arrays."""
    now = {segment.start: segment.bytes.tobytes() for segment in memory if segment.start in used}
    return _Outcome(now, *observer.progress()[:2])


def _undefined(reads: Collection[UndefinedRead]) -> Iterator[Undefined]:
    """Yield replacement values for undefined reads: all bits set, and a large positive number."""
    some = [read.offsets for read in reads if len(read.offsets)]
    offsets = np.flatnonzero(np.logical_or.reduce(some)) if some else np.zeros(0, np.int64)
    local_offsets = np.array(sorted({offset for read in reads for offset in read.local_offsets}), np.int64)
    elsewhere = [read for read in reads if not (len(read.offsets) or read.local_offsets)]
    shuffles = frozenset(id(read.instruction) for read in elsewhere if not read.is_of_columns)
    has_columns = any(read.is_of_columns for read in elsewhere)
    yield from (Undefined(byte, offsets, local_offsets, shuffles, has_columns) for byte in _OTHER_BYTES)


def _executions(
    found: Mapping[tuple[int, int], set[tuple[int, int]]], pairs: Collection[Pair]
) -> dict[int, set[tuple[int, int]]]:
    executions: dict[int, set[tuple[int, int]]] = {}
    for read, write in pairs:
        executions.setdefault(id(read), set()).update(found[id(read), id(write)])
    return executions
