"""The waits of warps at barriers of CTAs and clusters."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._warps.events import (
    BarrierArrive,
    BarrierComplete,
    ClusterArrive,
    ClusterComplete,
    ClusterWait,
    OfBarrier,
    WarpBarrier,
    WholeBarrier,
    assert_never,
)
from .._warps.geometry import Geometry
from .._warps.lanes import WARP, Lanes, as_array

__all__ = ["ThreadBarriers"]


class ThreadBarriers:
    """The time of the last arrival at each barrier of a CTA or cluster.

    Parameters
    ----------
    geometry : Geometry
    clock : numpy.ndarray, [warp]
        The time of each warp.
    wait : callable
        A function that records a wait of lanes until a time, with a text about the awaited event.
    """

    def __init__(self, geometry: Geometry, clock: np.ndarray, wait: Callable[[Lanes, int, str], None]):
        self._clock, self._wait, self._cta_of_lane = clock, wait, geometry.cta_of_lane
        self._size = geometry.lanes_of_cta * geometry.cluster_ctas
        # The dictionary maps a barrier of a CTA or a cluster to the time of the last arrival.
        self._arrivals: dict[object, int] = {}
        # The dictionary maps the slot of a cluster to the time at which all its threads had arrived.
        self._met: dict[int, int] = {}

    def event(self, event: OfBarrier) -> None:
        """Record an event at a barrier."""
        match event:
            case WholeBarrier():
                self._whole(event)
            case BarrierArrive():
                self._bar_arrive(event)
            case BarrierComplete():
                self._bar_complete(event)
            case ClusterArrive():
                self._cluster_arrive(event)
            case ClusterComplete():
                self._met[event.slot] = self._arrivals.pop(("cluster", event.slot), 0)
            case ClusterWait():
                self._cluster_wait(event)
            case WarpBarrier():
                pass
            case _:
                assert_never(event)

    def _whole(self, event: WholeBarrier) -> None:
        lanes = as_array(event.lanes)
        ctas = self._cta_of_lane[lanes]
        for cta in np.unique(ctas):
            here = lanes[ctas == cta]
            self._wait(here, self._latest(here), "all threads of the CTA")

    def _bar_arrive(self, event: BarrierArrive) -> None:
        key = event.barrier
        self._arrivals[key] = max(self._arrivals.get(key, 0), self._latest(event.lanes))

    def _bar_complete(self, event: BarrierComplete) -> None:
        key = event.barrier
        if as_array(event.lanes).size:
            self._wait(event.lanes, self._arrivals.get(key, 0), f"barrier {key[1]} of the CTA")
        self._arrivals.pop(key, None)

    def _cluster_arrive(self, event: ClusterArrive) -> None:
        lanes = as_array(event.lanes)
        for slot in np.unique(lanes // self._size).tolist():
            key = ("cluster", slot)
            here = lanes[lanes // self._size == slot]
            self._arrivals[key] = max(self._arrivals.get(key, 0), self._latest(here))

    def _cluster_wait(self, event: ClusterWait) -> None:
        lanes = as_array(event.lanes)
        for slot in np.unique(lanes // self._size).tolist():
            here = lanes[lanes // self._size == slot]
            self._wait(here, self._met.get(slot, 0), "the cluster's barrier")

    def _latest(self, lanes: Lanes) -> int:
        return int(self._clock[np.unique(as_array(lanes) // WARP)].max())
