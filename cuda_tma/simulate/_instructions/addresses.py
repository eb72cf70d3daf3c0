"""Instructions that convert an address to another state space or to another CTA."""

from __future__ import annotations

import numpy as np

from .._warps.binder import BOOL, I64, Binder, dtype_of
from .._warps.code import Step
from .._warps.lanes import Lanes
from .._warps.spaces import OFFSET_MASK, RANK_SHIFT, WINDOW_BYTES, WINDOWS
from ._table import Group, instruction

SECTION = "Data Movement and Conversion Instructions: {}"


def space_of(parts: tuple[str, ...]) -> str:
    """Return the state space in an opcode as a key of WINDOWS; the key of a generic address is the empty text."""
    found = next((part for part in parts if part.split("::")[0] in WINDOWS), "")
    return found if found in WINDOWS else found.split("::")[0]


@instruction("cvta", section=SECTION.format("cvta"))
def cvta(binder: Binder) -> Step:
    parts = binder.instruction.opcode
    result, source = binder.instruction.operands
    window = WINDOWS[space_of(parts)] * (-1 if "to" in parts else 1)
    read, write = binder.read(source, I64), binder.write(result, I64)
    return lambda group, lanes: write(group, lanes, read(group, lanes) + window)


@instruction("isspacep", section=SECTION.format("isspacep"))
def isspacep(binder: Binder) -> Step:
    name = binder.instruction.opcode[1]
    result, source = binder.instruction.operands
    space = name.split("::")[0]
    if space not in WINDOWS:
        raise binder.unsupported("of no state space")
    read, write = binder.read(source, I64), binder.write(result, BOOL)

    def inside(addresses: np.ndarray, space: str) -> np.ndarray:
        return (addresses >= WINDOWS[space]) & (addresses < WINDOWS[space] + WINDOW_BYTES)

    def step(group: Group, lanes: Lanes) -> None:
        addresses = np.asarray(read(group, lanes))
        if space in ("global", "const"):
            write(group, lanes, (addresses < WINDOWS["param"]) & (space == "global"))
            return
        found = inside(addresses, space)
        if name in ("shared", "shared::cta"):
            ranks = (addresses - WINDOWS["shared"]) >> RANK_SHIFT
            found = found & (ranks == group.parts.geometry.rank_of_lane[lanes])
        write(group, lanes, found)

    return step


@instruction("mapa", section=SECTION.format("mapa"))
def mapa(binder: Binder) -> Step:
    """Return the step that converts an address to an address in another CTA of the cluster.

    If the cluster does not have the CTA, only an access to the address is an error. In the pipelines of CuTe DSL, each
    lane maps the mbarrier to the CTA with the lane's number, but only some lanes arrive at the mapped address.
    """
    parts = binder.instruction.opcode
    result, source, rank = binder.instruction.operands
    dtype = dtype_of(parts[-1])
    window = 0 if len(parts) > 1 and parts[1].startswith("shared") else WINDOWS["shared"]
    read = binder.read(source, dtype)
    read_rank, write = binder.read(rank, dtype_of("u32")), binder.write(result, dtype)

    def step(group: Group, lanes: Lanes) -> None:
        offsets = (np.asarray(read(group, lanes)).astype(np.int64) - window) & OFFSET_MASK
        ranks = np.asarray(read_rank(group, lanes)).astype(np.int64)
        write(group, lanes, (window + (ranks << RANK_SHIFT | offsets)).astype(dtype))

    return step


@instruction("getctarank", section=SECTION.format("getctarank"))
def getctarank(binder: Binder) -> Step:
    result, source = binder.instruction.operands
    read, write = binder.read(source, I64), binder.write(result, dtype_of("u32"))
    return lambda group, lanes: write(group, lanes, read(group, lanes) >> RANK_SHIFT & 0xFF)
