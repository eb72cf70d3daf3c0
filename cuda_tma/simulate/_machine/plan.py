"""The plan of a launch: all that is decided before its machine is made."""

from __future__ import annotations

from dataclasses import dataclass

from .._memory.global_memory import Segment
from .._warps.geometry import Geometry

__all__ = ["LaunchPlan"]


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The extents and the memory of one launch.

    Attributes
    ----------
    geometry : Geometry
    parameters : Segment
        The kernel's parameters.
    dynamic_shared_bytes : int
    has_explicit_cluster : bool
        Whether the launch or the kernel gives a cluster, which may be one CTA.
    grid_workspace : int
        The address of the workspace of a cooperative launch, else 0.
    is_held : bool
        Whether the launch begins before the launches before it have ended.
    """

    geometry: Geometry
    parameters: Segment
    dynamic_shared_bytes: int
    has_explicit_cluster: bool = False
    grid_workspace: int = 0
    is_held: bool = False
