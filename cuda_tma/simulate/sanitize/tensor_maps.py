"""Tensor maps in global memory: who uses one has to acquire it by a fence of the tensormap proxy.

Source: PTX ISA 9.0, "membar, fence": ``fence.proxy.tensormap::generic.acquire``; "tensormap.cp_fenceproxy". CUDA C++
Programming Guide, "Tensor Memory Accelerator": a map in global memory needs the fence in each block that uses it.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..ptx import Instruction
from .clocks import ORDERED, Clocks
from .operations import Mark

__all__ = ["TensorMaps"]


class TensorMaps:
    """Those in global memory, by address: what has changed each, and who has acquired it since: lanes, and when."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        self._changed: dict[int, Instruction] = {}
        self._acquired: defaultdict[int, dict[int, int]] = defaultdict(dict)

    def forget(self, slot: int) -> None:
        """Another cluster begins."""
        for lanes in self._acquired.values():
            for lane in [lane for lane in lanes if self._clocks.slot_of(lane) == slot]:
                del lanes[lane]

    def change(self, address: int, instruction: Instruction) -> None:
        """``tensormap.replace``, ``tensormap.cp_fenceproxy``."""
        self._changed[address] = instruction
        self._acquired.pop(address, None)

    def acquire(self, lanes: np.ndarray, addresses: np.ndarray) -> None:
        """A fence of some lanes, each for a map."""
        epochs = self._clocks.own(lanes)
        for lane, address, epoch in zip(lanes.tolist(), addresses.tolist(), epochs.tolist(), strict=True):
            self._acquired[address].setdefault(lane, epoch)

    def changed(self, address: int) -> Instruction | None:
        """What has changed a map in this launch."""
        return self._changed.get(address)

    def is_acquired(self, address: int, mark: Mark) -> bool:
        """Whether a fence of its cluster that precedes an operation has acquired the map that it uses."""
        slot, clock = self._clocks.slot_of(mark.lane), mark.clock[ORDERED]
        return any(
            self._clocks.slot_of(lane) == slot and clock[lane % self._clocks.threads] >= epoch
            for lane, epoch in self._acquired.get(address, {}).items()
        )
