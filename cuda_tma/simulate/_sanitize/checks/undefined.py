"""Undefined values that a launch reads: of shared or local memory before any write, and of lanes absent in a shuffle.

Such a read is advice: its value may have no effect. A replay with other values decides; with an effect it is an error.
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
    """The undefined values that a launch reads."""

    def __init__(self, collector: FindingCollector, pitch: int):
        self._found, self._collector, self._pitch = collector.undefined, collector, pitch

    def of_memory(self, instruction: Instruction, positions: np.ndarray, size_bytes: int) -> None:
        """Record reads of shared memory, `size_bytes` at each position."""
        key = "uninitialized-read", id(instruction)
        if key not in self._found:
            self._found[key] = UndefinedRead(instruction, np.zeros(self._pitch, bool), set())
        for byte in range(size_bytes):
            self._found[key].offsets[(positions + byte) % self._pitch] = True

    def event(self, event: AbsentSource | UnwrittenRead) -> None:
        """Take an event of an undefined value."""
        if isinstance(event, AbsentSource):
            self._absent_source(event)
        else:
            self._unwritten(event)

    def _absent_source(self, event: AbsentSource) -> None:
        """Report a shuffle that reads registers of lanes that take no part."""
        now = event.instruction
        self._found.setdefault(("barrier-divergence", id(now)), UndefinedRead(now, np.zeros(0, bool), set()))
        lane, source, mask = int(as_array(event.lanes)[0]), int(event.sources[0]), int(event.masks[0])
        self._collector.report(AbsentShuffleSource(now=now, lane=lane, source=source, mask=mask))

    def _unwritten(self, event: UnwrittenRead) -> None:
        """Report a read of local memory that its thread has not written."""
        now, size = event.instruction, event.size_bytes
        read = self._found.setdefault(("uninitialized-read", id(now)), UndefinedRead(now, np.zeros(0, bool), set()))
        read.local_offsets.update(np.unique(event.addresses[:, None] + np.arange(size)).tolist())
        lane, offset = int(event.lanes[0]), int(event.addresses[0]) - event.base
        self._collector.report(UnwrittenLocalMemory(now=now, lane=lane, size_bytes=size, offset=offset))
