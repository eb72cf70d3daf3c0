"""Other values in place of undefined ones, so that a replay shows whether they have an effect."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._ptx import Instruction
from .memory import Memory

__all__ = ["Undefined"]


@dataclass(frozen=True, slots=True, eq=False)
class Undefined:
    """The values of a replay.

    Attributes
    ----------
    byte : int
        Each byte of an undefined value.
    offsets : numpy.ndarray
        Bytes in the shared memory of each CTA that a thread reads before any write.
    local_offsets : numpy.ndarray
        Bytes of its local memory that a thread reads before any write.
    shuffles : frozenset of int
        By ``id``, the instructions that take values of lanes which take no part.
    has_columns : bool
        Whether each column of tensor memory has these values when it is allocated.
    """

    byte: int
    offsets: np.ndarray
    local_offsets: np.ndarray
    shuffles: frozenset[int]
    has_columns: bool = False

    @property
    def word(self) -> np.uint32:
        """An undefined register."""
        return np.uint32(self.byte * 0x01010101)

    def fill(self, memory: Memory, ctas: range, lanes: np.ndarray) -> None:
        """Fill the shared memory of CTAs that begin, and the local memory of their lanes."""
        if len(self.local_offsets):
            memory.fill_local(lanes, self.local_offsets, self.byte)
        for cta in ctas if len(self.offsets) else ():
            memory.shared.bytes[cta * memory.shared_pitch + self.offsets] = self.byte

    def shuffled(self, values: np.ndarray, absent: np.ndarray, by: Instruction) -> np.ndarray:
        """Return the values that lanes take from others; `absent` is true where the other takes no part."""
        return np.where(absent, self.word, values) if id(by) in self.shuffles else values
