"""The sixteen barriers of a CTA, for ``bar`` and ``barrier`` with arrivals, counts and reductions.

Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: bar, barrier".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from ...hang import BarrierWait
from .._ptx import Instruction
from .._warps.code import YIELD, Context, Outcome
from .._warps.events import BarrierArrive, BarrierComplete, WholeBarrier
from .._warps.fault_log import FaultLog
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import WARP, Lanes, as_array
from .._warps.observe import Events
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Waiting
from .detours import Detours

__all__ = ["CtaBarriers", "Tell"]

_BARRIERS = 16
_ARRIVED = "arrived before"
# A Tell function receives the number of true predicates and the number of all predicates as its last two arguments.
Tell = Callable[[Context, np.ndarray, int, int], None]


@dataclass(slots=True)
class _Barrier:
    """The state of a CTA's barrier between two completions."""

    # `expected` is the number of threads that the barrier expects, or None for all running threads.
    expected: int | None = None
    arrived: int = 0
    parked: list[Parked] = field(default_factory=list)
    true: int = 0  # The attribute counts the true predicates of barrier.red instructions.
    # The dictionary contains the instructions with which threads have arrived at the barrier.
    by: dict[int, Instruction] = field(default_factory=dict)
    votes: list[tuple[Parked, Tell]] = field(default_factory=list)


