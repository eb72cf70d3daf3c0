"""The replay of a recorded launch on its own simulated GPU."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..._compile.parameter_types import described_types
from ...simulate._device.device import Device
from ...simulate._kernel import Kernel, kernel_of
from ...simulate._machine.decode import decode
from ...simulate._memory.global_memory import Segment
from ...simulate._ptx import read
from ...simulate._report import Report
from .hardware import NOT_COMPARED, Comparison, compared
from .recorded import Hardware, RecordedLaunch

__all__ = ["compared_replay", "replayed"]


def replayed(
    launch: RecordedLaunch, *, seed: int = 0, trace: bool = False, order: str = "early", **settings: Any
) -> Report:
    """Run a recorded launch, and return the report of the run. The recording does not change.

    Parameters
    ----------
    launch : RecordedLaunch
    order, seed, trace
        The arguments of :meth:`Device.launch`.
    **settings
        The arguments `schedules`, `strict` and `suppressions` of :class:`Device`.

    Returns
    -------
    Report

    Raises
    ------
    ParseError, UnsupportedInstruction
        If the simulator cannot run the PTX.
    ValueError
        If the recording contradicts itself.
    """
    return compared_replay(launch, seed=seed, trace=trace, order=order, **settings)[0]


def compared_replay(
    launch: RecordedLaunch, *, seed: int = 0, trace: bool = False, order: str = "early", **settings: Any
) -> tuple[Report, Comparison | None]:
    """Run a recorded launch as :func:`replayed` does.

    If a GPU ran the launch, compare the memory with the memory of the GPU.

    A difference of the memory becomes a finding of the report.
    """
    device = Device(launch.compute_capability, multiprocessor_count=launch.multiprocessor_count, **settings)
    segments = [
        Segment(each.address, np.frombuffer(bytearray(each.data), np.uint8), each.name, not each.is_read_only)
        for each in launch.memory
    ]
    device._memory.restore(segments, launch.formers, launch.next_address)
    variables = tuple(sorted(launch.variables.items()))
    kernel = _kernel(launch.ptx, launch.entry, variables, launch.parameter_names, launch.source)
    arguments = map(np.void, launch.arguments)  # A value of type np.void contains the bytes of a parameter of any type.
    report = device.launch(launch.config, kernel, *arguments, order=order, seed=seed, trace=trace)
    if launch.hardware is None:
        return report, None
    comparison = _comparison(launch, launch.hardware, report, device)
    # A launch with a race may have several results, so the results are not compared.
    found = comparison.finding(launch.hardware.name) if not report.errors else None
    return (report if found is None else replace(report, findings=(*report.findings, found))), comparison


def _comparison(launch: RecordedLaunch, hardware: Hardware, report: Report, device: Device) -> Comparison:
    if report.unfinished:
        return Comparison(NOT_COMPARED, "the simulation reached the time limit")
    if any(error.ends_launch for error in report.errors):
        return Comparison(NOT_COMPARED, "an error ends the simulated launch")
    return compared(launch, hardware, device._memory)


@lru_cache(maxsize=16)
def _kernel(
    ptx: str, entry: str, variables: tuple[tuple[str, int], ...], names: tuple[str, ...], source: str
) -> Kernel:
    """Load the kernel of a recorded launch, whose variables already have addresses."""
    module, placed = read(ptx), dict(variables)
    function = module.functions.get(entry)
    if function is None or function.kind != "entry":
        raise ValueError(f"the recorded PTX does not contain the kernel {entry}")
    for variable in module.variables.values():
        if variable.space in ("global", "const") and variable.name not in placed:
            raise ValueError(f"the recording does not contain the address of the variable {variable.name}")
    return kernel_of(ptx, decode(module, entry, placed), described_types(ptx, entry), names, source=source)
