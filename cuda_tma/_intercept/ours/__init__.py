"""The launches of cuda_tma itself without a GPU.

Kernels, launches and tensor maps are on the session's device.

The memory of the simulated GPU consists of arrays of this machine, which are NumPy arrays and torch's tensors of
``device="cuda"``.
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
    """Replace public names of cuda_tma by the names of a session's simulated GPU.

    Parameters
    ----------
    session : Session
        The session that runs the launches. Kernels are compiled for the session's device.

    Returns
    -------
    Patches
        The patches, by which the caller can undo the replacement.
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
    # In a pytest run, the fixture of the package checks the reports of its own devices.
    if isinstance(session.sink, Journal):
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
