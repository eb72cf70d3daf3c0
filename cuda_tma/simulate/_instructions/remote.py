"""The instructions ``st.async`` and ``red.async``, which send values to another CTA and signal its mbarrier."""

from __future__ import annotations

from functools import partial

import numpy as np

from .._copies.copy import Issue, each_lane, submit
from .._sync.mbarrier import BYTES
from .._warps.binder import Binder, dtype_of
from .._warps.code import Step
from .._warps.lanes import Lanes, count
from ._in_turn import Combine
from ._table import Group, instruction
from .atomics import combination


@instruction("st.async", "red.async", section="Data Movement and Conversion Instructions: st.async; red.async")
def asynchronous(binder: Binder) -> Step:
    """Return the step that executes ``st.async{.vec}.type [address], value, [mbarrier];``."""
    parts = binder.instruction.opcode
    if "mbarrier::complete_tx::bytes" not in parts:
        raise binder.unsupported("without an mbarrier")
    target, source, barrier = binder.instruction.operands
    dtype = dtype_of(parts[-1])
    reads = [binder.read(element, dtype) for element in binder.flat((source,))]
    to, at, size = binder.address(target), binder.address(barrier), dtype.itemsize * len(reads)
    op = next((p for p in parts if p in ("add", "and", "or", "xor", "min", "max", "inc", "dec")), "exch")
    combine = combination(binder, op, parts[-1], "shared")

    def step(group: Group, lanes: Lanes) -> None:
        values = np.stack([np.broadcast_to(read(group, lanes), (count(lanes),)) for read in reads], axis=1)
        ends = zip(to(group, lanes).tolist(), at(group, lanes).tolist(), strict=True)
        for (i, issue), (address, signal) in zip(
            each_lane(group, lanes, binder.instruction, "generic"), ends, strict=True
        ):
            with issue.faults():
                place = issue.position("shared::cluster", address, size, size)
                told = issue.position("shared::cluster", signal, BYTES, BYTES)
                submit(issue, partial(_put, issue, place, values[i].astype(dtype), combine, told))

    return step


def _put(issue: Issue, place: int, values: np.ndarray, combine: Combine, barrier: int) -> None:
    memory = issue.parts.memory.shared.typed(values.dtype)
    first = place // values.itemsize
    issue.observe("write", "shared", np.array([place]), values.nbytes, barrier)
    memory[first : first + len(values)] = combine(memory[first : first + len(values)].copy(), values)
    issue.parts.mbarriers.complete_tx(barrier, values.nbytes, f"the store at {issue.name}", issue.instruction)
