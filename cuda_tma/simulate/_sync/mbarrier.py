"""The mbarriers of a launch, with the arrivals and bytes of each phase, and the threads that wait for a phase.

The 64 bits of an mbarrier are opaque to a kernel (PTX ISA 9.0, "Parallel Synchronization and Communication
Instructions: mbarrier"). On the simulator, the bits contain the parity of the phase, its pending arrivals and the
expected count. Instructions read only these three values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...barrier import Barrier
from ...hang import MbarrierWait
from .._memory.memory import Memory
from .._ptx import Instruction
from .._warps.code import YIELD, Context, Outcome
from .._warps.events import BytesCame, PhaseComplete
from .._warps.fault_log import FaultLog
from .._warps.faults import Fault, NotInitialised
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import Lanes, as_array
from .._warps.observe import Events
from .._warps.program import Program, mask_of
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Waiting
from .rings import ring_places

__all__ = ["BYTES", "Mbarrier", "Mbarriers", "parity_of", "pending_of"]

BYTES = 8
_MOST = (1 << 20) - 1  # _MOST limits both counts (PTX ISA, mbarrier, "Size and alignment", "Range of the tx-count").
_LAST_ARRIVAL = "last arrival"
_PENDING_SHIFT, _COUNT_SHIFT, _PHASE_SHIFT, _PARITY_SHIFT = 0, 24, 44, 63
_PHASE_BITS = 8  # The token of an arrival contains 8 bits of the phase number in addition to the parity.


@dataclass(slots=True)
class Mbarrier:
    """The state of one mbarrier.

    Attributes
    ----------
    count : int
        The number of arrivals that each phase expects.
    pending : int
        The number of arrivals that the present phase still needs.
    tx : int
        The number of bytes that the present phase still needs; negative if bytes arrived before they were expected.
    phase : int
        The number of completed phases.
    expected : int
        The number of bytes that the present phase expects.
    came : list of (int, str)
        The numbers of bytes that have arrived in the present phase, each with the source of the bytes.
    copy : Instruction or None
        The last copy that delivered bytes in any phase.
    made : Instruction or None
        The ``mbarrier.init`` that initialized the barrier.
    uses : dict of str to Instruction
        The last expect_tx and the last arrival; the keys are the names of these uses.
    """

    count: int
    pending: int
    tx: int = 0
    phase: int = 0
    expected: int = 0
    came: list[tuple[int, str]] = field(default_factory=list)
    copy: Instruction | None = None
    made: Instruction | None = None
    uses: dict[str, Instruction] = field(default_factory=dict)
    parked: list[Parked] = field(default_factory=list)

    @property
    def related(self) -> tuple[tuple[str, Instruction], ...]:
        """The statements that explain the state of the barrier, each with a label."""
        made = [("initialized", self.made)] if self.made is not None else []
        came = [("bytes last arrived", self.copy)] if self.copy is not None else []
        return (*made, *self.uses.items(), *came)

    @property
    def counts(self) -> Barrier:
        """The counts of the barrier as one value, with the counts that hardware has."""
        return Barrier(self.phase & 1, self.pending, self.count, self.tx)

    @property
    def word(self) -> int:
        """The 64-bit word of the barrier in memory."""
        return (self.phase & 1) << _PARITY_SHIFT | self.count << _COUNT_SHIFT | self.pending << _PENDING_SHIFT

    @property
    def token(self) -> int:
        """The state that an arrival returns, which contains the word of the barrier and more bits of the phase."""
        return self.word | (self.phase >> 1 & (1 << _PHASE_BITS) - 1) << _PHASE_SHIFT


def parity_of(states: np.ndarray) -> np.ndarray:
    """Return the parity of the phase in each state."""
    return states >> np.uint64(_PARITY_SHIFT)


def pending_of(states: np.ndarray) -> np.ndarray:
    """Return the number of pending arrivals in each state, for ``mbarrier.pending_count``."""
    return states >> np.uint64(_PENDING_SHIFT) & np.uint64(_MOST)


class Mbarriers:
    """The mbarriers of all resident CTAs, by their position in shared memory."""

    def __init__(
        self,
        program: Program,
        memory: Memory,
        geometry: Geometry,
        alive: np.ndarray,
        scheduler: Scheduler,
        events: Events,
        faults: FaultLog,
    ):
        self._program, self._memory, self._geometry, self._alive = program, memory, geometry, alive
        self._scheduler, self._events, self._faults = scheduler, events, faults
        self._barriers: dict[int, Mbarrier] = {}
        self.timed_out = np.zeros(geometry.lanes, bool)
        self._invalidated: dict[int, Instruction] = {}
        # The dictionary contains the positions of the mbarriers that lanes poll.
        self._looks: dict[tuple[Context, int], np.ndarray] = {}

    # ---- from initialization to the end ----

    def init(self, position: int, count: int, made: Instruction, lane: int) -> None:
        """Initialize an mbarrier; like hardware, accept any count and an existing mbarrier.

        Recorded results of an H200 are in tests/data/faults_sm90.jsonl.gz. The count wraps (not verified on hardware).
        """
        known = self._barriers.get(position)
        if not 1 <= count <= _MOST:
            text = f"mbarrier.init with a count of {count}; it must be 1 to {_MOST}"
            self._faults.keep(Fault("barrier-use", text, slice(lane, lane + 1), made))
        if known is not None:
            text = self._made_already(position, known)
            self._faults.keep(Fault("barrier-use", text, slice(lane, lane + 1), made, known.related))
        parked, count = known.parked if known is not None else [], count & _MOST or _MOST + 1
        self._barriers[position] = Mbarrier(count, count, made=made, parked=parked)
        self._invalidated.pop(position, None)
        self._write(position)

    def _made_already(self, position: int, known: Mbarrier) -> str:
        state = f"in phase {known.phase}, with {known.pending} of {known.count} arrivals missing"
        return (
            f"mbarrier.init initializes {self.name(position)}, which is already an mbarrier, {state}. Initialize it "
            "once, in one thread, or first execute mbarrier.inval (PTX ISA, mbarrier.init: otherwise it is undefined)"
        )

    def invalidate(self, position: int, by: Instruction) -> None:
        """Execute ``mbarrier.inval``; a waiting thread polls again, which is a fault without an mbarrier."""
        for parked in self.at(position).parked:
            self._scheduler.add(parked.context, parked.pc, parked.lanes)
        del self._barriers[position]
        self._invalidated[position] = by

    def forget(self, ctas: range) -> None:
        """Remove the barriers of CTAs that have ended."""
        pitch = self._memory.shared_pitch
        for known in (self._barriers, self._invalidated):
            for position in [p for p in known if p // pitch in ctas]:
                del known[position]

    def of(self, cta: int) -> list[int]:
        """Return the positions of the mbarriers of a CTA."""
        return [position for position in self._barriers if position // self._memory.shared_pitch == cta]

    def known(self, position: int) -> Mbarrier | None:
        """Return the mbarrier at a position in `Memory.shared`; None without an initialized mbarrier."""
        return self._barriers.get(position)

    def unexpected(self, position: int) -> Mbarrier | None:
        """Return the mbarrier at a position if it has received bytes that it does not expect; otherwise None."""
        barrier = self._barriers.get(position)
        return barrier if barrier is not None and barrier.tx < 0 else None

    def at(self, position: int) -> Mbarrier:
        """Return the mbarrier at a position in `Memory.shared`; raise a fault without an initialized mbarrier."""
        barrier = self._barriers.get(position)
        if barrier is None and (by := self._invalidated.get(position)) is not None:
            raise Fault(
                "barrier-use",
                f"{self.name(position)} is used after its mbarrier.inval (PTX ISA, mbarrier.inval: only mbarrier.init "
                "may follow). Remedy: execute a barrier of all threads that use it before mbarrier.inval",
                related=[("invalidated", by)],
            )
        if barrier is None:
            raise NotInitialised(
                "barrier-use",
                f"no mbarrier has been initialized at {self.name(position)}: execute mbarrier.init on it, and then a "
                "barrier with the threads that use it",
                related=[("another is initialized", each.made) for each in self._barriers.values() if each.made][:1],
            )
        return barrier

    def last_arrival(self, position: int) -> Instruction | None:
        """Return the last arrival at a barrier; None without an arrival, or if the barrier does not exist."""
        barrier = self._barriers.get(position)
        return barrier.uses.get(_LAST_ARRIVAL) if barrier is not None else None

    def name(self, position: int) -> str:
        """Return the name of a barrier in a finding."""
        cta, offset = divmod(position, self._memory.shared_pitch)
        return f"{self._program.shared_name(offset)} in block {self._geometry.block_index(cta)}"

    # ---- arrivals and bytes ----

    def arrive(self, position: int, count: int, by: Instruction, drop: bool = False) -> int:
        """Arrive `count` times at a barrier, and return the token of the phase."""
        barrier = self.at(position)
        before = barrier.token
        if not 1 <= count <= barrier.pending:
            many = f"{count} arrival{'s' * (count > 1)}"
            raise Fault(
                "barrier-use",
                f"{many} at {self.name(position)}, whose phase {barrier.phase} has {barrier.pending} of "
                f"{barrier.count} arrivals pending: raise the count of mbarrier.init, or remove arrivals",
                related=barrier.related,
            )
        barrier.uses[_LAST_ARRIVAL] = by
        barrier.pending -= count
        if drop:
            barrier.count -= count
        self._complete(position, barrier)
        return before

    def expect_tx(self, position: int, size_bytes: int, by: Instruction) -> None:
        """Increase the number of bytes that the present phase expects."""
        barrier = self.at(position)
        barrier.expected += size_bytes
        barrier.uses["bytes last expected"] = by
        self._add_tx(position, size_bytes)

    def complete_tx(self, position: int, size_bytes: int, by: str = "", copy: Instruction | None = None) -> None:
        """Count bytes that have arrived in the present phase, and keep their source for a report."""
        barrier = self.at(position)
        barrier.came.append((size_bytes, by))
        barrier.copy = copy or barrier.copy
        self._events.tell(BytesCame(position, size_bytes))
        self._add_tx(position, -size_bytes)

    def _add_tx(self, position: int, size_bytes: int) -> None:
        barrier = self.at(position)
        barrier.tx += size_bytes
        if abs(barrier.tx) > _MOST:
            raise Fault(
                "transaction-count",
                f"the tx-count of {self.name(position)} becomes {barrier.tx}; its range is {-_MOST} to {_MOST} bytes",
                related=barrier.related,
            )
        self._complete(position, barrier)

    def _complete(self, position: int, barrier: Mbarrier) -> None:
        if barrier.pending == 0 and barrier.tx == 0:
            barrier.phase += 1
            self._events.tell(PhaseComplete(position))
            barrier.pending = barrier.count
            barrier.expected = 0
            barrier.came.clear()
            self._scheduler.progress()
            for parked in barrier.parked:
                self._scheduler.add(parked.context, parked.pc, parked.lanes)
            barrier.parked.clear()
        self._write(position)

    def _write(self, position: int) -> None:
        words = self._memory.shared.typed(np.dtype(np.uint64))
        words[position // BYTES] = self._barriers[position].word

    # ---- waiting ----

    def completed(self, positions: np.ndarray, parities: np.ndarray) -> np.ndarray:
        """Return, for each lane, whether the phase with the lane's parity is complete."""
        if len({*positions.tolist()}) == 1:
            return np.full(len(positions), self.at(int(positions[0])).phase & 1) != parities
        places, which = np.unique(positions, return_inverse=True)
        present = np.array([self.at(int(place)).phase & 1 for place in places])
        return present[which] != parities

    def parities_of(self, tokens: np.ndarray, positions: np.ndarray, lanes: Lanes, by: Instruction) -> np.ndarray:
        """Return the parities of the phases of tokens; report a fault for a token older than the preceding phase.

        A token contains the low bits of the phase's number, which suffice to find an old token.
        """
        some = tokens >> np.uint64(_PHASE_SHIFT) & np.uint64((1 << _PHASE_BITS) - 1)
        phases = some.astype(np.int64) << 1 | parity_of(tokens).astype(np.int64)
        present = np.array([self.at(int(position)).phase for position in positions])
        ages = (present - phases) % (2 << _PHASE_BITS)
        if (stale := ages > 1).any():
            at = int(np.flatnonzero(stale)[0])
            self._faults.keep(self._stale(int(positions[at]), int(ages[at]), as_array(lanes)[stale], by))
        return parity_of(tokens)

    def _stale(self, position: int, age: int, lanes: np.ndarray, by: Instruction) -> Fault:
        barrier = self.at(position)
        return Fault(
            "barrier-use",
            f"a thread waits at {self.name(position)}, which is in phase {barrier.phase}, with a token of phase "
            f"{barrier.phase - age} (PTX ISA, mbarrier.test_wait: a token is of the present phase or of the preceding "
            "one). Remedy: wait with the token that the last arrival of the thread returned",
            lanes,
            by,
            barrier.related,
        )

    def park(self, group: Group[Any], lanes: Lanes, pc: int, positions: np.ndarray) -> Outcome:
        """Let lanes wait until the phase of their barrier completes, after which the lanes poll again."""
        here = as_array(lanes)
        for position in np.unique(positions):
            self.at(int(position)).parked.append(Parked(group.context, pc, pc, here[positions == position]))
        return YIELD

    def look(self, group: Group[Any], lanes: Lanes, pc: int, positions: np.ndarray) -> None:
        """Record lanes that have polled barriers at some positions; a position is -1 if its phase is complete."""
        looked = self._looks.get((group.context, pc))
        if (positions >= 0).any():
            self._scheduler.polled()
            if looked is None:
                looked = self._looks[group.context, pc] = np.full(len(self.timed_out), -1)
        if looked is not None:
            looked[lanes] = positions

    @property
    def looked_at(self) -> bool:
        """Return whether a thread has polled an incomplete phase and then continued."""
        return bool(self._looks)

    def forget_looks(self) -> None:
        """Remove the records of earlier polls, so that later polls show which threads do nothing else."""
        self._looks.clear()

    def park_who_look(self) -> bool:
        """Park the threads that have only polled since :meth:`forget_looks`; return False without such threads."""
        found = False
        for (context, pc), looked in self._looks.items():
            for position in np.unique(looked[looked >= 0]).tolist():
                lanes = np.flatnonzero((looked == position) & self._alive)
                self.at(position).parked.append(Parked(context, pc, pc, lanes))
                found = True
        self._looks.clear()
        return found

    def time_out(self) -> bool:
        """Let the waits of all waiting threads time out; return False if no thread waits."""
        found = False
        for barrier in self._barriers.values():
            for parked in barrier.parked:
                self.timed_out[parked.lanes] = True
                self._scheduler.add(parked.context, parked.pc, parked.lanes)
                found = True
            barrier.parked.clear()
        return found

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting threads for the report of a deadlock."""
        pitch = self._memory.shared_pitch
        made = {position: barrier.made for position, barrier in self._barriers.items() if barrier.made is not None}
        rings = ring_places(made, pitch)
        for position, barrier in self._barriers.items():
            if not barrier.parked:
                continue
            stage, side = rings.get(position, (None, ""))
            name = f"the mbarrier {self._program.shared_name(position % pitch)}"
            awaits = MbarrierWait(
                name, stage, barrier.phase & 1, barrier.counts, barrier.expected or None, _came(barrier.came)
            )
            related = (*barrier.related, *self._elsewhere(position, barrier))
            for parked in barrier.parked:
                yield Waiting(parked, awaits, side, related)

    def _elsewhere(self, position: int, barrier: Mbarrier) -> Iterator[tuple[str, Instruction]]:
        """Yield a copy that has signaled the same mbarrier in another CTA, if this barrier lacks bytes."""
        pitch, ctas = self._memory.shared_pitch, self._geometry.cluster_ctas
        cta, offset = divmod(position, pitch)
        first = cta // ctas * ctas
        for other in range(first, first + ctas) if barrier.tx > 0 else ():
            there = self._barriers.get(other * pitch + offset)
            if there is not None and there is not barrier and (copy := there.copy) is not None:
                yield "a copy arrived at the same mbarrier of another CTA", copy
                if (chosen := mask_of(self._program, copy)) is not None:
                    yield "the CTAs of that copy are chosen", chosen
                return


def _came(came: list[tuple[int, str]]) -> str:
    """Return a text for bytes that have arrived, such as ``2 x 8,192 by the load at gemm.cu:61``."""
    copies = Counter(came).items()
    return ", ".join(
        f"{count} x {size:,} by {by}" if count > 1 else f"{size:,} by {by}" for (size, by), count in copies
    )
