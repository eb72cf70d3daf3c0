"""The warps of two CTAs of a pair, which execute an instruction of ``.cta_group::2`` together.

The ranks of the CTAs of a pair differ only in the last bit. The warp that executes the instruction first waits for the
warp of the peer CTA. Source: PTX ISA, "CTA Pair" and "Issue Granularity".
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...hang import BarrierWait
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.scheduler import Scheduler
from .._warps.waiting import Parked, Waiting

__all__ = ["Pairs", "pair_of"]


def pair_of(geometry: Geometry, cta: int, lanes: np.ndarray) -> tuple[int, int]:
    """Return the two CTAs of the pair that contains a resident CTA; the CTA with the even rank is first."""
    if geometry.cluster_ctas % 2:
        raise Fault(
            "cluster",
            f"an instruction of .cta_group::2 runs in a cluster of {geometry.cluster_ctas} CTAs, which has no pairs "
            '(PTX ISA, "CTA Pair"). Remedy: launch clusters with an even number of CTAs',
            lanes,
        )
    first = cta - cta % geometry.cluster_ctas % 2
    return first, first + 1


class Pairs:
    """The warps that wait for a warp of the peer CTA, by the pair and the name of the instruction."""

    def __init__(self, scheduler: Scheduler):
        self._scheduler = scheduler
        self._first: dict[tuple[int, str], Parked] = {}

    def meet(self, pair: int, name: str, parked: Parked, cta_of_lane: np.ndarray) -> Parked | None:
        """Return the warp of the peer CTA that already waits for this warp.

        Without a waiting warp, let this warp wait, and return None.
        """
        known = self._first.get((pair, name))
        if known is None or cta_of_lane[known.lanes[0]] == cta_of_lane[parked.lanes[0]]:
            self._first[pair, name] = parked
            return None
        return self._first.pop((pair, name))

    def forget(self, ctas: range) -> None:
        """Remove the waiting warps of CTAs that begin."""
        for key in [key for key in self._first if key[0] in ctas]:
            del self._first[key]

    def waiting(self) -> Iterator[Waiting]:
        """Yield the waiting warps for the report of a deadlock."""
        for (_, name), parked in self._first.items():
            missing = f"no warp of the other CTA of the pair executes tcgen05.{name}"
            yield Waiting(parked, BarrierWait("the other CTA of the pair", missing, "both CTAs execute it"))
