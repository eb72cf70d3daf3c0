"""The conversion of a captured launch to a recorded launch, which a simulated GPU can run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...simulate._device.module import fill_variables
from ...simulate._ptx import Module, Place
from ...simulate._warps.spaces import GLOBAL_START
from ..launched import innermost
from ..launches import Hardware, MemorySegment, RecordedLaunch
from ..lines import lines_of
from .capture_file import Capture, Outcome
from .kernels import GpuKernel
from .messages import Gpu

__all__ = ["launched_at", "recorded_launch"]

RUNTIME = "GPU"
_ALIGNMENT, _UNIT, _GUARD_BYTES = 16, 512, 1 << 16


def launched_at(capture: Capture) -> Place | None:
    """Return the statement of the program that launched the kernel."""
    return innermost(Place(file, line, 0, name) for file, line, name in capture.stack)


def recorded_launch(capture: Capture, kernel: GpuKernel, gpu: Gpu, outcome: Outcome | None) -> RecordedLaunch:
    """Return a captured launch as a value, with the outcome on the GPU if the outcome is known.

    Raises
    ------
    ValueError
        If the launch contradicts itself.
    """
    module = kernel.module
    if module is None:
        raise ValueError(f"the PTX of {kernel.name} is not known")
    memory, variables = _with_variables(capture.variables, _aligned(_named(capture)), module)
    place = launched_at(capture)
    lines = lines_of(kernel.ptx, {}, (), kernel.source, place)
    return RecordedLaunch(
        kernel=kernel.name,
        entry=kernel.entry,
        ptx=kernel.ptx,
        config=capture.config,
        arguments=capture.arguments,
        memory=memory,
        variables=variables,
        next_address=_after(memory),
        compute_capability=gpu.compute_capability,
        multiprocessor_count=gpu.multiprocessors,
        runtime=RUNTIME,
        sources=lines.sources,
        generated=lines.generated,
        embedded=lines.embedded,
        source=kernel.source,
        launched_at=place,
        hardware=Hardware(gpu.name, outcome.result, outcome.seconds, outcome.changed) if outcome is not None else None,
    )


def _named(capture: Capture) -> tuple[MemorySegment, ...]:
    names = {address: f"the variable {name}, {size} bytes" for name, (address, size) in capture.variables.items()}
    return tuple(replace(each, name=names.get(each.address, each.name)) for each in capture.memory)


def _aligned(memory: tuple[MemorySegment, ...]) -> tuple[MemorySegment, ...]:
    """Return the memory in segments that begin at multiples of 16 bytes, as typed accesses require. Variables may begin
    at other addresses.
    """
    found: list[MemorySegment] = []
    for each in memory:
        start = each.address // _ALIGNMENT * _ALIGNMENT
        last = found[-1] if found else None
        if last is not None and start < last.address + len(last.data):
            gap = each.address - last.address - len(last.data)
            found[-1] = replace(last, data=last.data + bytes(gap) + each.data)
        else:
            found.append(replace(each, address=start, data=bytes(each.address - start) + each.data))
    return tuple(found)


def _with_variables(
    known: Mapping[str, tuple[int, int]], memory: tuple[MemorySegment, ...], module: Module
) -> tuple[tuple[MemorySegment, ...], Mapping[str, int]]:
    """Return the memory and the address of each variable. The driver does not find a variable of internal linkage."""
    needed = [each for each in module.variables.values() if each.space in ("global", "const")]
    placed = {each.name: known[each.name][0] for each in needed if each.name in known}
    others = [each for each in needed if each.name not in placed]
    at, data = _after(memory), {}
    for variable in others:
        placed[variable.name] = at
        data[variable.name] = np.zeros(max(variable.size_bytes, 1), np.uint8)
        at = -(-(at + variable.size_bytes + _GUARD_BYTES) // _UNIT) * _UNIT
    fill_variables(module, others, data, placed)
    segments = [
        MemorySegment(placed[name], content.tobytes(), f"the variable {name}, {content.size} bytes")
        for name, content in data.items()
    ]
    return (*memory, *segments), placed


def _after(memory: tuple[MemorySegment, ...]) -> int:
    """Return an address that is after all memory."""
    end = max((each.address + len(each.data) for each in memory), default=GLOBAL_START)
    return -(-(max(end, GLOBAL_START) + _GUARD_BYTES) // _UNIT) * _UNIT
