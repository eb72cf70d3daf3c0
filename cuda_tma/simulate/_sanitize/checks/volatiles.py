"""The check of volatile loads of shared memory that read data of other threads.

Volatile accesses do not race (PTX ISA, "Conflict and Data-races"), but they order no other accesses. Threads of one
warp also execute independently (CUDA C++ Programming Guide, "Independent Thread Scheduling"). A kernel that polls a
flag compares the loaded value. A value that no instruction compares is data. At the time of the load, another thread
may not have written the data yet.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from ..._ptx import Function, Instruction
from ..._warps.hazards import read_registers, written_registers
from ..._warps.program import Program
from ..model.clocks import Known
from ..model.shadow import WEAK, Cells, Conflict, Shadow
from ..report.collector import FindingCollector

__all__ = ["VolatileLoads"]

_COMPARES = {"setp", "set", "slct", "testp", "brx"}


class VolatileLoads:
    """The comparison of each volatile load of data with the prior volatile stores."""

    def __init__(self, program: Program, shadow: Shadow, collector: FindingCollector):
        self._program, self._shadow, self._collector = program, shadow, collector
        self._takes_data: dict[int, bool] = {}

    def races(self, units: Cells, known: Known, lanes: np.ndarray, load: Instruction) -> Conflict | None:
        """Return the volatile stores that do not precede a volatile load of data."""
        found = self._shadow.after_write(units, known, lanes, WEAK) if self.takes_data(load) else None
        if found is None:
            return None
        stores = [_is_volatile(self._collector.instruction(site), "st") for site in found.sites.tolist()]
        return found.only(np.array(stores)) if any(stores) else None

    def takes_data(self, load: Instruction) -> bool:
        """Return whether a load is volatile, and no instruction compares its value."""
        key = id(load)
        if key not in self._takes_data:
            self._takes_data[key] = _is_volatile(load, "ld") and not self._is_compared(load)
        return self._takes_data[key]

    def _is_compared(self, load: Instruction) -> bool:
        functions = [code.function for code in self._program.codes.values()]
        return any(
            _reaches_comparison(function, load)
            for function in functions
            if any(each is load for each in function.instructions)
        )


def _is_volatile(instruction: Instruction, opcode: str) -> bool:
    return instruction.opcode[0] == opcode and "volatile" in instruction.opcode


def _reaches_comparison(function: Function, load: Instruction) -> bool:
    """Return whether a comparison or a call reads a register whose value depends on a load."""
    readers: dict[int, list[Instruction]] = defaultdict(list)
    for each in function.instructions:
        for register in read_registers(each):
            readers[register].append(each)
    work = [*written_registers(load)]
    seen = {*work}
    while work:
        for each in readers[work.pop()]:
            if each.opcode[0] in _COMPARES or "param" in each.opcode:
                return True
            new = {*written_registers(each)} - seen
            seen |= new
            work += new
    return False
