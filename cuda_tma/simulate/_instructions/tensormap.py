"""The instructions ``tensormap``, which replace a field of a tensor map, or copy a tensor map from shared memory.

Source: PTX ISA 9.0, "Tensor Map" instructions: ``tensormap.replace``, ``tensormap.cp_fenceproxy``.
"""

from __future__ import annotations

import numpy as np

from ... import codec
from ..._limits import MAX_RANK
from ...codec._codec import with_value
from ...codec._fields import RANK, Field, fields
from ...enums import TensorMapDataType
from ...params import Params
from .._copies.copy import Issue, each_lane
from .._copies.tensor_copy import MAP_BYTES
from .._ptx import Immediate
from .._sync.warp_sync import when_together
from .._warps.binder import U32, U64, Binder
from .._warps.code import Step
from .._warps.events import MapCopied, WarpBarrier
from .._warps.faults import Fault
from .._warps.lanes import Lanes, count
from ._table import Group, instruction
from .addresses import space_of

SECTION = "Data Movement and Conversion Instructions: {}"
# The table maps the name of a field in PTX to its name in params objects. The field .rank of PTX is the rank minus 1.
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
# _RANGES maps a field to its smallest and its largest valid value.
_RANGES = {"rank": (0, MAX_RANK - 1), "element_stride": (1, 8)}
_RULE = 'PTX ISA, "tensormap.replace"'
# The numbers of .elemtype in PTX are those of the driver API, except for the numbers in _ELEMTYPES.
_ELEMTYPES = {8: TensorMapDataType.FLOAT32_FTZ, 9: TensorMapDataType.FLOAT64, 10: TensorMapDataType.BFLOAT16}


@instruction("tensormap.replace", section=SECTION.format("tensormap.replace"))
def tensormap_replace(binder: Binder) -> Step:
    """Return the step of ``tensormap.replace.tile.field{.space}.b1024.type [address], {dimension,} value;``."""
    parts = binder.instruction.opcode
    where, *values = binder.instruction.operands
    field = next((part for part in parts if part in (*_FIELDS, "rank")), None)
    if field is None or "tile" not in parts:
        raise binder.unsupported()
    index = values.pop(0) if field in _ARRAYS else None
    if index is not None and not isinstance(index, Immediate):
        raise binder.unsupported("a dimension that is not a constant")
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
                data[:] = np.frombuffer(_changed(data.tobytes(), field, dimension, value), np.uint8)

    return step


def _map(issue: Issue, space: str, address: int, kind: str) -> np.ndarray:
    """Return the 128 bytes of a tensor map in global or shared memory."""
    memory, at = issue.parts.memory, np.array([address])
    memory.check_aligned(issue.lanes, at, MAP_BYTES)
    ((_, buffer, positions, found),) = memory.pieces(space, issue.lanes, at, MAP_BYTES, writes=kind == "write")
    issue.observe(kind, found, positions + buffer.start, MAP_BYTES)
    return buffer.bytes[int(positions[0]) : int(positions[0]) + MAP_BYTES]


def _changed(raw: bytes, field: str, dimension: int | None, value: int) -> bytes:
    """Return the bytes of a tensor map after one field is replaced.

    All other bits stay the same. A dimension beyond the rank of the map also has fields, which apply if the rank
    increases. A kernel may replace these fields (measured on an H200, with global_dim 2 to 4 and global_stride 3 of a
    map of rank 2). CUTLASS replaces fields beyond the rank for each group of a GEMM (cute/arch/copy_sm90_desc.hpp).
    """
    mode = type(codec.decode(raw))
    row = RANK if field == "rank" else _row(mode, field, dimension)
    _check_value(field, dimension, value)
    if field == "elemtype":
        value = _ELEMTYPES.get(value, value)
    return with_value(raw, row, value + 1 if field == "rank" else value)


def _check_value(field: str, dimension: int | None, value: int) -> None:
    least, most = _RANGES.get(field, (value, value))
    if not least <= value <= most:
        text = f"tensormap.replace sets {field} to {value}; the range is {least} to {most} ({_RULE})"
        raise Fault("map-mismatch", text)
    if field == "global_stride" and value % _STRIDE_BYTES:
        raise Fault(
            "misaligned",
            f"tensormap.replace sets global_stride {dimension} to {value} bytes, but the map can store only a multiple "
            f"of {_STRIDE_BYTES}, such as {value // _STRIDE_BYTES * _STRIDE_BYTES} (CUDA driver API, "
            "cuTensorMapEncodeTiled)",
        )


def _row(mode: type[Params], field: str, dimension: int | None) -> Field:
    """Return the table's entry for a field of a tensor map that has a given mode and the largest rank."""
    rows = {row.index: row for row in fields(mode, MAX_RANK) if row.name == _FIELDS[field]}
    if not rows:
        raise Fault(
            "map-mismatch",
            (f"tensormap.replace.tile sets {field}, but the map is an im2col map, which has no such field ({_RULE})"),
        )
    if dimension not in rows:
        raise Fault(
            "map-mismatch",
            f"tensormap.replace sets {field} {dimension}, but a tensor map has only {field} 0 to {len(rows) - 1} "
            f"({_RULE})",
        )
    return rows[dimension]


@instruction("tensormap.cp_fenceproxy", section=SECTION.format("tensormap.cp_fenceproxy"), moves=True)
def cp_fenceproxy(binder: Binder) -> Step:
    """Return the step of a copy of a tensor map from shared to global memory with a fence.

    A whole warp executes the instruction (``.sync.aligned``). The threads of the warp wait for each other before the
    copy, so the copy contains the writes of all threads. Triton relies on the order of these writes and the copy.
    """
    target, source, _ = binder.instruction.operands
    to, origin = binder.address(target), binder.address(source)
    by, pc = binder.instruction, binder.pc

    def copy(group: Group, lanes: Lanes) -> None:
        group.parts.events.tell(WarpBarrier(lanes))
        ends = zip(to(group, lanes).tolist(), origin(group, lanes).tolist(), strict=True)
        for (_, issue), (there, here) in zip(each_lane(group, lanes, binder.instruction, "generic"), ends, strict=True):
            with issue.faults():
                _map(issue, "global", there, "write")[:] = _map(issue, "shared", here, "read")
        group.parts.events.tell(MapCopied(lanes, by))

    return lambda group, lanes: when_together(group, lanes, pc, copy)
