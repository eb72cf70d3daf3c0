"""Undefined values that a launch reads: of shared or local memory before any write, and of lanes that take no part.

Such a read is advice: its value may have no effect. A replay with other values decides; with an effect it is an error.
"""

from __future__ import annotations

import numpy as np

from ..._ptx import Instruction
from ..report.collector import FindingCollector, UndefinedRead

__all__ = ["UndefinedReads"]


class UndefinedReads:
    """Enters those of a launch into the ledger."""

    def __init__(self, collector: FindingCollector, pitch: int):
        self._found, self._pitch = collector.undefined, pitch

    def of_memory(self, instruction: Instruction, positions: np.ndarray, size_bytes: int) -> None:
        """Some bytes, each stretch `size_bytes` long."""
        key = "uninitialized-read", id(instruction)
        if key not in self._found:
            self._found[key] = UndefinedRead(instruction, np.zeros(self._pitch, bool), set())
        for byte in range(size_bytes):
            self._found[key].offsets[(positions + byte) % self._pitch] = True

    def of_lanes(self, instruction: Instruction) -> None:
        """Registers of lanes that take no part in a shuffle."""
        key = "barrier-divergence", id(instruction)
        self._found.setdefault(key, UndefinedRead(instruction, np.zeros(0, bool), set()))

    def of_local_memory(self, instruction: Instruction, addresses: np.ndarray, size_bytes: int) -> None:
        """Enter bytes of threads' local memory, `size_bytes` from each address on."""
        key = "uninitialized-read", id(instruction)
        read = self._found.setdefault(key, UndefinedRead(instruction, np.zeros(0, bool), set()))
        read.local_offsets.update(np.unique(addresses[:, None] + np.arange(size_bytes)).tolist())
