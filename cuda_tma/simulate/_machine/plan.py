"""The plan of a launch, which contains its extents and addresses before the machine exists."""

from __future__ import annotations

from dataclasses import dataclass

from .._memory.global_memory import Segment
from .._warps.geometry import Geometry

__all__ = ["LaunchPlan"]


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """The extents of one launch, and the memory that it uses.

    Attributes
    ----------
    geometry : Geometry
    parameters : Segment
        The parameters of the kernel.
    dynamic_shared_bytes : int
    has_explicit_cluster : bool
        Whether the launch or the kernel specifies a cluster; the cluster may consist of one CTA.
    grid_workspace : int
        The address of the workspace of a cooperative launch; 0 for another launch.
    is_held : bool
        Whether the launch begins before the end of the preceding launches.
    """

    geometry: Geometry
    parameters: Segment
    dynamic_shared_bytes: int
    has_explicit_cluster: bool = False
    grid_workspace: int = 0
    is_held: bool = False
