"""Kernels in a row that overlap (programmatic dependent launch): what a grid waits for, and what it lets begin.

Source: PTX ISA 9.0, "Miscellaneous Instructions: griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent
Launch and Synchronization".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._warps.group import Group
from .._warps.lanes import Lanes, as_array
from .._warps.observe import tell
from .._warps.program import YIELD, Outcome
from .._warps.waiting import Parked

if TYPE_CHECKING:
    from .._machine.machine import Machine

__all__ = ["Dependents"]


class Dependents:
    """Of one grid.

    Attributes
    ----------
    is_held : bool
        Whether grids before this one have not ended, so that ``griddepcontrol.wait`` waits; until :meth:`release`.
    """

    def __init__(self, machine: Machine, is_held: bool):
        self._machine = machine
        self._parked: list[Parked] = []
        self._signalled = np.zeros(machine.geometry.resident_ctas, bool)
        self.is_held = is_held

    @property
    def waits(self) -> bool:
        """Whether threads wait for a grid before this one."""
        return bool(self._parked)

    def started(self, ctas: range) -> None:
        """CTAs begin."""
        self._signalled[ctas.start : ctas.stop] = False

    def signal(self, group: Group, lanes: Lanes, pc: int) -> Outcome:
        """``griddepcontrol.launch_dependents``, by any thread of a CTA: here is a place to begin another grid."""
        self._signalled[self._machine.geometry.cta_of_lane[lanes]] = True
        self._machine.scheduler.add(group.context, pc + 1, as_array(lanes))
        return YIELD

    def may_begin(self) -> bool:
        """Whether every CTA of the grid has signalled, or has ended."""
        slots = np.array(self._machine.geometry.cluster_of_slot) >= 0
        resident = np.repeat(slots, self._machine.geometry.cluster_ctas)
        return self._machine.all_have_begun and bool(self._signalled[resident].all())

    def wait(self, group: Group, lanes: Lanes, pc: int) -> Outcome:
        """``griddepcontrol.wait``: until the grids before have ended."""
        if not self.is_held:
            tell(self._machine, "griddepcontrol.wait", lanes)
            return None
        self._parked.append(Parked(group.context, pc, pc + 1, as_array(lanes)))
        return YIELD

    def release(self) -> None:
        """They have ended."""
        self.is_held = False
        for parked in self._parked:
            tell(self._machine, "griddepcontrol.wait", parked.lanes)
            self._machine.scheduler.add(parked.context, parked.pc, parked.lanes)
        self._parked = []
