"""The check of reads of undefined values.

Shared and local memory are undefined before their first write, and so is the value that a shuffle reads from an absent
lane. A read of an undefined value is advice, because the value may have no effect. If a replay with other values has
another result, the finding becomes an error.
"""

from __future__ import annotations

import numpy as np

from ..._ptx import Instruction
from ..._warps.events import AbsentSource, UnwrittenRead
from ..._warps.lanes import as_array
from ..report.collector import FindingCollector, UndefinedRead
from ..report.violations import AbsentShuffleSource, UnwrittenLocalMemory

__all__ = ["UndefinedReads"]


class UndefinedReads:
    """The reads of undefined values in a launch."""

    def __init__(self, collector: FindingCollector, pitch: int):
        self._found, self._collector, self._pitch = collector.undefined, collector, pitch

    def of_memory(self, instruction: Instruction, positions: np.ndarray, size_bytes: int) -> None:
        """Record reads of undefined shared memory, with `size_bytes` bytes at each position."""
        key = "uninitialized-read", id(instruction)
        if key not in self._found:
            self._found[key] = UndefinedRead(instruction, np.zeros(self._pitch, bool), set())
        for byte in range(size_bytes):
            self._found[key].offsets[(positions + byte) % self._pitch] = True

    def event(self, event: AbsentSource | UnwrittenRead) -> None:
        """Report an event in which a thread reads an undefined value."""
        if isinstance(event, AbsentSource):
            self._absent_source(event)
        else:
            self._unwritten(event)

    def _absent_source(self, event: AbsentSource) -> None:
        """Report a shuffle that reads the registers of lanes that do not execute it."""
        now = event.instruction
        self._found.setdefault(("barrier-divergence", id(now)), UndefinedRead(now, np.zeros(0, bool), set()))
        lane, source, mask = int(as_array(event.lanes)[0]), int(event.sources[0]), int(event.masks[0])
        self._collector.report(AbsentShuffleSource(now=now, lane=lane, source=source, mask=mask))

    def _unwritten(self, event: UnwrittenRead) -> None:
        """Report a read of local memory that the reading thread has not written."""
        now, size = event.instruction, event.size_bytes
        read = self._found.setdefault(("uninitialized-read", id(now)), UndefinedRead(now, np.zeros(0, bool), set()))
        read.local_offsets.update(np.unique(event.addresses[:, None] + np.arange(size)).tolist())
        lane, offset = int(event.lanes[0]), int(event.addresses[0]) - event.base
        self._collector.report(UnwrittenLocalMemory(now=now, lane=lane, size_bytes=size, offset=offset))
