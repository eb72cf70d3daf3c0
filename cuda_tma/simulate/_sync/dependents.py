"""The waits of a grid for preceding grids, and its signals to the next grid (programmatic dependent launch).

Source: PTX ISA 9.0, "Miscellaneous Instructions: griddepcontrol"; CUDA C++ Programming Guide, "Programmatic Dependent
Launch and Synchronization".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .._warps.code import YIELD, Outcome
from .._warps.events import GridWait
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import Lanes, as_array
from .._warps.observe import Events
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked

__all__ = ["Dependents"]


class Dependents:
    """The dependencies between one grid and the grids that precede and follow it.

    Attributes
    ----------
    is_held : bool
        Whether a preceding grid still runs, so that ``griddepcontrol.wait`` waits until :meth:`release`.
    """

    def __init__(self, geometry: Geometry, scheduler: Scheduler, events: Events, is_held: bool):
        self._geometry, self._scheduler, self._events = geometry, scheduler, events
        self._parked: list[Parked] = []
        self._signalled = np.zeros(geometry.resident_ctas, bool)
        self.is_held = is_held

    @property
    def waits(self) -> bool:
        """Return whether threads of the grid wait for a preceding grid."""
        return bool(self._parked)

    def started(self, ctas: range) -> None:
        """Reset the signals of CTAs that begin."""
        self._signalled[ctas.start : ctas.stop] = False

    def signal(self, group: Group[Any], lanes: Lanes, pc: int) -> Outcome:
        """Record that a thread of each CTA of `lanes` executes ``griddepcontrol.launch_dependents``."""
        self._signalled[self._geometry.cta_of_lane[lanes]] = True
        self._scheduler.add(group.context, pc + 1, as_array(lanes))
        return YIELD

    def have_signalled(self) -> bool:
        """Return whether every running CTA has executed ``griddepcontrol.launch_dependents``."""
        slots = np.array(self._geometry.cluster_of_slot) >= 0
        resident = np.repeat(slots, self._geometry.cluster_ctas)
        return bool(self._signalled[resident].all())

    def wait(self, group: Group[Any], lanes: Lanes, pc: int) -> Outcome:
        """Execute ``griddepcontrol.wait``, which waits until the preceding grids have ended."""
        if not self.is_held:
            self._events.tell(GridWait(lanes))
            return None
        self._parked.append(Parked(group.context, pc, pc + 1, as_array(lanes)))
        return YIELD

    def release(self) -> None:
        """Release the waiting threads, because the preceding grids have ended."""
        self.is_held = False
        for parked in self._parked:
            self._events.tell(GridWait(parked.lanes))
            self._scheduler.add(parked.context, parked.pc, parked.lanes)
        self._parked = []
