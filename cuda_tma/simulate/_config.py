"""The configuration of a launch on the simulator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from cuda.core import LaunchConfig

from ..rules import _configurations

__all__ = ["Config"]


@dataclass(frozen=True, slots=True, repr=False)
class Config:
    """The shape of a launch; every call also accepts a ``LaunchConfig`` of `cuda.core`.

    Parameters
    ----------
    grid : int or tuple of int
        The number of CTAs along x, y and z. If `cluster` is given, `grid` is the number of clusters, as in
        ``LaunchConfig``.
    block : int or tuple of int
        The number of threads of a CTA along x, y and z.
    cluster : int or tuple of int, optional
        The number of CTAs of a cluster (default: the cluster for which the kernel was compiled, or 1).
    shmem_size : int, optional
        The size in bytes of the dynamic shared memory of a CTA.
    is_cooperative : bool, optional
        Whether all CTAs run at the same time, as ``this_grid().sync()`` of cooperative groups requires.
    programmatic_stream_serialization : bool, optional
        Whether the kernel may begin before the end of the preceding kernel in :meth:`Device.launch_all`.

    Raises
    ------
    ValueError
        If no GPU accepts the configuration.

    Examples
    --------
    >>> Config(grid=4, block=(32, 4), cluster=2)
    Config(grid=(4, 1, 1), block=(32, 4, 1), cluster=(2, 1, 1))
    """

    grid: Any
    block: Any
    cluster: Any = None
    shmem_size: int = 0
    is_cooperative: bool = False
    programmatic_stream_serialization: bool = False

    def __post_init__(self) -> None:
        """Convert extents to tuples of three numbers, and refuse a launch that the driver would refuse."""
        for name in ("grid", "block", "cluster"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _configurations.extents(name, given))
        object.__setattr__(self, "shmem_size", _configurations.shared_bytes(self.shmem_size))
        for name in _configurations.FLAGS:
            object.__setattr__(self, name, _configurations.flag(name, getattr(self, name)))
        _configurations.check_extents(self.grid, self.block, self.cluster)

    @classmethod
    def of(cls, given: Any) -> Config:
        """Return a Config for a Config, a ``LaunchConfig``, or a mapping of field names to values."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            return cls(**_configurations.fields_of(given))
        if not isinstance(given, LaunchConfig):
            raise _configurations.no_configuration(given)
        found = {each.name: getattr(given, each.name, each.default) for each in fields(cls)}
        for name in ("grid", "block", *(["cluster"] if found["cluster"] else [])):
            found[name] = _configurations.three_extents(name, found[name])
        return cls(**found | {"shmem_size": found["shmem_size"] or 0})

    def __repr__(self) -> str:
        """Return a text with the grid, the block, and the fields whose values differ from their defaults."""
        parts = [f"grid={self.grid}", f"block={self.block}"]
        parts += [f"{each.name}={value}" for each in fields(self)[2:] if (value := getattr(self, each.name))]
        return f"Config({', '.join(parts)})"
