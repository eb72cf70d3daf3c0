"""Tensor maps that a kernel changes: who uses one has to acquire it by a fence of the tensormap proxy.

Source: PTX ISA 9.0, "membar, fence": ``fence.proxy.tensormap::generic.acquire``; "tensormap.cp_fenceproxy".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..ptx import Instruction
from .clocks import ORDERED, Clocks
from .operations import Mark

__all__ = ["TensorMaps"]


@dataclass(slots=True)
class _Changed:
    """A map that was changed, and who has acquired it since: lanes, and when."""

    instruction: Instruction
    acquired: list[tuple[int, int]] = field(default_factory=list)


class TensorMaps:
    """Those in global memory that this launch has changed, by address."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        self._changed: dict[int, _Changed] = {}

    def change(self, address: int, instruction: Instruction) -> None:
        """``tensormap.replace``, ``tensormap.cp_fenceproxy``."""
        self._changed[address] = _Changed(instruction)

    def acquire(self, lanes: np.ndarray, addresses: np.ndarray) -> None:
        """A fence of some lanes, each for a map."""
        if not self._changed:
            return
        for lane, address in zip(lanes.tolist(), addresses.tolist(), strict=True):
            if (found := self._changed.get(address)) is not None:
                found.acquired.append((lane, int(self._clocks.own(np.array([lane]))[0])))

    def unacquired(self, address: int, mark: Mark) -> Instruction | None:
        """What has changed a map that an operation uses, if no fence that precedes it has acquired the map."""
        found = self._changed.get(address)
        if found is None:
            return None
        slot, clock = self._clocks.slot_of(mark.lane), mark.clock[ORDERED]
        for lane, epoch in found.acquired:
            if self._clocks.slot_of(lane) == slot and clock[lane % self._clocks.threads] >= epoch:
                return None
        return found.instruction
