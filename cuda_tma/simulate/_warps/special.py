"""Special registers. PTX ISA 9.0, "Special Registers"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .group import Group
from .lanes import Lanes
from .spaces import RESERVED_SHARED

__all__ = ["special"]

Look = Callable[[Group, Lanes], Any]

# Of the whole launch.
_UNIFORM: dict[str, Callable[[Group], int]] = {
    "nwarpid": lambda group: 64,
    "nsmid": lambda group: group.machine.multiprocessor_count,
    "gridid": lambda group: 0,
    "reserved_smem_offset_1": lambda group: RESERVED_SHARED,
    "current_graph_exec": lambda group: 0,  # of a graph that the device launched
    "is_explicit_cluster": lambda group: int(group.machine.explicit_cluster),
    "cluster_nctarank": lambda group: group.machine.geometry.cluster_ctas,
    "dynamic_smem_size": lambda group: group.machine.dynamic_shared_bytes,
    "total_smem_size": lambda group: group.machine.shared_bytes,
    "aggr_smem_size": lambda group: group.machine.shared_bytes,
    "clock": lambda group: group.machine.clock() & 0xFFFFFFFF,
    "clock_hi": lambda group: group.machine.clock() >> 32,
    "clock64": lambda group: group.machine.clock(),
    "globaltimer": lambda group: group.machine.nanoseconds(),
    "globaltimer_lo": lambda group: group.machine.nanoseconds() & 0xFFFFFFFF,
    "globaltimer_hi": lambda group: group.machine.nanoseconds() >> 32,
}
# Where cooperative groups find the grid's workspace (cooperative_groups/details/driver_abi.h): how far it is shifted.
_ENVIRONMENT = {"envreg1": 32, "envreg2": 0}
_EXTENTS: dict[str, Callable[[Group], tuple[int, int, int]]] = {
    "ntid": lambda group: group.machine.geometry.block,
    "nctaid": lambda group: group.machine.geometry.grid,
    "cluster_nctaid": lambda group: group.machine.geometry.cluster,
    "nclusterid": lambda group: group.machine.geometry.grid_in_clusters,
}
# Of each lane: Geometry.columns.
_OF_LANES = {
    *(f"{name}.{axis}" for name in ("tid", "ctaid", "clusterid", "cluster_ctaid") for axis in "xyz"),
    *(f"lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")),
    "laneid",
    "warpid",
    "smid",
    "cluster_ctarank",
}


def special(name: str) -> Look | None:
    """What a special register holds, as integers of each lane or one for all; None for one that is not known."""
    if name in _OF_LANES:
        return lambda group, lanes: group.machine.geometry.columns[name][lanes]
    if name in _UNIFORM:
        look = _UNIFORM[name]
        return lambda group, lanes: _Number(look(group))
    if name in _ENVIRONMENT:
        shift = _ENVIRONMENT[name]
        return lambda group, lanes: _Number(group.machine.grid_workspace >> shift & 0xFFFFFFFF)
    stem, _, axis = name.partition(".")
    if stem in _EXTENTS and axis in ("x", "y", "z"):
        extents, index = _EXTENTS[stem], "xyz".index(axis)
        return lambda group, lanes: _Number(extents(group)[index])
    return None


class _Number(int):
    """An int that is cast as arrays are."""

    def astype(self, dtype: Any) -> Any:
        return dtype.type(self)
