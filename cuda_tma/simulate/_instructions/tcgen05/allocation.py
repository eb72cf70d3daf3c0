"""The instructions ``tcgen05.alloc``, ``.dealloc`` and ``.relinquish_alloc_permit``, which whole warps execute."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._ptx import Instruction
from ..._sync.warp_sync import WHOLE
from ..._tensor_memory.pairs import pair_of
from ..._warps.binder import U32, Address64, Binder, Read
from ..._warps.code import YIELD, Outcome, Step
from ..._warps.faults import Fault
from ..._warps.lanes import WARP, Lanes, as_array
from ..._warps.tensor_events import ColumnsAllocated, ColumnsFreed, PairMet, Touch
from ..._warps.waiting import Parked
from .._table import Group, instruction
from ..addresses import space_of
from ._operations import ctas_of_group

SECTION = "TensorCore 5th Generation Instructions: tcgen05.{}"
_WORD = np.dtype(np.uint32)
# An Act function takes a warp and its CTAs, and returns False if the warp must wait.
Act = Callable[[Group, np.ndarray, tuple[int, ...]], bool]


def _by_warps(binder: Binder, act: Act) -> Step:
    """Return the step that performs an action for each whole warp.

    With ``.cta_group::2``, a warp of each CTA of the pair takes part.
    """
    by, pc, name = binder.instruction, binder.pc, binder.instruction.opcode[1]
    is_pair = ctas_of_group(by) == 2

    def met(group: Group, warp: np.ndarray) -> list[np.ndarray]:
        """Return the warps that continue together; the list is empty if the warp must wait for its peer CTA."""
        parts = group.parts
        if not is_pair:
            return [warp]
        first, _ = pair_of(parts.geometry, int(parts.geometry.cta_of_lane[warp[0]]), warp)
        parked = Parked(group.context, pc, pc, warp)
        other = parts.tensor_memory.pairs.meet(first, name, parked, parts.geometry.cta_of_lane)
        if other is None:
            return []
        parts.events.tell(PairMet(np.sort(np.concatenate([other.lanes, warp])), by))
        return [other.lanes, warp]

    def step(group: Group, lanes: Lanes) -> Outcome:
        group.parts.tensor_memory.check_group(by, lanes)
        sync = group.parts.warp_sync
        ready = sync.gathered(group, sync.take(group, lanes, pc), pc, WHOLE)
        if ready is None:
            return YIELD
        goes: list[np.ndarray] = []
        for warp in _warps_of(as_array(ready)):
            together = met(group, warp)
            ctas = tuple(sorted(int(group.parts.geometry.cta_of_lane[each[0]]) for each in together))
            if together and act(group, np.sort(np.concatenate(together)), ctas):
                goes += together
        if ready is lanes and sum(map(len, goes)) == len(as_array(lanes)) and not is_pair:
            return None
        for each in goes:
            group.parts.scheduler.add(group.context, pc + 1, each)
        return YIELD

    return step


def _warps_of(lanes: np.ndarray) -> list[np.ndarray]:
    """Return the lanes of each warp; the last warp of a CTA may have fewer than 32."""
    return np.split(lanes, np.flatnonzero(np.diff(lanes // WARP)) + 1)


@instruction("tcgen05.alloc", section=SECTION.format("alloc"), moves=True)
def alloc(binder: Binder) -> Step:
    """Return the step that executes ``tcgen05.alloc.cta_group.sync.aligned{.shared::cta}.b32 [address], columns;``."""
    by, (where, count) = binder.instruction, binder.instruction.operands
    address, columns = binder.address(where), binder.read(count, U32)

    def act(group: Group, lanes: np.ndarray, ctas: tuple[int, ...]) -> bool:
        allocator = group.parts.tensor_memory.allocator
        asked = _same(columns, group, lanes)
        allocator.check_count(asked, by, lanes)
        place = allocator.take(ctas, asked, by, lanes)
        if place is None:
            for warp in _warps_of(lanes):
                allocator.park(Parked(group.context, binder.pc, binder.pc, warp), asked)
            return False
        undefined = group.parts.undefined
        if undefined is not None and undefined.has_columns:
            group.parts.tensor_memory.cells[list(ctas), place : place + asked] = undefined.word
        for warp in _warps_of(lanes):
            _put(group, by, address, warp, place)
        return True

    return _by_warps(binder, act)


def _put(group: Group, by: Instruction, address: Address64, warp: np.ndarray, place: int) -> None:
    """Write the address of the allocated columns to shared memory."""
    memory, size, lane = group.parts.memory, _WORD.itemsize, warp[:1]
    positions = memory.in_shared(space_of(by.opcode), lane, address(group, lane), size, size)
    group.parts.events.tell(ColumnsAllocated(warp, by, int(positions[0])))
    memory.shared.typed(_WORD)[positions // size] = place


@instruction("tcgen05.dealloc", section=SECTION.format("dealloc"), moves=True)
def dealloc(binder: Binder) -> Step:
    """Return the step that executes ``tcgen05.dealloc.cta_group.sync.aligned.b32 address, columns;``."""
    by, (where, count) = binder.instruction, binder.instruction.operands
    address, columns = binder.read(where, U32), binder.read(count, U32)

    def act(group: Group, lanes: np.ndarray, ctas: tuple[int, ...]) -> bool:
        allocator = group.parts.tensor_memory.allocator
        asked, first = _same(columns, group, lanes), _same(address, group, lanes)
        allocator.check_count(asked, by, lanes)
        allocator.free(ctas, first, asked, by, lanes)
        for cta, warp in zip(ctas, _warps_of(lanes), strict=True):
            touch = Touch(cta, first, asked, tuple(range(8)), False, True)
            group.parts.events.tell(ColumnsFreed(warp, by, touch))
        return True

    return _by_warps(binder, act)


@instruction("tcgen05.relinquish_alloc_permit", section=SECTION.format("relinquish_alloc_permit"), moves=True)
def relinquish(binder: Binder) -> Step:
    def act(group: Group, lanes: np.ndarray, ctas: tuple[int, ...]) -> bool:
        for cta in ctas:
            group.parts.tensor_memory.allocator.relinquish(cta, binder.instruction)
        return True

    return _by_warps(binder, act)


def _same(read: Read, group: Group, lanes: np.ndarray) -> int:
    """Return the value of an operand; raise a fault if the value differs between the lanes of a warp."""
    values = np.broadcast_to(read(group, lanes), lanes.shape)
    if (values != values[0]).any():
        raise Fault("fault", "the threads of a warp give different operands to one instruction of the warp", lanes)
    return int(values[0])
