"""The instructions ``tcgen05.cp``, which copies from shared memory to tensor memory, and ``tcgen05.shift``."""

from __future__ import annotations

import numpy as np

from ..._copies.copy import Issue, each_lane
from ..._tensor_memory.copy_shapes import COLUMNS_OF_SHIFT, CopyShape, copy_shape_of, shifted
from ..._tensor_memory.layouts import groups_of
from ..._tensor_memory.memory import LANES, split
from ..._warps.binder import U64, Binder
from ..._warps.code import Step
from ..._warps.faults import Fault
from ..._warps.lanes import Lanes, count
from ..._warps.tensor_events import GROUP_LANES, Touch
from .._table import Group, instruction
from ._operations import SharedMatrix, begin, ctas_of, pieces_of
from .allocation import SECTION

_EVERY_LANE = tuple(range(8))


@instruction("tcgen05.cp", section=SECTION.format("cp"))
def cp(binder: Binder) -> Step:
    """Return the step that executes ``tcgen05.cp.cta_group.shape{.multicast} [address], descriptor;``."""
    where, source = binder.instruction.operands
    address, descriptor, shape = binder.address(where), binder.read(source, U64), copy_shape_of(binder.instruction)

    def step(group: Group, lanes: Lanes) -> None:
        places, sources = (_listed(read(group, lanes), lanes) for read in (address, descriptor))
        for index, issue in each_lane(group, lanes, binder.instruction):
            with issue.faults():
                offsets = pieces_of(binder, sources[index], shape.rows)[:, : shape.pieces]
                _copy(issue, shape, places[index], SharedMatrix(issue, offsets, "its rows"))

    return step


def _copy(issue: Issue, shape: CopyShape, address: int, source: SharedMatrix) -> None:
    (lane, column), ctas = split(address), ctas_of(issue)
    if int(shape.lanes.max()) + lane >= LANES:
        raise Fault(
            "tensor-memory",
            f"tcgen05.cp writes from lane {lane} on and ends at lane {int(shape.lanes.max()) + lane}, but tensor "
            f'memory has {LANES} lanes (PTX ISA, "tcgen05.cp"). Remedy: pass an address whose lane is 0',
            issue.lanes,
            issue.instruction,
        )
    groups = groups_of(shape.lanes.ravel() + lane)

    def run() -> None:
        for cta in ctas:
            data = source.read(cta)
            shape.write(issue.parts.tensor_memory.cells[cta], column, lane, data.reshape(len(data), -1))

    begin(issue, ctas, [Touch(cta, column, shape.columns, groups, False, True) for cta in ctas], [source], run)


@instruction("tcgen05.shift", section=SECTION.format("shift"))
def shift(binder: Binder) -> Step:
    """Return the step that executes ``tcgen05.shift.cta_group.down [address];``."""
    address = binder.address(binder.instruction.operands[0])
    if "down" not in binder.instruction.opcode:
        raise binder.unsupported("in this direction")

    def step(group: Group, lanes: Lanes) -> None:
        places = _listed(address(group, lanes), lanes)
        for index, issue in each_lane(group, lanes, binder.instruction):
            with issue.faults():
                _shift(issue, places[index])

    return step


def _shift(issue: Issue, address: int) -> None:
    (lane, column), ctas = split(address), ctas_of(issue)
    if lane % 32 or lane >= LANES:
        text = f"tcgen05.shift from lane {lane} on: the lane of its address is a multiple of 32 below {LANES}"
        raise Fault("tensor-memory", f'{text} (PTX ISA, "tcgen05.shift")', issue.lanes, issue.instruction)

    def run() -> None:
        for cta in ctas:
            place = issue.parts.tensor_memory.cells[cta][column : column + COLUMNS_OF_SHIFT, lane:]
            place[...] = shifted(place)

    groups = _EVERY_LANE[lane // GROUP_LANES :]
    begin(issue, ctas, [Touch(cta, column, COLUMNS_OF_SHIFT, groups, True, True) for cta in ctas], [], run)


def _listed(values: np.ndarray, lanes: Lanes) -> list[int]:
    return np.broadcast_to(values, (count(lanes),)).tolist()
