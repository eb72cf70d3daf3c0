"""Checks of a launch's configuration, in general and for one kernel.

The checks are the same for a GPU and for the simulator.

The sources are the CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", and the PTX ISA,
"Performance-Tuning Directives" and "Cluster Dimension Directives". The checks are not on the hot path.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from .._given import shown

__all__ = [
    "NO_DIRECTIVES",
    "Directives",
    "Extents",
    "check_extents",
    "directives_in",
    "directives_of",
    "extents",
    "fields_of",
    "flag",
    "no_configuration",
    "shape",
    "shared_bytes",
    "three_extents",
]

Extents = tuple[int, int, int]
FLAGS = ("is_cooperative", "programmatic_stream_serialization")
FIELDS = ("grid", "block", "cluster", "shmem_size", *FLAGS)

_MOST_CTAS = ((1 << 31) - 1, 65535, 65535)
_MOST_EXTENTS = (1024, 1024, 64)  # A CTA has at most 1024 threads along x, 1024 along y, and 64 along z.
_MOST_THREADS = 1024
_MOST_CTAS_OF_CLUSTER = 16  # A cluster has at most 16 CTAs, of which 8 are portable.
_MOST_BYTES = (1 << 31) - 1
_DIRECTIVE = re.compile(
    r"\.(maxntid|reqntid|reqnctapercluster|maxclusterrank|explicitcluster|blocksareclusters)\b([ \d,]*)"
)


@dataclass(frozen=True, slots=True)
class Directives:
    """The directives in the PTX of a kernel that restrict its launches.

    Attributes
    ----------
    reqntid, reqnctapercluster : tuple of int, optional
        The extents of each CTA and of each cluster, with x first.
    most_threads, most_ctas_of_cluster : int
        The product of the extents of ``.maxntid``, and the number of ``.maxclusterrank``.
    is_cluster_explicit : bool
        Whether the kernel has ``.explicitcluster``, so that the kernel or the launch gives the extents of a cluster.
    counts_clusters : bool
        Whether the kernel has ``.blocksareclusters``, so that a launch gives the grid in clusters (not verified on
        hardware).
    """

    reqntid: Extents | None = None
    reqnctapercluster: Extents | None = None
    most_threads: int = _MOST_THREADS
    most_ctas_of_cluster: int = _MOST_CTAS_OF_CLUSTER
    is_cluster_explicit: bool = False
    counts_clusters: bool = False


NO_DIRECTIVES = Directives()


def directives_of(attributes: Mapping[str, Sequence[Any]]) -> Directives:
    """Return the directives of a kernel from a mapping of names (without the dot) to numbers."""

    def numbers(name: str) -> Extents | None:
        given = attributes.get(name)
        return _padded(tuple(map(int, given))) if given else None

    threads, rank = numbers("maxntid"), numbers("maxclusterrank")
    return Directives(
        numbers("reqntid"),
        numbers("reqnctapercluster"),
        prod(threads) if threads else _MOST_THREADS,
        rank[0] if rank else _MOST_CTAS_OF_CLUSTER,
        "explicitcluster" in attributes,
        "blocksareclusters" in attributes,
    )


def directives_in(ptx: str, entry: str) -> Directives:
    """Return the directives of a kernel from the PTX of a compiler."""
    head = re.search(rf"\.entry {re.escape(entry)}\(.*?\)([^{{]*)", ptx, re.DOTALL)
    found = _DIRECTIVE.findall(head[1]) if head else []
    return directives_of({name: [*filter(None, re.split("[ ,]+", text))] for name, text in found})


def no_configuration(given: object) -> TypeError:
    """Return the error for an object that is neither a configuration nor a mapping."""
    return TypeError(
        f"config is a {type(given).__name__}; launch takes a cuda.core.LaunchConfig or a mapping of its fields "
        "(on the simulator also a cuda_tma.simulate.Config)"
    )


def fields_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a configuration that a mapping contains, each with three extents.

    Raises
    ------
    TypeError
        If the mapping has an unknown key, or lacks the grid or the block.
    ValueError
        If a field has a value that no launch can use.
    """
    for name in given:
        if name not in FIELDS:
            raise TypeError(f"the configuration has no field {shown(name)}; its fields are {', '.join(FIELDS)}")
    for name in ("grid", "block"):
        if name not in given:
            raise TypeError(f"the configuration has no {name}; pass both a grid and a block")
    found = dict(given)
    for name in ("grid", "block", "cluster"):
        if found.get(name) is not None:
            found[name] = extents(name, found[name])
    found["shmem_size"] = shared_bytes(found.get("shmem_size") or 0)
    return found | {name: flag(name, found[name]) for name in FLAGS if name in found}


def flag(name: str, given: Any) -> bool:
    """Return a flag. Refuse a value that is not a bool, such as a text."""
    if not isinstance(given, (int, np.bool_)) or given not in (0, 1):
        raise TypeError(f"{name} is {shown(given)}; pass True or False")
    return bool(given)


def extents(name: str, given: Any) -> Extents:
    """Return three extents for one to three extents.

    Raises
    ------
    ValueError
        If the extents are not integers of at least 1.
    """
    try:
        values = tuple(map(operator.index, given)) if isinstance(given, (tuple, list)) else (operator.index(given),)
    except TypeError:
        values = ()
    if not 1 <= len(values) <= 3 or any(value < 1 for value in values):
        raise ValueError(f"{name}={shown(given)}; pass one to three integers, each at least 1, x first")
    return _padded(values)


