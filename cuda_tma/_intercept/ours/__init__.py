"""Launches of cuda_tma itself without a GPU: kernels, launches and tensor maps on the session's device.

The GPU's memory consists of arrays of this machine: NumPy arrays, and torch's tensors of ``device="cuda"``.
"""

from __future__ import annotations

from typing import Any

import cuda_tma

from ... import simulate
from ..errors import NotSimulated
from ..journal import Journal
from ..patches import Patches
from .device import devices
from .launches import Launches
from .simulated import reporting_device

__all__ = ["install"]

_GRAPH = "a graph launches kernels later, and the simulator runs each launch at once"


def install(session: Any) -> Patches:
    """Replace public names of cuda_tma by those of the simulated GPU of a session.

    Parameters
    ----------
    session : Session
        The session that runs the launches. Kernels are compiled for its device.

    Returns
    -------
    Patches
        The patches, which can be undone.
    """
    patches, launches = Patches(), Launches(session)
    for name, value in {
        "compile": launches.compile,
        "launch": launches.launch,
        "prepare": launches.prepare,
        "LaunchConfig": launches.config,
        "create_tensor_map": launches.create_tensor_map,
        "create_tensor_maps": launches.create_tensor_maps,
        "synchronize": lambda *_, **__: None,
        "arm_watchdog": lambda *_, **__: None,
        "Device": devices(session, launches.create_tensor_map),
    }.items():
        patches.replace(cuda_tma, name, value)
    patches.replace(cuda_tma.StridedMemoryView, "as_tensor_map", _as_tensor_map(launches))
    for name in cuda_tma.graph.__all__:
        patches.replace(cuda_tma.graph, name, _refused(f"cuda_tma.graph.{name}"))
    if isinstance(session.sink, Journal):  # a test of pytest checks the reports of its devices itself
        patches.replace(simulate, "Device", reporting_device(session))
    return patches


def _as_tensor_map(launches: Launches) -> Any:
    def as_tensor_map(view: Any, options: Any = None, **keywords: Any) -> Any:
        return launches.create_tensor_map(view.exporting_obj, options, **keywords)

    return as_tensor_map


def _refused(feature: str) -> Any:
    def refuse(*_: Any, **__: Any) -> None:
        raise NotSimulated(feature, _GRAPH, "call cuda_tma.launch with a stream")

    return refuse
