"""Tensor maps in global memory: fences of the tensormap proxy, a release by who changes one, an acquire by who uses it.

Source: PTX ISA 9.0, "membar, fence": ``fence.proxy.tensormap::generic.acquire``; "tensormap.cp_fenceproxy". CUDA C++
Programming Guide, "Tensor Memory Accelerator": a map in global memory needs the fence in each block that uses it.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from .._lanes import WARP
from ..ptx import Instruction
from .clocks import ORDERED, Clocks
from .operations import Mark

__all__ = ["TensorMaps"]


class TensorMaps:
    """Those in global memory, by address: what has changed each, and who has acquired it since: lanes, and when."""

    def __init__(self, clocks: Clocks):
        self._clocks = clocks
        self._changed: dict[int, Instruction] = {}
        self._when: dict[int, tuple[int, int, int]] = {}  # a lane, its epoch, the time
        self._acquired: defaultdict[int, dict[int, int]] = defaultdict(dict)
        self._unreleased: set[int] = set()

    def forget(self, slot: int) -> None:
        """Another cluster begins."""
        for lanes in self._acquired.values():
            for lane in [lane for lane in lanes if self._clocks.slot_of(lane) == slot]:
                del lanes[lane]

    def change(self, address: int, instruction: Instruction, lane: int) -> None:
        """``tensormap.replace``; ``tensormap.cp_fenceproxy``, which releases, too."""
        self._changed[address] = instruction
        self._when[address] = lane, int(self._clocks.own(np.array([lane]))[0]), self._clocks.now
        self._acquired.pop(address, None)
        if instruction.opcode[1] == "replace":
            self._unreleased.add(address)
        else:
            self._unreleased.discard(address)

    def release(self, lanes: np.ndarray) -> None:
        """A fence of some lanes, behind all changes that they know of."""
        for lane in lanes.tolist() if self._unreleased else ():
            self._unreleased -= {address for address in self._unreleased if self._knows_change(lane, address)}

    def acquire(self, lanes: np.ndarray, addresses: np.ndarray) -> None:
        """A fence of some lanes, each for a map; it counts if the change precedes it."""
        epochs = self._clocks.own(lanes)
        for lane, address, epoch in zip(lanes.tolist(), addresses.tolist(), epochs.tolist(), strict=True):
            if self._knows_change(lane, address):
                self._acquired[address].setdefault(lane, epoch)

    def _knows_change(self, lane: int, address: int) -> bool:
        if address not in self._when:
            return True
        by, epoch, time = self._when[address]
        clocks, slot = self._clocks, self._clocks.slot_of(by)
        row = clocks.known_to(slice(lane, lane + 1))[ORDERED]
        if clocks.slot_of(lane) == slot and time >= clocks.started[slot]:
            is_of_warp = lane // WARP == by // WARP  # tensormap.cp_fenceproxy is .sync.aligned
            return is_of_warp or bool(row[by % clocks.threads] >= epoch)
        return bool(row[clocks.threads + slot] >= time)

    def changed(self, address: int) -> Instruction | None:
        """What has changed a map in this launch."""
        return self._changed.get(address)

    def is_released(self, address: int) -> bool:
        """Whether a fence stands behind the last change."""
        return address not in self._unreleased

    def is_acquired(self, address: int, mark: Mark) -> bool:
        """Whether a fence of its cluster that precedes an operation has acquired the map that it uses."""
        slot, clock = self._clocks.slot_of(mark.lane), mark.clock[ORDERED]
        return any(
            self._clocks.slot_of(lane) == slot and clock[lane % self._clocks.threads] >= epoch
            for lane, epoch in self._acquired.get(address, {}).items()
        )
