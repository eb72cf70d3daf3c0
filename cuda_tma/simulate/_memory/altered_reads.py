"""Loads that return values different from memory, so that a replay shows whether the values have an effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .._ptx import Instruction
from .._warps.lanes import Lanes, as_array
from .memory import Piece

__all__ = ["AlteredReads", "Executions"]

# Each pair identifies one execution of a load by its lane, and by the count of earlier executions in that lane.
Executions = Iterable[tuple[int, int]]


class AlteredReads:
    """The executions of racing loads that return another value than memory contains, as if the race ended differently.

    The value before the launch replaces a loaded value. If the loaded value is equal to the value before the launch,
    the value after the launch replaces the loaded value. If all three values are equal, the bitwise inverse replaces
    the loaded value.

    Parameters
    ----------
    executions : mapping
        The executions to change, for the ``id`` of each load.
    before, after : mapping
        The bytes of each segment at the beginning, and at the end, of the launch, by the segment's start address.
    """

    def __init__(self, executions: Mapping[int, Executions], before: Mapping[int, bytes], after: Mapping[int, bytes]):
        self._before, self._after = before, after
        self._chosen: dict[int, dict[int, set[int]]] = {}
        self._counts: dict[tuple[int, int], int] = {}
        for load, each in executions.items():
            by_lane = self._chosen.setdefault(load, {})
            for lane, number in each:
                by_lane.setdefault(lane, set()).add(number)

    def change(self, load: Instruction, lanes: Lanes, pieces: Sequence[Piece], values: Sequence[np.ndarray]) -> None:
        """Replace the loaded values of the chosen executions in place."""
        by_lane = self._chosen.get(id(load))
        if by_lane is None:
            return
        here = as_array(lanes)
        for piece in pieces:
            if piece.space != "global":
                continue
            some = np.arange(len(here)) if piece.chosen is None else np.arange(len(here))[piece.chosen]
            for at, position in zip(some.tolist(), piece.positions.tolist(), strict=True):
                lane = int(here[at])
                number = self._counts.get((id(load), lane), 0)
                self._counts[id(load), lane] = number + 1
                if number in by_lane.get(lane, ()):
                    for element, value in enumerate(values):
                        first = position + element * value.itemsize
                        self._replace(value[at : at + 1].view(np.uint8), piece.buffer.start, first)

    def _replace(self, value: np.ndarray, start: int, first: int) -> None:
        read = value.tobytes()
        for memory in (self._before, self._after):
            other = memory.get(start, b"")[first : first + len(read)]
            if len(other) == len(read) and other != read:
                value[:] = np.frombuffer(other, np.uint8)
                return
        value ^= 0xFF
