"""Undefined values that a launch reads: of shared memory before any write, and of lanes that take no part.

Such a read is advice: its value may have no effect. A replay with other values decides; with an effect it is an error.
"""

from __future__ import annotations

import numpy as np

from ..ptx import Instruction
from .ledger import Ledger, UndefinedRead

__all__ = ["UndefinedReads"]


class UndefinedReads:
    """Enters those of a launch into the ledger."""

    def __init__(self, ledger: Ledger, pitch: int):
        self._found, self._pitch = ledger.undefined, pitch

    def of_memory(self, instruction: Instruction, positions: np.ndarray, size_bytes: int) -> None:
        """Some bytes, each stretch `size_bytes` long."""
        key = "uninitialized-read", id(instruction)
        if key not in self._found:
            self._found[key] = UndefinedRead(instruction, np.zeros(self._pitch, bool))
        for byte in range(size_bytes):
            self._found[key].offsets[(positions + byte) % self._pitch] = True

    def of_lanes(self, instruction: Instruction) -> None:
        """Registers of lanes that take no part in a shuffle."""
        self._found.setdefault(("barrier-divergence", id(instruction)), UndefinedRead(instruction, np.zeros(0, bool)))
