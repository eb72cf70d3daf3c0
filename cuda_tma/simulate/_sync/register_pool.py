"""The instruction ``setmaxnreg``, which changes the registers of a warp and the free registers of its CTA.

A CTA keeps the registers that its warps had at the launch. A warp that requests more registers waits until other warps
have released enough. Source: PTX ISA 9.0, "Miscellaneous Instructions: setmaxnreg". ptxas determines the number of
registers at the launch. With ``__launch_bounds__(384, 1)`` each thread has 168 registers: 65536 / 384, rounded down to
a multiple of 8. With ``__launch_bounds__(384, 1)``, requests of 224, 224 and 80 registers are a deadlock, because 528
is more than 504 (NVIDIA developer forums, "About setmaxnreg"). On the simulator, other warps can use the registers of
warps that have ended. NVIDIA does not document the use of registers of ended warps, and the simulator reports no
finding for a kernel that relies on this use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...hang import BarrierWait
from .._ptx import Instruction
from .._warps.code import YIELD, Outcome
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.group import Group
from .._warps.lanes import WARP, WARPGROUP, Lanes, as_array
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Waiting
from .warp_sync import WHOLE, WarpSync

__all__ = ["RegisterPool", "at_launch"]

_OF_MULTIPROCESSOR = 65536
_LEAST, _MOST, _MULTIPLE = 24, 256, 8
_SECTION = 'PTX ISA, "setmaxnreg"'
_WARPS = WARPGROUP // WARP


def at_launch(attributes: Mapping[str, tuple[int | str, ...]]) -> int | None:
    """Return the registers of a thread at the launch; None without bounds, because ptxas then ignores the instruction.

    >>> at_launch({"maxntid": (384,), "minnctapersm": (1,)})
    168
    >>> at_launch({}) is None
    True
    """
    if "maxnreg" in attributes:
        return int(attributes["maxnreg"][0])
    asked = attributes.get("reqntid") or attributes.get("maxntid")
    if not asked:
        return None
    threads = int(np.prod([int(each) for each in asked]))
    ctas = max(1, int(attributes.get("minnctapersm", (1,))[0]))
    return min(_MOST, _OF_MULTIPROCESSOR // (threads * ctas) // _MULTIPLE * _MULTIPLE)


class RegisterPool:
    """The register pools of all resident CTAs."""

    def __init__(
        self,
        attributes: Mapping[str, tuple[int | str, ...]],
        geometry: Geometry,
        alive: np.ndarray,
        scheduler: Scheduler,
        warp_sync: WarpSync,
    ):
        self._alive_lanes, self._scheduler, self._warp_sync = alive, scheduler, warp_sync
        self._first = at_launch(attributes)
        self._has = np.full(geometry.lanes // WARP, self._first or 0)
        # The dictionary maps a warp to the setmaxnreg instructions that it has executed.
        self._executed: dict[int, list[Instruction]] = {}
        self._parked: list[tuple[Parked, int]] = []
        self._warps_of_cta = geometry.lanes_of_cta // WARP
        # The last warpgroup of a CTA may have fewer than four warps.
        self._warps_with_threads = -(-geometry.threads // WARP)

    def started(self, lanes: np.ndarray) -> None:
        """Initialize the registers of warps that begin."""
        warps = np.unique(lanes // WARP)
        self._has[warps] = self._first or 0
        for warp in warps.tolist() if self._executed else ():
            self._executed.pop(warp, None)

    def resize(self, group: Group[Any], lanes: Lanes, pc: int, registers: int, grows: bool, by: Instruction) -> Outcome:
        """Execute ``setmaxnreg`` for whole warps; a warp that requests more than the free registers waits."""
        sync = self._warp_sync
        ready = sync.gathered(group, sync.take(group, lanes, pc), pc, WHOLE)
        if ready is None:
            return YIELD
        here = as_array(ready)
        self._check(here, registers, grows)
        waits = self._late(here, registers) if grows and self._first is not None else np.zeros(len(here), bool)
        goes = here[~waits]
        for warp in np.unique(goes // WARP).tolist():
            self._has[warp] = registers
            self._executed.setdefault(warp, []).append(by)
        if not grows:
            self._look_again()
        if ready is lanes and not waits.any():
            return None
        if len(goes):
            self._scheduler.add(group.context, pc + 1, goes)
        if waits.any():
            self._parked.append((Parked(group.context, pc, pc, here[waits]), registers))
        return YIELD

    def _check(self, lanes: np.ndarray, registers: int, grows: bool) -> None:
        """Check a requested number of registers, and that ``.inc`` increases and ``.dec`` decreases the number.

        The direction is not checked for the first ``setmaxnreg`` of a warp, because ptxas chooses the preceding number.
        """
        if not _LEAST <= registers <= _MOST or registers % _MULTIPLE:
            text = f"setmaxnreg of {registers} registers; use a multiple of {_MULTIPLE} from {_LEAST} to {_MOST}"
            raise Fault("fault", f"{text} ({_SECTION})", lanes)
        for warp in np.unique(lanes // WARP).tolist() if self._executed else ():
            has = int(self._has[warp]) if warp in self._executed else registers
            if has > registers if grows else has < registers:
                raise Fault(
                    "fault",
                    f"setmaxnreg.{'inc' if grows else 'dec'} to {registers} registers is executed in a warp that has "
                    f"{has}: .dec releases registers, and .inc requests more ({_SECTION})",
                    lanes[lanes // WARP == warp],
                )

    def _late(self, lanes: np.ndarray, registers: int) -> np.ndarray:
        """Return the lanes of warps for which too few registers are free, in the order of the warps."""
        warps = lanes // WARP
        late, given = [], dict.fromkeys((warps // self._warps_of_cta).tolist(), 0)
        for warp in np.unique(warps).tolist():
            more, cta = registers - int(self._has[warp]), warp // self._warps_of_cta
            if more > self._free(cta) - given[cta]:
                late.append(warp)
            else:
                given[cta] += more
        return np.isin(warps, late)

    def _free(self, cta: int) -> int:
        """Return the free registers of a CTA, counted for one thread of each warp."""
        warps = slice(cta * self._warps_of_cta, (cta + 1) * self._warps_of_cta)
        alive = self._alive()[warps]
        return (self._first or 0) * self._warps_of_cta - int(self._has[warps][alive].sum())

    def _alive(self) -> np.ndarray:
        """Return, for each warp, whether at least one of its threads still runs."""
        return self._alive_lanes.reshape(-1, WARP).max(axis=1)

    def _look_again(self) -> None:
        parked, self._parked = self._parked, []
        for each, _ in parked:
            self._scheduler.add(each.context, each.pc, each.lanes)

    def exited(self, lanes: np.ndarray) -> None:
        """Release the registers of ended threads, and check that the warps of a warpgroup made the same requests."""
        self._look_again()
        if not self._executed:
            return
        alive = self._alive()
        ctas, numbers = np.divmod(np.unique(lanes // WARP), self._warps_of_cta)
        for cta, first in {*zip(ctas.tolist(), (numbers // _WARPS * _WARPS).tolist(), strict=True)}:
            last = min(first + _WARPS, self._warps_with_threads)
            warps = range(cta * self._warps_of_cta + first, cta * self._warps_of_cta + last)
            if not alive[warps.start : warps.stop].any():
                self._compare(warps)

    def _compare(self, warps: range) -> None:
        done = {warp: [(each.opcode, each.operands) for each in self._executed.get(warp, ())] for warp in warps}
        most = max(warps, key=lambda warp: len(done[warp]))
        same = sum(each == done[most] for each in done.values())
        if same == len(warps):
            return
        first = warps.start % self._warps_of_cta
        raise Fault(
            "barrier-divergence",
            f"setmaxnreg is executed by {same} of the {len(warps)} warps of a warpgroup (warps {first} to "
            f"{first + len(warps) - 1} of the CTA); all of them must execute the same instruction ({_SECTION}). "
            "Remedy: branch by whole warpgroups before it",
            np.arange(most * WARP, (most + 1) * WARP),
            self._executed[most][-1],
        )

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting threads for the report of a deadlock."""
        for parked, registers in self._parked:
            free = self._free(int(parked.lanes[0]) // WARP // self._warps_of_cta) // _WARPS
            missing = f"setmaxnreg.inc requests {registers} a thread, but the CTA has {free} left for a warpgroup's"
            total = (self._first or 0) * self._warps_of_cta // _WARPS
            cause = (
                f"the CTA was launched with {total} registers for one thread of each warpgroup, {self._first} each: "
                f"their requests together must not exceed that ({_SECTION})"
            )
            yield Waiting(parked, BarrierWait("registers", missing, cause, -1))
