"""Simulated memory with copies of GPU memory, which are made when an argument or the kernel uses an allocation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ... import codec
from ..._errors import TensorMapError
from . import allocations as _allocations
from .global_memory import GlobalMemory, Segment

__all__ = ["CopiedMemory", "Difference"]

_MAP_BYTES = 128


@dataclass(frozen=True, slots=True)
class Difference:
    """A difference between the GPU and the simulator in the content of an allocation after a launch.

    Attributes
    ----------
    address : int
        The address of the first different byte.
    allocation : int
        The start of the allocation.
    count : int
        The number of different bytes.
    gpu, simulator : bytes
        The 16 bytes from `address` on in the memory of the GPU and of the simulator.
    """

    address: int
    allocation: int
    count: int
    gpu: bytes
    simulator: bytes

    def __str__(self) -> str:
        """Return the difference as a sentence."""
        return (
            f"{self.count} bytes differ in the allocation at 0x{self.allocation:x}, the first at 0x{self.address:x}: "
            f"{self.gpu.hex()} on the GPU, {self.simulator.hex()} on the simulator"
        )


class CopiedMemory(GlobalMemory):
    """Global memory of the simulator whose addresses are those of the GPU.

    Parameters
    ----------
    most_bytes : int
        The largest number of bytes to copy from the GPU.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._copies: list[Segment] = []

    def find(self, address: int) -> Segment | None:
        """Return the segment that contains an address; the first use of an allocation copies it from the GPU."""
        found = super().find(address)
        if found is not None or (there := _allocations.allocation(address)) is None:
            return found
        base, size = there
        total = size + sum(len(each.bytes) for each in self._copies)
        if total > self._most_bytes:
            raise ValueError(f"it can access {total} bytes, more than most_bytes={self._most_bytes}")
        found = Segment(base, _allocations.copied(base, size), f"the allocation at 0x{base:x}")
        self.add(found)
        self._copies.append(found)
        return found

    def name(self, argument: bytes) -> None:
        """Copy the allocations to which an argument refers: the tensor of a tensor map, or the target of each word."""
        if len(argument) == _MAP_BYTES:
            try:
                self.find(codec.decode(argument).global_address)
                return
            except TensorMapError:  # The 128 bytes are not a tensor map, but a struct of the same size.
                pass
        for word in np.frombuffer(argument[: len(argument) // 8 * 8], np.uint64).tolist():
            self.find(word)

    def differences(self) -> tuple[Difference, ...]:
        """Return the allocations whose bytes on the GPU now differ from the bytes on the simulator."""
        found = (_difference(each.start, _allocations.copied(each.start, len(each.bytes)), each.bytes)
                 for each in self._copies)  # fmt: skip
        return tuple(each for each in found if each is not None)


def _difference(address: int, gpu: np.ndarray, simulator: np.ndarray) -> Difference | None:
    wrong = np.flatnonzero(gpu != simulator)
    if not len(wrong):
        return None
    first = int(wrong[0])
    shown = slice(first, first + 16)
    return Difference(address + first, address, len(wrong), gpu[shown].tobytes(), simulator[shown].tobytes())