class CtaBarriers:
    """The barriers of all resident CTAs."""

    def __init__(
        self,
        geometry: Geometry,
        alive: np.ndarray,
        scheduler: Scheduler,
        events: Events,
        faults: FaultLog,
        detours: Detours,
    ):
        self._geometry, self._alive, self._scheduler = geometry, alive, scheduler
        self._events, self._faults, self._detours = events, faults, detours
        self._barriers: dict[tuple[int, int], _Barrier] = {}
        self._cta_of_lane = geometry.cta_of_lane

    def sync(self, group: Group[Any], lanes: Lanes, pc: int, number: int, expected: int | None) -> Outcome:
        """Let threads arrive at a barrier and wait for its completion."""
        here = as_array(lanes)
        if expected is None and number < _BARRIERS and self._all_are_here(here, number):
            self._scheduler.progress()
            self._events.tell(WholeBarrier(lanes, group.context.code.instruction(pc)))
            return None
        for cta in np.unique(self._cta_of_lane[here]):
            mine = here[self._cta_of_lane[here] == cta]
            barrier = self._arrive(int(cta), number, expected, mine, group.context.code.instruction(pc))
            barrier.parked.append(self._parked(group, pc, mine))
            self._complete(int(cta), number)
        return YIELD

    def arrive(self, lanes: Lanes, number: int, expected: int | None, by: Instruction) -> None:
        """Let threads arrive at a barrier and continue at once."""
        here = as_array(lanes)
        for cta in np.unique(self._cta_of_lane[here]):
            self._arrive(int(cta), number, expected, here[self._cta_of_lane[here] == cta], by)
            self._complete(int(cta), number)

    def vote(
        self, group: Group[Any], lanes: Lanes, pc: int, number: int, expected: int | None, true: np.ndarray, vote: Tell
    ) -> Outcome:
        """Let threads arrive and wait as :meth:`sync` does, and return the number of true predicates to each thread."""
        here = as_array(lanes)
        for cta in np.unique(self._cta_of_lane[here]):
            chosen = self._cta_of_lane[here] == cta
            barrier = self._arrive(int(cta), number, expected, here[chosen], group.context.code.instruction(pc))
            barrier.true += int(true[chosen].sum())
            barrier.votes.append((self._parked(group, pc, here[chosen]), vote))
            self._complete(int(cta), number)
        return YIELD

    def _parked(self, group: Group[Any], pc: int, lanes: np.ndarray) -> Parked:
        """Return a value for waiting lanes; at an ``.aligned`` barrier, include the missing lanes of their warp."""
        parked = Parked(group.context, pc, pc + 1, lanes)
        if len(lanes) % WARP or (lanes[::WARP] % WARP).any() or (lanes[WARP - 1 :: WARP] % WARP != WARP - 1).any():
            absent = self._alive.copy()
            absent[lanes] = False
            rest = np.flatnonzero(absent)
            rest = rest[np.isin(rest // WARP, lanes // WARP)]
            if len(rest) and _is_aligned(parked.instruction):
                parked.absent = self._detours.standing(group, pc, rest)
        return parked

    def _all_are_here(self, here: np.ndarray, number: int) -> bool:
        """Return whether all threads of each CTA arrive in one step, which is the common case."""
        ctas = self._geometry.resident_ctas
        arriving = np.bincount(self._cta_of_lane[here], minlength=ctas)
        present = self._alive.reshape(ctas, -1).sum(axis=1)
        return bool(((arriving == 0) | (arriving == present)).all()) and not any(
            (int(cta), number) in self._barriers for cta in np.flatnonzero(arriving)
        )

    def _arrive(
        self, cta: int, number: int, expected: int | None, lanes: np.ndarray, by: Instruction | None
    ) -> _Barrier:
        if number >= _BARRIERS:
            raise Fault(
                "barrier-use", (f"barrier {number} does not exist; use one of the barriers 0 to {_BARRIERS - 1}"), lanes
            )
        if expected is not None and expected % WARP:
            raise Fault(
                "barrier-use", (f"barrier {number} has a count of {expected} threads; pass a multiple of {WARP}"), lanes
            )
        barrier = self._barriers.setdefault((cta, number), _Barrier(expected))
        before = [(_ARRIVED, each) for each in barrier.by.values()]
        if barrier.expected != expected:
            raise Fault(
                "barrier-divergence",
                f"these threads pass the count {expected or 'all'} to barrier {number}, but the threads that have "
                f"arrived passed {barrier.expected or 'all'}: all threads of a barrier pass the same count",
                lanes,
                related=before,
            )
        barrier.arrived += len(lanes)
        if by is not None:
            barrier.by[id(by)] = by
        self._events.tell(BarrierArrive(lanes, (cta, number)))
        self._detours.synchronized(lanes)
        if expected is not None and barrier.arrived > expected:
            raise Fault(
                "barrier-divergence",
                f"{barrier.arrived} threads have arrived at barrier {number}, which expects only {expected}",
                lanes,
                related=before,
            )
        return barrier

    def _complete(self, cta: int, number: int) -> None:
        barrier = self._barriers[cta, number]
        if barrier.arrived < self._needed(cta, barrier):
            return
        del self._barriers[cta, number]
        self._scheduler.progress()
        for parked, vote in barrier.votes:
            vote(parked.context, parked.lanes, barrier.true, barrier.arrived)
        parked_here = [*barrier.parked, *(parked for parked, _ in barrier.votes)]
        _check_aligned(parked_here, number)
        if barrier.expected is not None:
            self._check_whole(parked_here, number)
        for parked in parked_here:
            self._scheduler.add(parked.context, parked.pc, parked.lanes)
        lanes = np.concatenate([p.lanes for p in parked_here]) if parked_here else np.zeros(0, np.int64)
        waits = [(parked.lanes, parked.instruction) for parked in parked_here]
        self._events.tell(BarrierComplete(lanes, (cta, number), waits))

    def _needed(self, cta: int, barrier: _Barrier) -> int:
        if barrier.expected is not None:
            return barrier.expected
        size = self._geometry.lanes_of_cta
        return int(self._alive[cta * size : (cta + 1) * size].sum())

    def _check_whole(self, parked: list[Parked], number: int) -> None:
        """Report a fault if a barrier with a count completes, but some lanes of its warps have not arrived."""
        come = np.concatenate([each.lanes for each in parked]) if parked else ()
        for each in parked:
            absent = [lane for standing in each.absent for lane in np.setdiff1d(standing.lanes, come).tolist()]
            absent = [lane for lane in absent if self._alive[lane]]
            if absent:
                text = (
                    f"barrier {number} completes with a part of a warp, and lane {absent[0] % WARP} has not arrived: "
                    "all threads of a warp execute an .aligned barrier, such as bar.sync, together (PTX ISA, "
                    '"bar, barrier"). '
                    "Remedy: put the barrier outside of the branch, and count whole warps"
                )
                self._faults.keep(Fault("barrier-divergence", text, each.lanes, each.instruction))
                return

    def exited(self, lanes: np.ndarray) -> None:
        """Complete the barriers of whole CTAs at which only ended threads are missing."""
        ctas = {*np.unique(self._cta_of_lane[lanes]).tolist()}
        for cta, number in [key for key in self._barriers if key[0] in ctas]:
            barrier = self._barriers[cta, number]
            for parked in (*barrier.parked, *(parked for parked, _ in barrier.votes)):
                self._detours.check(parked, lanes)
            if self._barriers[cta, number].expected is None:
                self._complete(cta, number)

    def forget(self, ctas: range) -> None:
        """Remove the barriers of CTAs that have ended, which may have arrivals for which no thread waited."""
        for key in [key for key in self._barriers if key[0] in ctas]:
            del self._barriers[key]

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting threads for the report of a deadlock."""
        for (cta, number), barrier in self._barriers.items():
            missing = self._needed(cta, barrier) - barrier.arrived
            for parked in (*barrier.parked, *(parked for parked, _ in barrier.votes)):
                text = f"{missing} of {missing + barrier.arrived} threads are missing"
                arrived = tuple((_ARRIVED, by) for by in barrier.by.values() if by is not parked.instruction)
                yield Waiting(parked, BarrierWait(f"barrier {number} of the CTA", text), related=arrived)


def _check_aligned(parked: list[Parked], number: int) -> None:
    """Check that the threads of a warp reach an ``.aligned`` barrier (such as ``bar.sync``) by the same instruction."""
    known = [(each, each.instruction) for each in parked]
    aligned = [(each, i) for each, i in known if i and _is_aligned(i)]
    if len({(id(each.context), each.at) for each, _ in aligned}) < 2:
        return
    for (here, instruction), (there, other) in combinations(aligned, 2):
        torn = np.intersect1d(here.lanes // WARP, there.lanes // WARP)
        if len(torn) and (here.context, here.at) != (there.context, there.at):
            raise Fault(
                "barrier-divergence",
                f"threads of one warp execute different instructions for barrier {number}, and the other instruction "
                f"is at {_place(other)}: all threads of a warp must execute {'.'.join(instruction.opcode)}, such as "
                '__syncthreads(), together (PTX ISA, "bar, barrier": .aligned). Remedy: execute one barrier after the '
                "branch",
                here.lanes[np.isin(here.lanes // WARP, torn)],
                instruction,
            )


def _is_aligned(instruction: Instruction | None) -> bool:
    return instruction is not None and (instruction.opcode[0] == "bar" or "aligned" in instruction.opcode)


def _place(instruction: Instruction) -> str:
    if not instruction.places:
        return f"PTX line {instruction.line}"
    # The last of an instruction's places is in the kernel itself, and the other places are in inlined functions.
    place = instruction.places[-1]
    return f"{place.file.rpartition('/')[2]}:{place.line}"
