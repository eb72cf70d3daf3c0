"""The report of a deadlock, with the waits, their barriers, the missing events, and the probable cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from ..._barrier_name import barrier_name
from ..._compile.plain_names import plain_name
from ..._map_type import box_bytes
from ..._waits import Extents, waiters_of
from ...hang import BarrierWait, Hang, MbarrierWait
from .._kernel import Kernel
from .._ptx import Instruction
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.waiting import CALLED, Waiting
from .rings import is_of_ring, own_place

__all__ = ["deadlock", "explained"]

_MOST_RELATED = 12


def deadlock(waiting: list[Waiting], geometry: Geometry, kernel: Kernel) -> Fault:
    """Return the fault for a deadlock, with the kind and place of the wait that best explains the deadlock.

    Parameters
    ----------
    waiting : list of Waiting
    geometry : Geometry
    kernel : Kernel
        The kernel whose source contains the names of barriers.
    """
    lines = tuple(kernel.source.splitlines())
    waits = [wait for each in waiting for wait in _waits(each, geometry, lines)]
    maps = box_bytes((each.name, each.type) for each in kernel.parameters)
    hang = Hang(waiters_of(waits), plain_name(kernel.name), maps)
    first = min(waiting, key=lambda each: each.awaits.rank)
    lanes = np.sort(np.concatenate([each.parked.lanes for each in waiting]))
    return Fault(_kind(first), str(hang), lanes, first.parked.instruction, _related(waiting, first))


def explained(fault: Fault, waiting: list[Waiting]) -> Fault:
    """Return the fault of an endless loop, extended by the threads that wait."""
    if fault.kind == "no-progress":
        fault.related = _related(waiting)
    return fault


def _related(waiting: list[Waiting], first: Waiting | None = None) -> tuple[tuple[str, Instruction], ...]:
    """Return the statements that explain the first wait, and then the statements of each other wait."""
    known: dict[tuple[str, Instruction], None] = {}
    for each in sorted(waiting, key=lambda each: each is not first):
        instruction = each.parked.instruction
        if instruction is not None and (first is None or instruction is not first.parked.instruction):
            known["also waits", instruction] = None
        known.update(((CALLED, by), None) for by in each.parked.context.calls)
        known.update(dict.fromkeys(each.related))
    return tuple(known)[:_MOST_RELATED]


def _kind(waiting: Waiting) -> str:
    awaits = waiting.awaits
    is_short = isinstance(awaits, MbarrierWait) and awaits.barrier.tx_count and not awaits.barrier.pending_count
    return "transaction-count" if is_short else "deadlock"


def _waits(
    waiting: Waiting, geometry: Geometry, lines: tuple[str, ...]
) -> Iterator[tuple[str, MbarrierWait | BarrierWait, Extents, set[int]]]:
    """Yield the place, the barrier, the block and the threads of a wait, once for each CTA of the waiting threads."""
    lanes, instruction = waiting.parked.lanes, waiting.parked.instruction
    place = own_place(instruction)
    where = (
        f"{PurePath(place.file).name}:{place.line}" if place else f"PTX line {instruction.line if instruction else 0}"
    )
    awaits = waiting.awaits
    if isinstance(awaits, MbarrierWait):
        is_ring = instruction is not None and is_of_ring(instruction)
        name = barrier_name(lines, place.line, waiting.side if is_ring else "") if place else ""
        awaits = replace(awaits, name=name or awaits.name, stage=awaits.stage if is_ring else None)
    ctas = geometry.cta_of_lane[lanes]
    for cta in np.unique(ctas):
        threads = geometry.thread_of_lane[lanes[ctas == cta]]
        yield where, awaits, geometry.block_index(int(cta)), set(threads.tolist())
