"""Copies through tensor maps, which the emulator performs on the memory of a launch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np

from ... import codec, emulate
from ...emulate import REDUCTIONS, Tile
from ...emulate._traversal import check_is_row, visit, visit_rows
from ...emulate._whole import whole
from ...params import Params, TiledParams
from ...smem import smem_bytes, swizzle_offset
from .._memory.global_memory import Segment
from .._warps.faults import Fault
from .._warps.spaces import PARAM_WINDOW
from .copy import BULK, Issue, submit
from .footprint import footprint

__all__ = ["MAP_BYTES", "PARAM_WINDOW", "REDUCTIONS", "Box", "check_box", "load", "params_at", "reduce", "store"]

MAP_BYTES = 128
# The address of a box in shared memory is a multiple of 128 bytes (PTX ISA, "cp.async.bulk.tensor").
_SMEM_ALIGNMENT = 128
# The driver requires an alignment of 64 bytes for a tensor map, although CUtensorMap in CUDA 13 has an alignment of
# 128.
_MAP_ALIGNMENT = 64
_REPEAT_BYTES = 1024  # Every swizzle uses only the low 10 bits of an address.
# NumPy has no integer type of 16 bytes, so complex128 is the type of an item of 16 bytes.
_CHUNK = np.dtype(np.complex128)
_decoded = lru_cache(maxsize=1024)(codec.decode)


@dataclass(frozen=True, slots=True)
class Box:
    """The box of one copy: the parameters of the tensor map, the coordinates, and the mode.

    Attributes
    ----------
    params : Params
    coordinates, offsets : tuple of int
        The coordinates and offsets in the instruction; only im2col has offsets.
    rows : bool
        Whether the coordinates contain the indices of four rows (gather4, scatter4).
    """

    params: Params
    coordinates: tuple[int, ...]
    offsets: tuple[int, ...] = ()
    rows: bool = False


def params_at(issue: Issue, address: int) -> Params:
    """Return the tensor map at a generic address."""
    lanes, parts = issue.lanes, issue.parts
    if address % _MAP_ALIGNMENT:
        raise Fault(
            "misaligned", f"the tensor map at 0x{address:x} is not at a multiple of {_MAP_ALIGNMENT} bytes", lanes
        )
    segment = parts.memory.all_global.find(address)
    if segment is not None and address + MAP_BYTES <= segment.stop:
        if segment.writeable:  # A read of the map needs a check only if a kernel can write to the memory.
            issue.observe("read", "global", np.array([address]), MAP_BYTES, proxy="tensormap")
        start = address - segment.start
        return _decoded(segment.bytes[start : start + MAP_BYTES].tobytes())
    ((_, buffer, positions, space),) = parts.memory.pieces("", lanes, np.array([address]), _MAP_ALIGNMENT)
    if space != "global":
        raise Fault(
            "map-mismatch",
            f"the tensor map is in {space} memory; pass it as a const __grid_constant__ parameter, or put it in "
            "constant or global memory",
            lanes,
        )
    start = int(positions[0])
    issue.observe("read", "global", positions + buffer.start, MAP_BYTES, proxy="tensormap")
    return _decoded(buffer.bytes[start : start + MAP_BYTES].tobytes())


def _memory_of(issue: Issue, params: Params, writes: bool) -> Segment:
    segment, _ = issue.parts.memory.global_bytes(params.global_address, 1, writes)
    return segment


def check_box(box: Box) -> None:
    """Raise a fault for a box that does not fit its tensor map, before the copy moves any byte."""
    if not box.rows or not isinstance(box.params, TiledParams):
        visit(box.params, box.coordinates, box.offsets)
        return
    check_is_row(box.params)
    visit_rows(box.params, box.coordinates)


# ---- loads ----


def load(issue: Issue, box: Box, destinations: list[tuple[int, int]]) -> None:
    """Begin the load of a box.

    Parameters
    ----------
    destinations : list of (int, int)
        Pairs of positions in `Memory.shared`: the destination of the box and its mbarrier. A multicast has one pair for
        each CTA.
    """
    for position, _ in destinations:
        _check_position(issue, position)
    for position, barrier in destinations:
        submit(issue, partial(_load, issue, box, position, barrier))


def _load(issue: Issue, box: Box, position: int, barrier: int) -> None:
    image, written, tx_bytes = _image(box, _memory_of(issue, box.params, writes=False), position)
    _check_end(issue, position, len(image))
    _observe_tensor(issue, "read", box, barrier)
    issue.observe("write", "shared", np.array([position]), len(image), barrier)
    place = issue.parts.memory.shared.bytes[position : position + len(image)]
    if written is None:
        place[:] = image
    else:
        place[written] = image[written]
    issue.parts.mbarriers.complete_tx(barrier, tx_bytes, f"the load at {issue.name}", issue.instruction)


def _image(box: Box, segment: Segment, position: int) -> tuple[np.ndarray, np.ndarray | None, int]:
    """Return the image of a box in shared memory, the mask of written bytes, and their number.

    The mask is None if the load writes all bytes.
    """
    if (chunks := _chunks(box, segment, position)) is not None:
        found = segment.typed(_CHUNK)[chunks].view(np.uint8)
        return found, None, len(found)
    tile = _tile(box, segment)
    image, written = _shifted(box.params, position, tile)
    return image, None if written.all() else written, tile.tx_bytes


def _chunks(box: Box, segment: Segment, position: int) -> np.ndarray | None:
    """Return the index in the segment of each 16-byte chunk of a box; None if the box is not simple."""
    found = None if box.rows or box.offsets else whole(box.params)
    if found is None or (origin := found.origin(box.coordinates)) is None:
        return None
    start = box.params.global_address + origin - segment.start
    if start % _CHUNK.itemsize or start + found.reach_bytes > len(segment.bytes) // _CHUNK.itemsize * _CHUNK.itemsize:
        return None
    shift = position % _REPEAT_BYTES
    if shift and _order(box.params.swizzle, shift, found.size_bytes) is not None:
        return None
    return found.chunks + start // _CHUNK.itemsize


def _tile(box: Box, segment: Segment) -> Tile:
    if box.rows and isinstance(box.params, TiledParams):
        return emulate.gather4(box.params, segment.bytes, box.coordinates, segment.start)
    return emulate.load(box.params, segment.bytes, box.coordinates, box.offsets, segment.start)


# ---- stores and reductions ----


def store(issue: Issue, box: Box, position: int) -> None:
    """Begin the store of a box: the first stage reads shared memory, and the second stage writes to the tensor."""
    _store_in_stages(issue, box, position, emulate.scatter4 if box.rows else emulate.store, "write")


def reduce(issue: Issue, box: Box, position: int, op: str) -> None:
    """Begin the reduction of a box into the tensor."""

    def combine(params: Params, memory: np.ndarray, smem: np.ndarray, coordinates: tuple, base_address: int) -> int:
        return emulate.reduce(params, memory, smem, coordinates, op, base_address)

    _store_in_stages(issue, box, position, combine, "atomic")


def _store_in_stages(issue: Issue, box: Box, position: int, write: Callable[..., int], kind: str) -> None:
    _check_position(issue, position)
    taken: list[np.ndarray] = []

    def read() -> None:
        size = _size_of(box)
        _check_end(issue, position, size)
        issue.observe("read", "shared", np.array([position]), size)
        taken.append(issue.parts.memory.shared.bytes[position : position + size].copy())

    def change() -> None:
        segment = _memory_of(issue, box.params, writes=True)

        def put() -> None:
            if kind == "write" and (chunks := _chunks(box, segment, position)) is not None:
                segment.typed(_CHUNK)[chunks] = taken[0].view(_CHUNK)
                return
            smem = _unshifted(box.params, position, taken[0])
            write(box.params, segment.bytes, smem, box.coordinates, segment.start)

        _observe_tensor(issue, kind, box, unchanged=partial(_unchanged, box, segment, put) if kind == "write" else None)
        put()

    submit(issue, read, change, kind=BULK)


def _unchanged(box: Box, segment: Segment, put: Callable[[], None]) -> np.ndarray:
    """Return, for each row of a box, whether a store would leave the bytes of the row unchanged.

    The function does not change memory.
    """
    rows, size = footprint(box.params, box.coordinates)
    places = rows[:, None] - segment.start + np.arange(size)
    before = segment.bytes[places]
    put()
    after = segment.bytes[places]
    segment.bytes[places] = before
    return (before == after).all(axis=1)


def _observe_tensor(
    issue: Issue, kind: str, box: Box, signal: int | None = None, unchanged: Callable[[], np.ndarray] | None = None
) -> None:
    if issue.parts.events.observer is not None and not box.rows:
        rows, size = footprint(box.params, box.coordinates)
        if size:
            issue.observe(kind, "global", rows, size, signal, unchanged=unchanged)


def _size_of(box: Box) -> int:
    size = smem_bytes(box.params)
    return 4 * size if box.rows and isinstance(box.params, TiledParams) else size


# ---- places in shared memory ----


def _check_position(issue: Issue, position: int) -> None:
    if position % _SMEM_ALIGNMENT:
        name, aligned = issue.parts.mbarriers.name(position), f"__align__({_SMEM_ALIGNMENT})"
        fix = f"declare it with {aligned}, or 1024 for a swizzle"
        if " + " in name:
            fix = f"pass an offset that is a multiple of {_SMEM_ALIGNMENT} bytes, in a variable with {aligned}"
        raise Fault(
            "misaligned",
            f"the box is at {name}, not at a multiple of {_SMEM_ALIGNMENT} bytes: {fix}",
            issue.lanes,
        )


def _check_end(issue: Issue, position: int, size: int) -> None:
    memory = issue.parts.memory
    end = position % memory.shared_pitch + size
    if end > memory.shared_stop:
        raise Fault(
            "out-of-bounds",
            f"the box of {size} bytes ends {end - memory.shared_stop} bytes past the CTA's shared memory",
            issue.lanes,
        )


def _shifted(params: Params, position: int, tile: Tile) -> tuple[np.ndarray, np.ndarray]:
    """Return the image of a box whose position is not a multiple of the swizzle's period.

    Hardware computes the swizzle from the bits of the address.
    """
    order = _order(params.swizzle, position % _REPEAT_BYTES, len(tile.smem))
    return (tile.smem, tile.written) if order is None else (tile.smem[order], tile.written[order])


def _unshifted(params: Params, position: int, data: np.ndarray) -> np.ndarray:
    order = _order(params.swizzle, position % _REPEAT_BYTES, len(data))
    if order is None:
        return data
    found = np.empty_like(data)
    found[order] = data
    return found


@lru_cache(maxsize=64)
def _order(swizzle: int, shift: int, size: int) -> np.ndarray | None:
    """Return, for each byte at a shifted position, its index in the aligned image.

    Return None if the shifted image and the aligned image are equal.
    """
    offsets = np.arange(size)
    linear = swizzle_offset(swizzle, offsets + shift) - shift
    order = swizzle_offset(swizzle, linear)
    return None if (order == offsets).all() else order
