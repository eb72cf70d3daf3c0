"""Global memory for a run of a launch whose writes do not remain."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .global_memory import GlobalMemory, Segment

__all__ = ["ScratchMemory"]


class ScratchMemory(GlobalMemory):
    """A copy of global memory for one run of a launch. The first use of a segment copies the segment.

    The original memory does not change. Other threads of the host may therefore write to the original memory during the
    run.

    Parameters
    ----------
    memory : GlobalMemory
        The original memory.
    initial : mapping
        The initial bytes of segments by start address. The other segments have the bytes of the original memory.
    """

    def __init__(self, memory: GlobalMemory, initial: Mapping[int, bytes]):
        super().__init__()
        self._initial_bytes = initial
        self._own: set[int] = set()
        self.restore(memory, memory.formers, memory.next_address)

    def find(self, address: int) -> Segment | None:
        """Return the segment that contains an address. A writeable segment is a copy."""
        found = super().find(address)
        if found is None or not found.writeable or found.start in self._own:
            return found
        data = np.frombuffer(self._initial_bytes.get(found.start, found.bytes), np.uint8).copy()
        copy = Segment(found.start, data, found.name)
        self.remove(found)
        self.add(copy)
        return copy

    def add(self, segment: Segment) -> None:
        """Add a segment that belongs to this run."""
        self._own.add(segment.start)
        super().add(segment)
