"""The control flow of threads: branches, returns and exits."""

from __future__ import annotations

from typing import cast

import numpy as np

from .._ptx import Immediate, Label, Symbol
from .._warps.binder import U32, Binder
from .._warps.code import YIELD, Outcome, Step
from .._warps.faults import Fault
from .._warps.lanes import Lanes, as_array
from ._table import Group, instruction

SECTION = "Control Flow Instructions: {}"


@instruction("bra", section=SECTION.format("bra"), moves=True)
def bra(binder: Binder) -> Step:
    (label,) = binder.instruction.operands
    if not isinstance(label, Label):
        raise binder.unsupported("a branch to an operand that is not a label")
    target = label.target
    return lambda group, lanes: target


@instruction("brx", section=SECTION.format("brx.idx"), moves=True)
def brx(binder: Binder) -> Step:
    index, listed = binder.instruction.operands
    if not isinstance(listed, Symbol):
        raise binder.unsupported("no list of targets")
    targets = binder.code.function.branch_targets[listed.name]
    read = binder.read(index, U32)

    def step(group: Group, lanes: Lanes) -> Outcome:
        chosen = np.broadcast_to(read(group, lanes), (len(as_array(lanes)),))
        if int(chosen.max()) >= len(targets):
            raise Fault("fault", f"brx.idx with index {int(chosen.max())}, outside its {len(targets)} targets", lanes)
        if (chosen == chosen[0]).all():
            return targets[int(chosen[0])]
        for number in np.unique(chosen):
            group.parts.scheduler.add(group.context, targets[int(number)], as_array(lanes)[chosen == number])
        return YIELD

    return step


@instruction("ret", section=SECTION.format("ret"), moves=True)
def ret(binder: Binder) -> Step:
    def step(group: Group, lanes: Lanes) -> Outcome:
        context = group.context
        if context.caller is None:
            group.parts.exit(as_array(lanes), binder.instruction)
        else:
            context.caller.code.call_sites[context.return_pc].give_back(context, lanes)
            group.parts.scheduler.add(context.caller, context.return_pc, as_array(lanes))
        return YIELD

    return step


@instruction("exit", section=SECTION.format("exit"), moves=True)
def end(binder: Binder) -> Step:
    def step(group: Group, lanes: Lanes) -> Outcome:
        group.parts.exit(as_array(lanes), binder.instruction)
        return YIELD

    return step


@instruction("trap", section="Miscellaneous Instructions: trap")
def trap(binder: Binder) -> Step:
    def step(group: Group, lanes: Lanes) -> Outcome:
        raise Fault("fault", "the kernel executes trap", lanes)

    return step


@instruction("brkpt", "pmevent", section="Miscellaneous Instructions: brkpt, pmevent")
def nothing(binder: Binder) -> Step:
    """Return the step of an instruction for debuggers or profilers, which has no effect on the simulator."""
    return lambda group, lanes: None


@instruction("nanosleep", section="Miscellaneous Instructions: nanosleep")
def nanosleep(binder: Binder) -> Step:
    read = binder.read(binder.instruction.operands[0], U32)

    def step(group: Group, lanes: Lanes) -> None:
        group.parts.clock.sleep(int(np.max(read(group, lanes))))

    return step


@instruction("setmaxnreg", section="Miscellaneous Instructions: setmaxnreg", moves=True)
def setmaxnreg(binder: Binder) -> Step:
    """Return the step that executes ``setmaxnreg.action.sync.aligned.u32 count``.

    The simulator counts the registers of the CTA as a GPU does.
    """
    by, pc, grows = binder.instruction, binder.pc, "inc" in binder.instruction.opcode
    registers = int(cast(Immediate, by.operands[0]).value)
    return lambda group, lanes: group.parts.register_pool.resize(group, lanes, pc, registers, grows, by)


@instruction("griddepcontrol.launch_dependents", section="Miscellaneous Instructions: griddepcontrol", moves=True)
def launch_dependents(binder: Binder) -> Step:
    pc = binder.pc
    return lambda group, lanes: group.parts.dependents.signal(group, lanes, pc)


@instruction("griddepcontrol.wait", section="Miscellaneous Instructions: griddepcontrol", moves=True)
def wait_for_grids(binder: Binder) -> Step:
    pc = binder.pc
    return lambda group, lanes: group.parts.dependents.wait(group, lanes, pc)
