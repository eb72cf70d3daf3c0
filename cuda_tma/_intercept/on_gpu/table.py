"""The table of the kernels that a program has launched on a GPU. Each process writes a file, which the command
reads."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .kernels import GpuKernel
from .messages import Counts, Gpu

__all__ = ["GpuTable", "KernelCounts", "read_tables", "write_table"]

_END = ".gpu"


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """The numbers of launches of a kernel.

    Attributes
    ----------
    name : str
    reason : str
        The reason why the launches are not checked, or an empty string if they are checked.
    counts : Counts
    """

    name: str
    reason: str
    counts: Counts


@dataclass(frozen=True, slots=True)
class GpuTable:
    """The launches of one process on a GPU.

    Attributes
    ----------
    gpu : str
    driver_version : int
    kernels : tuple of KernelCounts
    """

    gpu: str
    driver_version: int
    kernels: tuple[KernelCounts, ...]


def write_table(folder: Path, process: int, gpu: Gpu, kernels: Iterable[GpuKernel]) -> None:
    """Write the table of a process into the folder of its session."""
    rows = [{"name": each.name, "reason": each.reason, "counts": each.counts} for each in kernels]
    values = {"gpu": gpu.name, "driver_version": gpu.driver_version, "kernels": rows}
    (folder / f"{process}{_END}").write_text(json.dumps(values), "utf-8")


def read_tables(folder: Path) -> tuple[GpuTable, ...]:
    """Read the tables of all processes of a session."""
    tables = []
    for path in sorted(folder.glob(f"*{_END}")):
        values = json.loads(path.read_text("utf-8"))
        kernels = tuple(
            KernelCounts(each["name"], each["reason"], Counts(*each["counts"])) for each in values["kernels"]
        )
        tables.append(GpuTable(values["gpu"], values["driver_version"], kernels))
    return tuple(tables)
