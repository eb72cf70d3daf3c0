"""The instruction ``cp.async.bulk.tensor``, which copies boxes of tensors to or from shared memory."""

from __future__ import annotations

import numpy as np

from ...params import TiledParams
from .._copies import tensor_copy as copy
from .._copies.copy import Issue, each_lane, landings, once_per_warp
from .._copies.tensor_copy import Box
from .._ptx import Address, Operand, Vector
from .._warps.binder import U32, Binder, Read, dtype_of
from .._warps.code import Step
from .._warps.events import BoxIssued
from .._warps.faults import Fault
from .._warps.lanes import Lanes, count, selected
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Data Movement and Conversion Instructions: {}"
_ROWS = ("tile::gather4", "tile::scatter4")
S32 = np.dtype(np.int32)


class Boxes:
    """The operands that describe a box in each lane: ``[map, {coordinates}]``, and offsets for im2col."""

    def __init__(self, binder: Binder, where: Operand, offsets: Operand | None):
        if not isinstance(where, Address) or where.coordinates is None:
            raise binder.unsupported("no coordinates")
        self._instruction = binder.instruction
        self._map = binder.address(Address(where.base, where.offset))
        self._window = _window(binder, where)
        self._coordinates = [binder.read(c, S32) for c in binder.flat(where.coordinates)]
        given = offsets.elements if isinstance(offsets, Vector) else ()
        self._offsets = [binder.read(o, dtype_of("u16")) for o in given]
        self._rows = any(part in _ROWS for part in binder.instruction.opcode)
        is_im2col = any(part.startswith("im2col") for part in binder.instruction.opcode)
        self._is_tiled_load = "mbarrier::complete_tx::bytes" in binder.instruction.opcode and not is_im2col

    def operands(self, group: Group, lanes: Lanes) -> list[np.ndarray]:
        """Return the address of the tensor map and the coordinates of each lane."""
        return [self._map(group, lanes), *(read(group, lanes) for read in self._coordinates)]

    def __call__(self, group: Group, lanes: Lanes) -> list[tuple[Issue, Box]]:
        """Return the box that each lane copies."""
        addresses = self._map(group, lanes) + self._window
        coordinates, offsets = ([_list(r, group, lanes) for r in reads] for reads in (self._coordinates, self._offsets))
        found = []
        for i, issue in each_lane(group, lanes, self._instruction):
            with issue.faults():
                params = copy.params_at(issue, int(addresses[i]))
                if self._is_tiled_load and not isinstance(params, TiledParams):
                    raise _im2col_map()
                box = Box(params, _column(coordinates, i), _column(offsets, i), self._rows)
                group.parts.events.tell(BoxIssued(issue.lanes, box, int(addresses[i])))
                found.append((issue, box))
        return found


def _im2col_map() -> Fault:
    """Return the fault of a load that ends in CUDA_ERROR_ILLEGAL_INSTRUCTION (observed: driver 580, sm_90)."""
    return Fault(
        "map-mismatch",
        "a tiled load through an im2col map: load with offsets (load_im2col), or make a tiled map",
    )


def _window(binder: Binder, where: Address) -> int:
    """Return the window of a tensor map whose operand is a name.

    The name is a parameter, or a variable in constant or global memory.
    """
    from_parameters = {v.name for v in binder.code.function.params}
    return copy.PARAM_WINDOW if getattr(where.base, "name", None) in from_parameters else 0


def _list(read: Read, group: Group, lanes: Lanes) -> list[int]:
    return np.broadcast_to(read(group, lanes), (count(lanes),)).tolist()


def _column(rows: list[list[int]], index: int) -> tuple[int, ...]:
    return tuple(row[index] for row in rows)


@instruction("cp.async.bulk.tensor", section=SECTION.format("cp.async.bulk.tensor"))
def cp_async_bulk_tensor(binder: Binder) -> Step:
    """Return the step of a load or a store.

    The first operand of a load is the destination. The first operand of a store is the tensor map.
    """
    return _load(binder) if "mbarrier::complete_tx::bytes" in binder.instruction.opcode else _store(binder)


def _load(binder: Binder) -> Step:
    parts = binder.instruction.opcode
    target, where, barrier, *rest = binder.instruction.operands
    offsets = rest.pop(0) if rest and isinstance(rest[0], Vector) else None
    boxes = Boxes(binder, where, offsets)
    to, at, space = binder.address(target), binder.address(barrier), space_of(parts)
    mask = binder.read(rest.pop(0), U32) if "multicast::cluster" in parts else None

    def step(group: Group, lanes: Lanes) -> None:
        masks = [None] * count(lanes) if mask is None else _list(mask, group, lanes)
        given = zip(boxes(group, lanes), to(group, lanes).tolist(), at(group, lanes).tolist(), masks, strict=True)
        for (issue, box), address, barrier_address, to_ctas in given:
            with issue.faults():
                copy.load(issue, box, landings(issue, space, address, barrier_address, to_ctas, 1, 1))

    return step


def _store(binder: Binder) -> Step:
    where, source, *_ = binder.instruction.operands
    boxes, address = Boxes(binder, where, None), binder.address(source)

    def step(group: Group, lanes: Lanes) -> None:
        stores = once_per_warp(lanes, address(group, lanes), *boxes.operands(group, lanes))
        firsts = selected(np.array([*stores]))
        for (issue, box), at in zip(boxes(group, firsts), address(group, firsts).tolist(), strict=True):
            issue.sharers = stores[issue.lane]
            with issue.faults():
                copy.store(issue, box, issue.position("shared", at, 1, 1))

    return step


@instruction("cp.reduce.async.bulk.tensor", section=SECTION.format("cp.reduce.async.bulk.tensor"))
def cp_reduce_async_bulk_tensor(binder: Binder) -> Step:
    where, source, *_ = binder.instruction.operands
    boxes, address = Boxes(binder, where, None), binder.address(source)
    op = next(part for part in binder.instruction.opcode if part in copy.REDUCTIONS)

    def step(group: Group, lanes: Lanes) -> None:
        for (issue, box), at in zip(boxes(group, lanes), address(group, lanes).tolist(), strict=True):
            with issue.faults():
                copy.reduce(issue, box, issue.position("shared", at, 1, 1), op)

    return step


@instruction("cp.async.bulk.prefetch.tensor", section=SECTION.format("cp.async.bulk.prefetch.tensor"))
def cp_async_bulk_prefetch_tensor(binder: Binder) -> Step:
    """Return the step of a prefetch, which only compares the coordinates with the tensor map.

    The simulator has no caches.
    """
    where, *rest = binder.instruction.operands
    boxes = Boxes(binder, where, rest[0] if rest else None)

    def step(group: Group, lanes: Lanes) -> None:
        for issue, box in boxes(group, lanes):
            with issue.faults():
                copy.check_box(box)

    return step
