"""How a kernel is launched on the simulator."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from math import prod
from typing import Any

from .._given import shown

__all__ = ["Config"]

Extents = tuple[int, int, int]

_MOST_CTAS = ((1 << 31) - 1, 65535, 65535)
_MOST_EXTENTS = (1024, 1024, 64)  # of a CTA
_MOST_THREADS = 1024
_MOST_CTAS_OF_CLUSTER = 16  # 8 are portable
_MOST_SHARED_BYTES = 227 << 10  # of a CTA, compute capability 9.0


@dataclass(frozen=True, slots=True, repr=False)
class Config:
    """The shape of a launch; `cuda.core`'s ``LaunchConfig`` is taken in its place.

    Parameters
    ----------
    grid : int or tuple of int
        CTAs, x first; clusters, if `cluster` is given: as in ``LaunchConfig``.
    block : int or tuple of int
        Threads of a CTA, x first.
    cluster : int or tuple of int, optional
        CTAs of a cluster; None for what the kernel was compiled for, or 1.
    shmem_size : int, optional
        Dynamic shared memory of a CTA, in bytes.
    is_cooperative : bool, optional
        Whether all CTAs run at the same time, so that cooperative groups' ``this_grid().sync()`` works.
    programmatic_stream_serialization : bool, optional
        Whether the kernel may begin before the one before it in :meth:`Device.launch_all` has ended.

    Raises
    ------
    ValueError
        If no GPU of compute capability 9.0 takes it.

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
        """Tuples of three, and no launch that the driver would refuse."""
        for name in ("grid", "block", "cluster"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, _extents(name, given))
        object.__setattr__(self, "shmem_size", operator.index(self.shmem_size))
        if prod(self.block) > _MOST_THREADS:
            raise ValueError(f"block={self.block} has {prod(self.block)} threads; a CTA has at most {_MOST_THREADS}")
        _check_most("block", self.block, _MOST_EXTENTS)
        _check_most("grid", self.grid, _MOST_CTAS)
        if not 0 <= self.shmem_size <= _MOST_SHARED_BYTES:
            raise ValueError(f"shmem_size={self.shmem_size}; a CTA has 0 to {_MOST_SHARED_BYTES} bytes")
        if self.cluster and prod(self.cluster) > _MOST_CTAS_OF_CLUSTER:
            count = prod(self.cluster)
            raise ValueError(f"cluster={self.cluster} has {count} CTAs; a cluster has at most {_MOST_CTAS_OF_CLUSTER}")

    @classmethod
    def of(cls, given: Any) -> Config:
        """A Config from itself, from a ``LaunchConfig`` or whatever has its attributes, or from a mapping."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            return cls(**given)
        flags = [getattr(given, name, False) for name in ("is_cooperative", "programmatic_stream_serialization")]
        return cls(given.grid, given.block, getattr(given, "cluster", None), given.shmem_size or 0, *flags)

    def __repr__(self) -> str:
        """What is given; of the rest, what is not as always."""
        parts = [f"grid={self.grid}", f"block={self.block}"]
        parts += [f"{each.name}={value}" for each in fields(self)[2:] if (value := getattr(self, each.name))]
        return f"Config({', '.join(parts)})"

    def shape(self, compiled_cluster: Extents | None) -> tuple[Extents, Extents]:
        """The grid in CTAs, and the cluster; `compiled_cluster` is what the kernel asks for (``__cluster_dims__``)."""
        cluster = self.cluster or compiled_cluster or (1, 1, 1)
        if compiled_cluster and cluster != compiled_cluster:
            raise ValueError(f"cluster={cluster}, and the kernel was compiled for clusters of {compiled_cluster}")
        if self.cluster:
            x, y, z = (g * c for g, c in zip(self.grid, cluster, strict=True))
            _check_most("grid times cluster", (x, y, z), _MOST_CTAS)
            return (x, y, z), cluster
        if any(g % c for g, c in zip(self.grid, cluster, strict=True)):
            raise ValueError(f"grid={self.grid} is no multiple of the kernel's clusters of {cluster}: make each whole")
        return self.grid, cluster


def _extents(name: str, given: Any) -> Extents:
    try:
        values = tuple(map(operator.index, given)) if isinstance(given, (tuple, list)) else (operator.index(given),)
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3 or any(value < 1 for value in values):
        raise ValueError(f"{name}={shown(given)}; give one to three integers, each at least 1, x first")
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _check_most(name: str, extents: Extents, most: Extents) -> None:
    if any(extent > limit for extent, limit in zip(extents, most, strict=True)):
        raise ValueError(f"{name}={extents}; it has at most {most}")
