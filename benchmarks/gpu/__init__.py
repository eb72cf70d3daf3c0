"""Benchmarks on a GPU, in which tensor maps are created, changed and launched, in comparison with C and every installed
library.

The file ``floor.c`` is the C baseline, and ``scene`` contains the objects that all rows share. The modules ``create``,
``launch``, ``launch_tensors``, ``many``, ``graph`` and ``threads`` contain the rows, and ``chart`` draws the picture.
"""

from __future__ import annotations

import subprocess
from importlib import metadata

from cuda_tma._command import info

from .. import host
from ..comparison import Comparison
from .chart import draw

__all__ = ["draw", "machine", "tables", "unavailable"]

_PEERS = (
    "cuda-tma",
    "cuda-core",
    "cuda-bindings",
    "torch",
    "cupy-cuda13x",
    "cupy-cuda12x",
    "triton",
    "nvidia-cutlass-dsl",
    "numpy",
)


def unavailable() -> str:
    found = info.facts()
    if "missing" in found["driver"]:
        return f"there is no NVIDIA driver ({found['driver']['missing'].splitlines()[0]})"
    if not found["devices"]:
        return "the driver shows no GPU"
    first = found["devices"][0]
    if not first["has_tma"]:
        return f"device 0, {first['name']}, has no TMA: it needs compute capability 9.0 or later"
    return ""


def machine() -> str:
    """Return the names of the GPU, its driver and the host, with the versions of all measured packages."""
    found = info.facts()
    names = ", ".join(device["name"] for device in found["devices"][:1]) or "no GPU"
    versions = [f"{name} {version}" for name in _PEERS if (version := _version(name))]
    return f"{names}; driver {_driver_version()}; {host.machine()}; {', '.join(versions)}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _driver_version() -> str:
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.split()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"


def tables(repeats: int, runs: int) -> list[Comparison]:
    from . import create, graph, launch, launch_tensors, many, threads
    from .scene import Scene

    scene = Scene()
    return [
        table
        for part in (create, launch, launch_tensors, many, graph, threads)
        for table in part.tables(scene, repeats)
    ]
