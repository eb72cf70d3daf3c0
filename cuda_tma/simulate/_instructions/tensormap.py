"""``tensormap``: fields of a map replaced by threads, and maps copied from shared memory behind a fence.

Source: PTX ISA 9.0, "Tensor Map" instructions: ``tensormap.replace``, ``tensormap.cp_fenceproxy``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ... import codec
from ...enums import TensorMapDataType
from ...params import Params
from .._binder import U32, U64, Binder
from .._copy import Issue, each_lane
from .._faults import Fault
from .._group import Group
from .._lanes import Lanes, count
from .._observe import announce, tell
from .._program import Step
from .._tensor_copy import MAP_BYTES
from .._warp_sync import when_together
from ..ptx import Immediate
from ._table import instruction
from .addresses import space_of

SECTION = "Data Movement and Conversion Instructions: {}"
# Fields of one value, and of one for each dimension, by what PTX and params call them. PTX counts the rank from 0.
_FIELDS = {
    "global_address": "global_address",
    "elemtype": "data_type",
    "interleave_layout": "interleave",
    "swizzle_mode": "swizzle",
    "fill_mode": "oob_fill",
    "box_dim": "box_dim",
    "global_dim": "global_dim",
    "global_stride": "global_strides",
    "element_stride": "element_strides",
}
_ARRAYS = ("box_dim", "global_dim", "global_stride", "element_stride")
_STRIDE_BYTES = 16
# The numbers of .elemtype are the driver's, but for these.
_ELEMTYPES = {8: TensorMapDataType.FLOAT32_FTZ, 9: TensorMapDataType.FLOAT64, 10: TensorMapDataType.BFLOAT16}


@instruction("tensormap.replace", section=SECTION.format("tensormap.replace"))
def tensormap_replace(binder: Binder) -> Step:
    """``tensormap.replace.tile.field{.space}.b1024.type [address], {dimension,} value;``"""
    parts = binder.instruction.opcode
    where, *values = binder.instruction.operands
    field = next((part for part in parts if part in (*_FIELDS, "rank")), None)
    if field is None or "tile" not in parts:
        raise binder.unsupported()
    index = values.pop(0) if field in _ARRAYS else None
    if index is not None and not isinstance(index, Immediate):
        raise binder.unsupported("a dimension that is no constant")
    dimension = index.value if index else None
    address, space = binder.address(where), space_of(parts)
    read = binder.read(values[0], U64 if parts[-1] == "b64" else U32)

    def step(group: Group, lanes: Lanes) -> None:
        news = np.broadcast_to(read(group, lanes), (count(lanes),)).tolist()
        given = zip(
            each_lane(group, lanes, binder.instruction, "generic"), address(group, lanes).tolist(), news, strict=True
        )
        for (_, issue), at, value in given:
            with issue.faults():
                data = _map(issue, space, at, "write")
                changed = _changed(codec.decode(data.tobytes()), field, dimension, value)
                data[:] = np.frombuffer(codec.encode(changed), np.uint8)

    return step


def _map(issue: Issue, space: str, address: int, kind: str) -> np.ndarray:
    """The 128 bytes of a map in global or shared memory."""
    memory, at = issue.machine.memory, np.array([address])
    memory.check_aligned(issue.lanes, at, MAP_BYTES)
    ((_, buffer, positions, found),) = memory.pieces(space, issue.lanes, at, MAP_BYTES, writes=kind == "write")
    issue.observe(kind, found, positions + getattr(buffer, "start", 0), MAP_BYTES)
    return buffer.bytes[int(positions[0]) : int(positions[0]) + MAP_BYTES]


def _changed(params: Any, field: str, dimension: int | None, value: int) -> Params:
    if field == "rank":
        return _with_rank(params, value + 1)
    name = _FIELDS[field]
    if field == "elemtype":
        value = _ELEMTYPES.get(value, value)
    if dimension is None:
        return replace(params, **{name: value})
    if field == "global_stride" and value % _STRIDE_BYTES:
        raise Fault(
            "misaligned",
            f"tensormap.replace of global_stride {dimension} by {value} bytes, of which the map holds multiples of "
            f"{_STRIDE_BYTES}: {value // _STRIDE_BYTES * _STRIDE_BYTES} (CUDA driver API, cuTensorMapEncodeTiled)",
        )
    values: list[Any] = [*getattr(params, name)]
    if not 0 <= dimension < len(values):
        raise Fault("map-mismatch", f"tensormap.replace of {field} {dimension}, and the map has {len(values)}")
    values[dimension] = value
    return replace(params, **{name: tuple(values)})


def _with_rank(params: Any, rank: int) -> Params:
    """Dimensions are cut, or added with an extent of 1."""

    def resized(values: tuple[int, ...], size: int, new: int) -> tuple[int, ...]:
        return (*values, *(new,) * size)[:size]

    sizes = {
        "global_dim": (rank, 1),
        "global_strides": (rank - 1, 0),
        "box_dim": (rank, 1),
        "element_strides": (rank, 1),
    }
    return replace(params, **{name: resized(getattr(params, name), *size) for name, size in sizes.items()})


@instruction("tensormap.cp_fenceproxy", section=SECTION.format("tensormap.cp_fenceproxy"), moves=True)
def cp_fenceproxy(binder: Binder) -> Step:
    """A map from shared memory to global memory, and a fence, by a whole warp (``.sync.aligned``).

    Its threads wait for each other before it copies: what each of them wrote is in the copy. Triton relies on it.
    """
    target, source, _ = binder.instruction.operands
    to, origin = binder.address(target), binder.address(source)
    name, by, pc = ".".join(binder.instruction.opcode), binder.instruction, binder.pc

    def copy(group: Group, lanes: Lanes) -> None:
        tell(group.machine, "bar.warp.sync", lanes)
        ends = zip(to(group, lanes).tolist(), origin(group, lanes).tolist(), strict=True)
        for (_, issue), (there, here) in zip(each_lane(group, lanes, binder.instruction, "generic"), ends, strict=True):
            with issue.faults():
                _map(issue, "global", there, "write")[:] = _map(issue, "shared", here, "read")
        announce(group, name, lanes, by)

    return lambda group, lanes: when_together(group, lanes, pc, copy)
