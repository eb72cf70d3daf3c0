"""The instruction ``clusterlaunchcontrol.try_cancel``, by which a cluster takes over the work of a pending cluster.

Source: PTX ISA 9.0, "Parallel Synchronization and Communication Instructions: clusterlaunchcontrol". PTX does not
define the encoding of the response. In the simulator, the response contains x, y and z of the first CTA, and 1 if a
cluster was canceled.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from .._copies.copy import Issue, each_lane, landing, landings, submit
from .._warps.binder import Binder
from .._warps.code import Step
from .._warps.lanes import Lanes
from ._table import Group, instruction

SECTION = "Parallel Synchronization and Communication Instructions: {}"
_RESPONSE_BYTES = 16


@instruction("clusterlaunchcontrol.try_cancel", section=SECTION.format("clusterlaunchcontrol.try_cancel"))
def try_cancel(binder: Binder) -> Step:
    """Return the step that executes ``[response], [mbarrier]``.

    The operands are addresses in the issuing CTA, or with multicast in each CTA of the cluster.
    """
    response, barrier = binder.instruction.operands
    to, at = binder.address(response), binder.address(barrier)
    to_all = "multicast::cluster::all" in binder.instruction.opcode

    def step(group: Group, lanes: Lanes) -> None:
        ends = zip(to(group, lanes).tolist(), at(group, lanes).tolist(), strict=True)
        for (_, issue), (address, signal) in zip(each_lane(group, lanes, binder.instruction), ends, strict=True):
            with issue.faults():
                submit(issue, partial(_answer, issue, _places(issue, address, signal, to_all)))

    return step


def _places(issue: Issue, address: int, signal: int, to_all: bool) -> list[tuple[int, int]]:
    if not to_all:
        return [landing(issue, "shared", address, signal, _RESPONSE_BYTES, _RESPONSE_BYTES)]
    mask = (1 << issue.parts.geometry.cluster_ctas) - 1
    return landings(issue, "shared::cluster", address, signal, mask, _RESPONSE_BYTES, _RESPONSE_BYTES)


def _answer(issue: Issue, places: list[tuple[int, int]]) -> None:
    """Cancel a pending cluster, and write the response to each CTA."""
    canceled = issue.parts.clusters.cancel()
    words = np.array([*(canceled or (0, 0, 0)), canceled is not None], "<u4").view(np.uint8)
    for place, signal in places:
        issue.observe("write", "shared", np.array([place]), _RESPONSE_BYTES, signal)
        issue.parts.memory.shared.bytes[place : place + _RESPONSE_BYTES] = words
        issue.parts.mbarriers.complete_tx(signal, _RESPONSE_BYTES, f"the request at {issue.name}", issue.instruction)
