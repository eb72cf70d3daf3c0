"""The search for threads that bypass an instruction at which the rest of their warp waits.

The lanes of a mask execute ``shfl.sync`` together, and all lanes of a warp execute ``bar.sync`` together. On hardware
and on the simulator, a thread does not wait for a thread that has ended. A kernel therefore ends even if a lane
bypasses the instruction, executes later instructions and ends. The bypass is not permitted. A lane that returns early
is correct, because it executes no instruction after the bypassed instruction.

The bypass of a ``bar.warp.sync`` is advice if the lane executes no other synchronization until its end, as in the
``cuda.reduce`` of Numba. Hardware completes the wait at the end of the lane, and no value depends on the lane. The
bypass of ``shfl.sync`` and other instructions with a membermask is an error, because their result is undefined. The
CUDA C++ Programming Guide requires that all threads of the mask that have not exited execute such an instruction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._ptx import Instruction, Label, Symbol
from .._warps.code import Code, Context
from .._warps.fault_log import FaultLog
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import WARP, WARPGROUP
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Standing

__all__ = ["Detours"]

_ENDS = ("ret", "exit", "trap")


class _Flow:
    """The control flow of one function, which contains the next instructions of each instruction."""

    def __init__(self, code: Code):
        self._code = code
        listed = code.function.instructions
        self.end = len(listed)  # The index after the last instruction represents the return at the end of the function.
        self.after = [[*_next(code, pc, each)] for pc, each in enumerate(listed)] + [[]]
        self.before: list[list[int]] = [[] for _ in self.after]
        for pc, following in enumerate(self.after):
            for each in following:
                self.before[each].append(pc)
        self._behind: dict[int, set[int]] = {}

    def behind(self, at: int) -> set[int]:
        """Return the instructions, except trivial ones, that may follow an instruction after its last execution."""
        found = self._behind.get(at)
        if found is None:
            follow, precede = _reached(self.after, self.after[at]), _reached(self.before, [at])
            found = {pc for pc in follow - precede if not self._is_trivial(pc)}
            self._behind[at] = found
        return found

    def passes(self, start: int, at: int) -> bool:
        """Return whether each path from `start` to the end of the function bypasses the instruction at `at`."""
        behind = self.behind(at)
        if not behind:
            return False
        reached = _reached(self.after, [start], behind)
        return not any(pc not in behind and not self.after[pc] for pc in reached)

    def _is_trivial(self, pc: int) -> bool:
        if pc == self.end:
            return True
        instruction = self._code.function.instructions[pc]
        return instruction.opcode[0] in _ENDS or (instruction.opcode[0] == "bra" and instruction.guard is None)


def _next(code: Code, pc: int, instruction: Instruction) -> Iterator[int]:
    name, operands = instruction.opcode[0], instruction.operands
    if instruction.guard is not None or name not in (*_ENDS, "bra", "brx"):
        yield pc + 1
    if name == "bra" and isinstance(operands[0], Label):
        yield operands[0].target
    if name == "brx" and isinstance(operands[1], Symbol):
        yield from code.function.branch_targets[operands[1].name]


def _reached(edges: list[list[int]], starts: Iterable[int], stops: Iterable[int] = ()) -> set[int]:
    """Return all instructions on the paths from `starts`; a path ends at an instruction in `stops`."""
    stops, waiting = {*stops}, [*starts]
    found = {*waiting}
    while waiting:
        pc = waiting.pop()
        fresh = [each for each in edges[pc] if each not in found] if pc not in stops else []
        found.update(fresh)
        waiting += fresh
    return found


class Detours:
    """The search for bypassed instructions, which runs when threads end."""

    def __init__(self, geometry: Geometry, scheduler: Scheduler, faults: FaultLog):
        self._geometry, self._scheduler, self._faults = geometry, scheduler, faults
        self._flows: dict[Code, _Flow] = {}
        # The flag is true if a lane has synchronized while other lanes waited for it.
        self._synchronized = np.zeros(geometry.lanes, bool)

    def standing(self, group: Group[Any], pc: int, absent: np.ndarray) -> list[Standing]:
        """Return the places of absent lanes, without the lanes that wait at another instruction.

        Parameters
        ----------
        group : Group
            The group at `pc`. A lane at `pc` whose guard is false is not in the group and continues.
        absent : numpy.ndarray
            The numbers of the absent lanes in ascending order.
        """
        wanted = np.zeros(self._geometry.lanes, bool)
        wanted[absent] = True
        self._synchronized[absent] = False
        found = self._scheduler.standing_among(wanted)
        here = group.array()
        found += [Standing(group.context, pc + 1, here[wanted[here]])] if wanted[here].any() else []
        return found

    def synchronized(self, lanes: np.ndarray) -> None:
        """Record that lanes synchronize with other lanes."""
        self._synchronized[lanes] = True

    def check(self, parked: Parked, ended: np.ndarray) -> None:
        """Report a fault if ended lanes have bypassed the instruction at which the rest of their warp waits."""
        instruction = parked.instruction
        if instruction is None:
            return
        for standing in parked.absent:
            gone = np.intersect1d(standing.lanes, ended)
            if len(gone) and self._has_passed(parked, standing):
                ends_only = not self._synchronized[gone].any()
                self._faults.keep(_fault(parked, instruction, gone, standing, ends_only))
                return

    def _has_passed(self, parked: Parked, standing: Standing) -> bool:
        waits, stands = _frames(parked.context, parked.at), _frames(standing.context, standing.pc)
        return any(
            self._flow(context.code).passes(after, at)
            for context, (at, _) in waits.items()
            if context in stands
            for _, after in [stands[context]]
        )

    def _flow(self, code: Code) -> _Flow:
        found = self._flows.get(code)
        if found is None:
            found = self._flows[code] = _Flow(code)
        return found


def _frames(context: Context, pc: int) -> dict[Context, tuple[int, int]]:
    """Return the present instruction in a function, and the return address in each of its callers."""
    found = {context: (pc, pc)}
    while context.caller is not None:
        found[context.caller] = context.return_pc - 1, context.return_pc
        context = context.caller
    return found


def _fault(parked: Parked, instruction: Instruction, gone: np.ndarray, standing: Standing, ends_only: bool) -> Fault:
    stood = standing.context.code.instruction(standing.pc)
    is_disputed = ends_only and instruction.opcode[:2] == ("bar", "warp")
    return Fault(
        "barrier-divergence",
        _message(instruction, int(gone[0]), is_disputed),
        parked.lanes,
        instruction,
        [("the other lanes continued", stood)] if stood is not None else [],
        is_disputed,
    )


def _message(instruction: Instruction, gone: int, is_disputed: bool) -> str:
    name = ".".join(instruction.opcode)
    if instruction.opcode[0] == "wgmma":
        what, lane = "threads of a warpgroup", f"thread {gone % WARPGROUP} of the warpgroup"
    else:
        what, lane = "threads of a warp", f"lane {gone % WARP} of the warp"
    is_barrier = instruction.opcode[0] in ("bar", "barrier", "wgmma") and instruction.opcode[1] != "warp"
    rule = "all threads of a warp execute it together" if is_barrier else "all lanes of membermask execute it"
    remedy = "" if is_barrier else ", or compute a mask of the lanes that arrive by __ballot_sync() before the branch"
    effect = ". From compute capability 7.0 on, the wait completes when that lane ends" if is_disputed else ""
    return (
        f"{what} wait at {name}, and {lane} bypasses the instruction and then ends: {rule} (PTX ISA, "
        f'"{".".join(instruction.opcode[:2])}"){effect}. Remedy: put the instruction outside of the branch{remedy}'
    )