def three_extents(name: str, given: Any) -> Extents:
    """Return the three extents in a field of a LaunchConfig.

    cuda.core checks the arguments of the constructor, but not a later assignment. The rule is from the CUDA driver API,
    cuLaunchKernelEx, gridDim and blockDim.

    Raises
    ------
    ValueError
        If the extents are not three integers, or a launch does not accept them.
    """
    try:
        found = tuple(map(operator.index, given))
    except TypeError:
        found = ()
    if len(found) != 3 or min(found) < 1 or max(found) >= 1 << 31:
        raise ValueError(f"the configuration's {name} is {given}; pass three integers from 1 to {2**31 - 1}")
    return _padded(found)


def shared_bytes(given: Any) -> int:
    """Return the bytes of dynamic shared memory.

    Raises
    ------
    TypeError, ValueError
        If the value is not an integer, or is not a size.
    """
    try:
        size = operator.index(given)
    except TypeError:
        raise TypeError(f"shmem_size is {shown(given)}; pass an integer: bytes of dynamic shared memory") from None
    if not 0 <= size <= _MOST_BYTES:
        raise ValueError(f"shmem_size={shown(size)}; pass bytes of dynamic shared memory, 0 or more")
    return size


def check_extents(grid: Extents, block: Extents, cluster: Extents | None) -> None:
    """Refuse extents that every GPU refuses for every kernel."""
    if prod(block) > _MOST_THREADS:
        raise ValueError(f"block={block} has {prod(block)} threads; pass a block of at most {_MOST_THREADS} threads")
    _check_most("block", block, _MOST_EXTENTS)
    _check_most("grid", grid, _MOST_CTAS)
    if cluster and prod(cluster) > _MOST_CTAS_OF_CLUSTER:
        raise ValueError(
            f"cluster={cluster} has {prod(cluster)} CTAs; pass a cluster of at most {_MOST_CTAS_OF_CLUSTER} CTAs"
        )


def shape(
    kernel: str, directives: Directives, grid: Extents, block: Extents, cluster: Extents | None
) -> tuple[Extents, Extents]:
    """Return the grid in CTAs, and the cluster of a launch.

    Parameters
    ----------
    kernel : str
        The name of the kernel in errors.
    directives : Directives
    grid : tuple of int
        The number of CTAs in each dimension. With `cluster`, the number of clusters.
    block, cluster : tuple of int

    Raises
    ------
    ValueError
        If the driver refuses these extents for this kernel.
    """
    check_extents(grid, block, cluster)
    _check_block(kernel, directives, block)
    _check_cluster(kernel, directives, cluster)
    of_launch = cluster or directives.reqnctapercluster or (1, 1, 1)
    if cluster or directives.counts_clusters:
        x, y, z = (g * c for g, c in zip(grid, of_launch, strict=True))
        _check_most("grid times cluster", (x, y, z), _MOST_CTAS)
        return (x, y, z), of_launch
    if any(g % c for g, c in zip(grid, of_launch, strict=True)):
        raise ValueError(
            f"grid={grid} is not a multiple of {of_launch}, the cluster for which kernel {kernel} was compiled "
            "(__cluster_dims__, .reqnctapercluster): pass a multiple of the cluster as the grid"
        )
    return grid, of_launch


def _check_block(kernel: str, directives: Directives, block: Extents) -> None:
    if directives.reqntid and block != directives.reqntid:
        raise ValueError(
            f"block={block} was passed, but kernel {kernel} was compiled only for blocks of {directives.reqntid} "
            f"(__block_size__, .reqntid): launch it with block={directives.reqntid}"
        )
    if prod(block) > directives.most_threads:
        raise ValueError(
            f"block={block} has {prod(block)} threads, but kernel {kernel} was compiled for at most "
            f"{directives.most_threads} (__launch_bounds__, .maxntid)"
        )


def _check_cluster(kernel: str, directives: Directives, cluster: Extents | None) -> None:
    compiled = directives.reqnctapercluster
    if cluster is None:
        if directives.is_cluster_explicit and compiled is None:
            raise ValueError(
                f"the configuration has no cluster, but kernel {kernel} was compiled for launches that specify one "
                "(__cluster_dims__() without extents, .explicitcluster): pass cluster"
            )
        return
    if compiled and cluster != compiled:
        raise ValueError(
            f"cluster={cluster} was passed, but kernel {kernel} was compiled for clusters of {compiled} "
            "(__cluster_dims__, .reqnctapercluster): leave cluster out, or pass the compiled cluster"
        )
    if directives.counts_clusters and prod(cluster) > 1:
        raise ValueError(
            f"cluster={cluster} was passed, but the grid of kernel {kernel} already counts clusters of {compiled} "
            "(__block_size__ with two tuples, .blocksareclusters): leave cluster out"
        )
    if prod(cluster) > directives.most_ctas_of_cluster:
        raise ValueError(
            f"cluster={cluster} has {prod(cluster)} CTAs, but kernel {kernel} was compiled for at most "
            f"{directives.most_ctas_of_cluster} (__launch_bounds__, .maxclusterrank)"
        )


def _padded(values: Sequence[int]) -> Extents:
    x, y, z = (*values, 1, 1)[:3]
    return x, y, z


def _check_most(name: str, given: Extents, most: Extents) -> None:
    if any(extent > limit for extent, limit in zip(given, most, strict=True)):
        raise ValueError(f"{name}={given} is too large; pass at most {most}")
