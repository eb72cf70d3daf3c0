"""The recorder of the timeline of a launch, which is an observer with a clock for each warp.

A clock advances by one at each instruction of its warp, and to the end of a wait. The timeline therefore shows warps in
parallel, although the machine executes them in turn. The order of turns has no effect on the timeline.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...kernel_parameters import KernelParameters
from .._copies.parts import Parts
from .._findings import Finding
from .._ptx import Instruction
from .._warps.code import Code, Outcome, Step
from .._warps.events import (
    AbsentSource,
    Arrive,
    ArriveAfterCopies,
    BarrierEvent,
    BoxIssued,
    BytesCame,
    CommitGroup,
    CompleteBytes,
    Event,
    Exit,
    ExpectBytes,
    Fence,
    GridWait,
    Init,
    Invalidate,
    IssuedTogether,
    MapCopied,
    MbarrierEvent,
    OfMbarrier,
    PhaseComplete,
    Poll,
    RegistersTouched,
    SignaledElsewhere,
    Start,
    UnwrittenRead,
    WaitGroup,
    WarpTogether,
    assert_never,
)
from .._warps.group import Group
from .._warps.lanes import WARP, WARPGROUP, Lanes, as_array
from .._warps.observe import Access
from .._warps.spaces import PARAM_WINDOW
from .._warps.tensor_events import CommitArrived, OperationCommitted, OperationIssued, TensorEvent
from .copies import Copy, Groups, Product
from .mbarriers import Phase, Recorded
from .tensor_pipes import TensorOperation, TensorPipes
from .thread_barriers import ThreadBarriers

__all__ = ["Life", "Recorder", "Wait"]


_WAITING = (("mbarrier", "try_wait"), ("barrier", "cluster"))


@dataclass(frozen=True, slots=True)
class Wait:
    """The wait of a warp at an instruction; the warp did not wait if both steps are equal.

    `awaits` is a description of the awaited event, or the position of an mbarrier in `Memory.shared`.
    """

    begin: int
    end: int
    instruction: Instruction | None
    awaits: str | int
    in_vain: bool = False


@dataclass(slots=True)
class Life:
    """The record of one warp of one CTA, from its start to its end."""

    block: tuple[int, int, int]
    number: int
    begin: int
    end: int | None = None
    waits: list[Wait] = field(default_factory=list)
    products: list[Product | TensorOperation] = field(default_factory=list)
    does: dict[str, None] = field(default_factory=dict)  # The keys are "loads", "stores", "wgmma" and "tcgen05".


class Recorder:
    """An observer that records the timeline of one launch.

    Parameters
    ----------
    parameters : KernelParameters
        The parameters of the kernel, which contain the names of tensor maps.
    """

    def __init__(self, parameters: KernelParameters):
        self._map_names = {PARAM_WINDOW + each.offset_bytes: each.name for each in parameters}
        self._steps: dict[Code, list[Step]] = {}
        self._warps: Any = slice(0, 0)
        self._lanes: Lanes | None = None
        self._looked: dict[int, int] = {}  # The dictionary maps a warp to the step of its first unsuccessful poll.
        self._by: Instruction | None = None  # The attribute `_by` is the instruction that is being executed.
        self._current: Copy | None = None  # The attribute `_current` is the copy that is writing its bytes.
        self._boxes: dict[int, tuple[Any, int]] = {}
        self._groups: dict[str, Groups] = defaultdict(Groups)
        self._last_product: dict[int, int] = {}
        self._slot_free: dict[int, int] = {}
        self._pipes = TensorPipes()
        self._barriers: dict[int, Recorded] = {}  # The dictionary contains the mbarriers that are initialized.
        self.mbarriers: list[Recorded] = []
        self._copies: dict[object, Copy] = {}  # The statement, the warp and the step of a copy form its key.
        self.lives: list[Life] = []

    def begin(self, parts: Parts) -> None:
        """Initialize the clocks before the launch runs."""
        self.parts = parts
        warps = parts.geometry.lanes // WARP
        self._clock = np.zeros(warps, np.int64)
        self._living: list[Life | None] = [None] * warps
        self._size = parts.geometry.lanes_of_cta * parts.geometry.cluster_ctas
        self._thread_barriers = ThreadBarriers(parts.geometry, self._clock, self._wait)

    def findings(self) -> tuple[Finding, ...]:
        """Return no findings, because the recorder checks nothing."""
        return ()

    def explained(self, *of_fault: object) -> tuple:
        """Return an empty explanation, because the recorder does not explain faults."""
        return ()

    def follows(self, before: object) -> None:
        """Ignore the preceding launch, because a traced launch does not overlap with other launches."""

    @property
    def copies(self) -> Iterable[Copy]:
        """The copies in the order in which they took effect."""
        return self._copies.values()

    # ---- time ----

    def steps_of(self, code: Code) -> list[Step]:
        """Return the steps of a function; each returned step also advances the clocks of its warps."""
        if code not in self._steps:
            instructions = [*code.function.instructions, None]
            self._steps[code] = [self._counted(*each) for each in zip(code.steps, instructions, strict=True)]
        return self._steps[code]

    def _counted(self, step: Step, by: Instruction | None) -> Step:
        """Return a step that also advances clocks, except if the machine may repeat its instruction after a wait."""
        took = 0 if by is not None and by.opcode[:2] in _WAITING else 1

        def run(group: Group[Any], lanes: Lanes) -> Outcome:
            if lanes is not self._lanes:
                self._lanes, self._warps = lanes, _warps_of(lanes)
            self._clock[self._warps] += took
            self._by, self._current = by, None
            return step(group, lanes)

        return run

    def _now(self, lane: int) -> int:
        return int(self._clock[lane // WARP])

    def _wait(self, lanes: Lanes, until: int, awaits: str | int) -> None:
        """Record a wait of warps until a step; a clock that is already later does not change."""
        for warp in np.unique(as_array(lanes) // WARP).tolist():
            now = int(self._clock[warp])
            self._clock[warp] = end = max(now, until)
            if (life := self._living[warp]) is not None:
                life.waits.append(Wait(now, end, self._by, awaits))

    # ---- events ----

    def event(self, event: Event) -> None:
        """Record an event of the machine."""
        match event:
            case Start():
                self._start(event)
            case Exit():
                self._exit(event)
            case ArriveAfterCopies():
                self._arrive_after_copies(event)
            case MbarrierEvent():
                self._mbarrier(event)
            case BarrierEvent():
                self._thread_barriers.event(event)
            case CommitGroup() | WaitGroup():
                self._products(event) if event.kind == "wgmma" else self._groups_of_copies(event)
            case BoxIssued():
                self._boxes[event.lanes.start] = event.box, event.address
            case WarpTogether() | GridWait() | Fence() | IssuedTogether() | SignaledElsewhere() | MapCopied():
                pass
            case AbsentSource() | UnwrittenRead() | RegistersTouched():
                pass
            case TensorEvent():
                self._tensor(event)
            case _:
                assert_never(event)

    def _tensor(self, event: TensorEvent) -> None:
        """Record an operation of tensor memory, or an arrival of ``tcgen05.commit``."""
        if isinstance(event, CommitArrived):
            if (barrier := self._barriers.get(event.position)) is not None:
                barrier.change(self._pipes.end_of(event.commit), 1, 0)
        elif isinstance(event, OperationIssued | OperationCommitted):
            cta, now = int(self.parts.geometry.cta_of_lane[lane := event.lanes.start]), self._now(lane)
            if isinstance(event, OperationCommitted):
                self._pipes.commit(cta, event, now)
            elif (life := self._living[lane // WARP]) is not None:
                life.products.append(self._pipes.issue(cta, event, now))
                life.does["tcgen05"] = None

    def _start(self, event: Start) -> None:
        lanes = as_array(event.lanes)
        geometry = self.parts.geometry
        slot = int(lanes[0]) // self._size
        begin = self._slot_free.get(slot, 0)
        for warp in np.unique(lanes // WARP).tolist():
            cta, of_cta = divmod(warp, geometry.lanes_of_cta // WARP)
            self._clock[warp] = begin
            self._living[warp] = life = Life(geometry.block_index(cta), of_cta, begin)
            self.lives.append(life)

    def _exit(self, event: Exit) -> None:
        for warp in np.unique(as_array(event.lanes) // WARP).tolist():
            if not self.parts.alive[warp * WARP : (warp + 1) * WARP].any() and (life := self._living[warp]):
                life.end, self._living[warp] = int(self._clock[warp]), None
                slot = warp * WARP // self._size
                self._slot_free[slot] = max(life.end, self._slot_free.get(slot, 0))

    # ---- mbarriers ----

    def _mbarrier(self, event: OfMbarrier) -> None:
        match event:
            case Init():
                self._init(event)
            case PhaseComplete():
                if (barrier := self._barriers.get(event.position)) is not None:
                    barrier.complete()
            case Arrive() | ExpectBytes():
                self._arrive(event)
            case Poll():
                self._waited(event)
            case BytesCame():
                self._came(event)
            case Invalidate() | CompleteBytes() | ArriveAfterCopies():
                pass
            case _:
                assert_never(event)

    def _init(self, event: Init) -> None:
        pitch, geometry = self.parts.memory.shared_pitch, self.parts.geometry
        given = zip(as_array(event.lanes), event.positions, event.counts, strict=True)
        for lane, position, count in given:
            at, block = int(position), geometry.block_index(int(position) // pitch)
            made = Recorded(at, block, count, event.instruction, [Phase(self._now(lane))])
            self._barriers[at] = made
            self.mbarriers.append(made)

    def _arrive(self, event: Arrive | ExpectBytes) -> None:
        arrives, expects = isinstance(event, Arrive), isinstance(event, ExpectBytes) or event.expects
        for lane, position, value in zip(as_array(event.lanes), event.positions, event.values, strict=True):
            if (barrier := self._barriers.get(int(position))) is not None:
                arrivals = (1 if expects else int(value)) if arrives else 0
                barrier.change(self._now(lane), arrivals, -int(value) if expects else 0)

    def _came(self, event: BytesCame) -> None:
        barrier = self._barriers.get(event.position)
        if barrier is not None:
            now = int(np.max(self._clock[self._warps], initial=0))
            barrier.change(self._current.end if self._current else now, 0, event.size_bytes)

    def _waited(self, event: Poll) -> None:
        lanes, positions, done = as_array(event.lanes), event.positions, event.done
        for warp in np.unique(lanes[~done] // WARP).tolist():
            self._looked.setdefault(warp, int(self._clock[warp]))
        for warp in np.unique(lanes[done] // WARP).tolist():
            self._looked.pop(warp, None)
        for position in np.unique(positions[done]).tolist():
            if (barrier := self._barriers.get(position)) is not None:
                here = lanes[done & (positions == position)]
                self._wait(here, barrier.completed_at, position)

    # ---- asynchronous operations ----

    def issue(self, lane: int, instruction: Instruction, kind: str | None) -> Copy | Product | None:
        """Begin an operation; the first access to memory adds a copy to the timeline."""
        if instruction.opcode[0] == "tcgen05":
            return None
        if instruction.opcode[0] == "wgmma":
            return self._product(lane, instruction)
        block = self.parts.geometry.block_index(int(self.parts.geometry.cta_of_lane[lane]))
        copy = Copy(lane // WARP, block, instruction, self._now(lane))
        if "tensor" in instruction.opcode and lane in self._boxes:
            copy.box, address = self._boxes[lane]
            copy.map_name = self._map_names.get(address, "")
        if kind is not None:
            self._groups[kind].add(lane, copy.read_by, copy.end)
        return copy

    def issue_each(self, lanes: np.ndarray, instruction: Instruction, kind: str, is_now: bool) -> None:
        """Return None, so that the operations of lanes begin separately."""

    def _product(self, lane: int, instruction: Instruction) -> Product:
        warpgroup = lane // WARPGROUP
        warps = range(4 * warpgroup, 4 * warpgroup + 4)
        begin = max(int(self._clock[warps.start : warps.stop].max()), self._last_product.get(warpgroup, 0))
        product = Product(warpgroup, instruction, begin)
        self._last_product[warpgroup] = product.end
        self._groups["wgmma"].add(warpgroup, product.end, product.end)
        for warp in warps:
            if (life := self._living[warp]) is not None:
                life.products.append(product)
                life.does["wgmma"] = None
        return product

    def access(self, access: Access) -> None:
        """Record the size of a copy, and the step of its effect, from its accesses."""
        copy = access.actor
        if not isinstance(copy, Copy) or access.proxy == "tensormap":
            return
        self._current = copy
        if access.space == "shared" and copy.position is None:
            copy.position, copy.mbarrier = int(access.positions[0]), access.signal
            copy.size_bytes = access.size_bytes * len(access.positions)
            self._add(copy)
        elif access.space == "shared" and access.kind == "write":  # Each destination CTA of a multicast counts once.
            self._copies[_name_of(copy)].times += 1

    def _add(self, copy: Copy) -> None:
        """Add a copy; combine all destinations of a multicast, and copies that a warp issues at once."""
        known = self._copies.setdefault(_name_of(copy), copy)
        if known is not copy:
            known.times += 1
            known.size_bytes += copy.size_bytes if copy.kind == "copy" else 0
            return
        if (life := self._living[copy.warp]) is not None:
            life.does[{"load": "loads", "store": "stores", "reduce": "stores"}.get(copy.kind, "copies")] = None

    def _arrive_after_copies(self, event: ArriveAfterCopies) -> None:
        groups = self._groups["cp.async"]
        for lane, position in zip(as_array(event.lanes).tolist(), event.positions.tolist(), strict=True):
            if (barrier := self._barriers.get(position)) is not None:
                barrier.change(max(self._now(lane), groups.begun(lane)), 1, 0)

    def _groups_of_copies(self, event: CommitGroup | WaitGroup) -> None:
        groups, lanes = self._groups[event.kind], as_array(event.lanes).tolist()
        if isinstance(event, CommitGroup) or event.commits:
            for lane in lanes:
                groups.commit(lane)
        if isinstance(event, WaitGroup):
            until = max(groups.done(lane, event.most, event.reads_only) for lane in lanes)
            self._wait(event.lanes, until, "its copies")

    def _products(self, event: CommitGroup | WaitGroup) -> None:
        groups, lanes = self._groups["wgmma"], as_array(event.lanes)
        for warpgroup in np.unique(lanes // WARPGROUP).tolist():
            if isinstance(event, CommitGroup):
                groups.commit(warpgroup)
            else:
                here = lanes[lanes // WARPGROUP == warpgroup]
                self._wait(here, groups.done(warpgroup, event.most), "its products")

    # ---- the end ----

    def end(self) -> int:
        """Record endless waits of the remaining threads, and return the last step of the timeline."""
        waiting = [*self.parts.waiting()]
        begins = self._clock.copy()
        for warp in {warp for each in waiting for warp in (each.parked.lanes // WARP).tolist()}:
            begins[warp] = self._looked.get(warp, begins[warp])
        last = max([0, *begins.tolist(), *(copy.end for copy in self.copies)])
        last += last // 4 if waiting else 0  # A longer timeline makes waits at the end visible.
        for each in waiting:
            for warp in np.unique(each.parked.lanes // WARP).tolist():
                if (life := self._living[warp]) is not None:
                    life.waits.append(Wait(int(begins[warp]), last, each.parked.instruction, str(each.awaits), True))
        return last


def _name_of(copy: Copy) -> object:
    """Return a key that is equal for copies that the timeline shows as one copy."""
    return id(copy.instruction), copy.warp, copy.begin


def _warps_of(lanes: Lanes) -> Any:
    """Return an index that selects the clocks of the warps of some lanes."""
    if isinstance(lanes, slice):
        last = range(lanes.start, lanes.stop, lanes.step or 1)[-1]
        if (lanes.step or 1) <= WARP:
            return slice(lanes.start // WARP, last // WARP + 1)
    return np.unique(as_array(lanes) // WARP)
