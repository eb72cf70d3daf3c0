"""The start and the end of asynchronous operations, and the groups by which threads wait for them."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .._ptx import Instruction

if TYPE_CHECKING:
    from .._copies.tensor_copy import Box

__all__ = ["COPY_STEPS", "Copy", "Groups", "Product"]

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
# The timeline assumes that a copy completes 512 steps after its issue, because a copy takes much longer than an
# instruction.
COPY_STEPS = 512


@dataclass(slots=True, eq=False)
class Copy:
    """One asynchronous copy in the timeline.

    Attributes
    ----------
    warp : int
        The warp of the issuing thread.
    block : tuple of int
        ``blockIdx`` of the CTA.
    instruction : Instruction
    begin : int
    box : Box, optional
        The part of a tensor that the copy transfers.
    map_name : str
        The name of the kernel's parameter that is the tensor map.
    size_bytes : int
        The number of bytes that the copy writes to, or reads from, shared memory.
    position : int or None
        The position in shared memory of the first byte.
    mbarrier : int or None
    times : int
        The number of CTAs of a multicast, or of threads that issue the same copy together.
    """

    warp: int
    block: tuple[int, int, int]
    instruction: Instruction
    begin: int
    box: Box | None = None
    map_name: str = ""
    size_bytes: int = 0
    position: int | None = None
    mbarrier: int | None = None
    times: int = 1

    @property
    def end(self) -> int:
        """The step at which the copy is complete."""
        return self.begin + COPY_STEPS

    @property
    def read_by(self) -> int:
        """The step at which a store has read shared memory, halfway between the issue and the end of the store."""
        return self.begin + COPY_STEPS // 2

    @property
    def kind(self) -> str:
        """The kind of the copy: ``"load"``, ``"store"``, ``"reduce"``, or ``"copy"`` without a tensor."""
        parts = self.instruction.opcode
        if "reduce" in parts:
            return "reduce"
        if "tensor" not in parts:
            return "copy"
        return "load" if "mbarrier::complete_tx::bytes" in parts else "store"


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One ``wgmma`` product of a warpgroup in the timeline."""

    warpgroup: int
    instruction: Instruction
    begin: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """The numbers M, N and K of the product."""
        m, n, k = next(found.groups() for part in self.instruction.opcode if (found := _SHAPE.fullmatch(part)))
        return int(m), int(n), int(k)

    @property
    def end(self) -> int:
        """The step at the end of the product.

        The tensor cores of an H100 need N / 2 cycles for each 32 bytes along K.
        """
        return self.begin + self.shape[1] // 2


class Groups:
    """The groups of each thread's operations, with the steps at which their reads and all their work end."""

    def __init__(self) -> None:
        self._open: dict[object, list[tuple[int, int]]] = defaultdict(list)
        self._closed: dict[object, list[tuple[int, int]]] = defaultdict(list)

    def add(self, owner: object, read_by: int, end: int) -> None:
        """Add an operation to the open group of its owner."""
        self._open[owner].append((read_by, end))

    def commit(self, owner: object) -> None:
        """Commit the open group of an owner."""
        begun = self._open.pop(owner, [])
        reads, ends = zip(*begun, strict=True) if begun else ((0,), (0,))
        self._closed[owner].append((max(reads), max(ends)))

    def done(self, owner: object, most: int, only_read: bool = False) -> int:
        """Return the step at which all groups of an owner except the last `most` are complete."""
        closed = self._closed[owner]
        return max((each[0 if only_read else 1] for each in closed[: max(0, len(closed) - most)]), default=0)

    def begun(self, owner: object) -> int:
        """Return the step at which all committed and uncommitted operations of an owner are complete."""
        return max((end for _, end in (*self._open[owner], *self._closed[owner])), default=0)
