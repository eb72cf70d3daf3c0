"""The values of special registers (PTX ISA 9.0, "Special Registers")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from .clock import Clock
from .geometry import Geometry
from .group import Group
from .lanes import Lanes
from .spaces import RESERVED_SHARED

__all__ = ["SpecialValues", "special"]


@dataclass(frozen=True, slots=True)
class SpecialValues:
    """The values of special registers that are equal for all threads of a launch."""

    multiprocessor_count: int
    has_explicit_cluster: bool
    dynamic_shared_bytes: int
    shared_bytes: int
    grid_workspace: int


class _Launch(Protocol):
    """The interface of a machine for special registers."""

    @property
    def geometry(self) -> Geometry: ...

    @property
    def special(self) -> SpecialValues: ...

    @property
    def clock(self) -> Clock: ...


_Group = Group[_Launch]
Look = Callable[[_Group, Lanes], Any]

# The table contains the special registers that have one value for the whole launch.
_UNIFORM: dict[str, Callable[[_Group], int]] = {
    "nwarpid": lambda group: 64,
    "nsmid": lambda group: group.parts.special.multiprocessor_count,
    "gridid": lambda group: 0,
    "reserved_smem_offset_1": lambda group: RESERVED_SHARED,
    # The register %current_graph_exec is 0 in kernels that the host launches.
    "current_graph_exec": lambda group: 0,
    "is_explicit_cluster": lambda group: int(group.parts.special.has_explicit_cluster),
    "cluster_nctarank": lambda group: group.parts.geometry.cluster_ctas,
    "dynamic_smem_size": lambda group: group.parts.special.dynamic_shared_bytes,
    "total_smem_size": lambda group: group.parts.special.shared_bytes,
    "aggr_smem_size": lambda group: group.parts.special.shared_bytes,
    "clock": lambda group: group.parts.clock.cycles() & 0xFFFFFFFF,
    "clock_hi": lambda group: group.parts.clock.cycles() >> 32,
    "clock64": lambda group: group.parts.clock.cycles(),
    "globaltimer": lambda group: group.parts.clock.nanoseconds(),
    "globaltimer_lo": lambda group: group.parts.clock.nanoseconds() & 0xFFFFFFFF,
    "globaltimer_hi": lambda group: group.parts.clock.nanoseconds() >> 32,
}
# The registers %envreg1 and %envreg2 contain two parts of the address of the workspace for cooperative groups
# (cooperative_groups/details/driver_abi.h).
_ENVIRONMENT = {"envreg1": 32, "envreg2": 0}
_EXTENTS: dict[str, Callable[[_Group], tuple[int, int, int]]] = {
    "ntid": lambda group: group.parts.geometry.block,
    "nctaid": lambda group: group.parts.geometry.grid,
    "cluster_nctaid": lambda group: group.parts.geometry.cluster,
    "nclusterid": lambda group: group.parts.geometry.grid_in_clusters,
}
# The table contains the special registers that have a value for each lane, in the attribute Geometry.columns.
_OF_LANES = {
    *(f"{name}.{axis}" for name in ("tid", "ctaid", "clusterid", "cluster_ctaid") for axis in "xyz"),
    *(f"lanemask_{relation}" for relation in ("eq", "lt", "le", "gt", "ge")),
    "laneid",
    "warpid",
    "smid",
    "cluster_ctarank",
}


def special(name: str) -> Look | None:
    """Return a function that reads a special register; None for an unknown register.

    The function returns an integer for each lane, or one integer for all lanes.
    """
    if name in _OF_LANES:
        return lambda group, lanes: group.parts.geometry.columns[name][lanes]
    if name in _UNIFORM:
        look = _UNIFORM[name]
        return lambda group, lanes: _Number(look(group))
    if name in _ENVIRONMENT:
        shift = _ENVIRONMENT[name]
        return lambda group, lanes: _Number(group.parts.special.grid_workspace >> shift & 0xFFFFFFFF)
    stem, _, axis = name.partition(".")
    if stem in _EXTENTS and axis in ("x", "y", "z"):
        extents, index = _EXTENTS[stem], "xyz".index(axis)
        return lambda group, lanes: _Number(extents(group)[index])
    return None


class _Number(int):
    """An integer with the method ``astype`` of arrays."""

    def astype(self, dtype: Any) -> Any:
        return dtype.type(self)
