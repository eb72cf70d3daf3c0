"""The values that a replay uses in place of undefined values, to find whether an undefined value has an effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._ptx import Instruction
from .memory import Memory

__all__ = ["Undefined"]


@dataclass(frozen=True, slots=True, eq=False)
class Undefined:
    """The values of a replay that replace undefined values.

    Attributes
    ----------
    byte : int
        The value of each byte of an undefined value.
    offsets : numpy.ndarray
        The offsets of bytes in shared memory that a thread reads before any write.
    local_offsets : numpy.ndarray
        The offsets of bytes in local memory that a thread reads before any write.
    shuffles : frozenset of int
        The ``id`` of each instruction that reads registers of lanes which do not execute the instruction.
    has_columns : bool
        Whether each allocation fills its columns of tensor memory with the values.
    """

    byte: int
    offsets: np.ndarray
    local_offsets: np.ndarray
    shuffles: frozenset[int]
    has_columns: bool = False

    @property
    def word(self) -> np.uint32:
        """The value of an undefined register of 32 bits."""
        return np.uint32(self.byte * 0x01010101)

    def fill(self, memory: Memory, ctas: range, lanes: np.ndarray) -> None:
        """Fill the shared memory of CTAs that begin, and the local memory of their lanes."""
        if len(self.local_offsets):
            memory.fill_local(lanes, self.local_offsets, self.byte)
        for cta in ctas if len(self.offsets) else ():
            memory.shared.bytes[cta * memory.shared_pitch + self.offsets] = self.byte

    def shuffled(self, values: np.ndarray, absent: np.ndarray, by: Instruction) -> np.ndarray:
        """Return the values that lanes read from other lanes.

        `absent` is true for a source lane that does not execute the instruction `by`.
        """
        return np.where(absent, self.word, values) if id(by) in self.shuffles else values
