"""One launch, from its arguments to its report."""

from __future__ import annotations

import numpy as np

from ._faults import Fault
from ._geometry import Geometry
from ._global_memory import GlobalMemory, Segment
from ._lanes import as_array
from ._machine import Machine, Settings
from ._observe import Observer
from ._spaces import PARAM_WINDOW
from .config import Config
from .findings import Finding, Report
from .kernel import Kernel

__all__ = ["run"]

_MOST_SHARED_BYTES = 227 << 10  # of a CTA, compute capability 9.0


def run(
    kernel: Kernel,
    config: Config,
    block: np.ndarray,
    memory: GlobalMemory,
    settings: Settings,
    observer: Observer | None = None,
) -> Report:
    """Run a kernel to its end, or to a fault.

    Parameters
    ----------
    block : numpy.ndarray of uint8
        The parameters.
    """
    grid, cluster = config.shape(kernel.cluster)
    dynamic_bytes = config.shmem_size or kernel.parameters.dynamic_shared_bytes
    shared_bytes = kernel.program.static_shared_bytes + dynamic_bytes
    _check(kernel, config, shared_bytes, dynamic_bytes)
    thread_bytes = kernel.program.entry.register_bytes + kernel.program.entry.local_bytes
    geometry = Geometry(grid, config.block, cluster, settings.multiprocessor_count, shared_bytes, thread_bytes)
    parameters = Segment(PARAM_WINDOW, block, "the kernel's parameters", writeable=False)
    machine = Machine(kernel.program, geometry, memory, parameters, dynamic_bytes, settings, observer)
    findings: tuple[Finding, ...] = ()
    with memory.holding(parameters):
        try:
            machine.run()
        except Fault as fault:
            findings = (_finding(fault, machine),)
    findings = (*findings, *observer.findings()) if observer is not None else findings
    return Report(findings, "".join(machine.output), machine.scheduler.thread_steps)


def _check(kernel: Kernel, config: Config, shared_bytes: int, dynamic_bytes: int) -> None:
    """What the driver refuses, of what only the kernel tells."""
    threads = int(np.prod(config.block))
    if threads > kernel.most_threads:
        raise ValueError(f"block={config.block} has {threads} threads; {kernel.name} allows {kernel.most_threads}")
    if shared_bytes > _MOST_SHARED_BYTES:
        raise ValueError(f"{kernel.name} takes {shared_bytes} bytes of shared memory; a CTA has {_MOST_SHARED_BYTES}")
    needed = kernel.parameters.dynamic_shared_bytes
    if dynamic_bytes < needed:
        raise ValueError(f"shmem_size={dynamic_bytes}; {kernel.name} needs {needed}: leave it out, or give that")


def _finding(fault: Fault, machine: Machine) -> Finding:
    at = machine.scheduler.where
    lanes = fault.lanes if fault.lanes is not None else at.lanes if at else None
    blocks, threads = machine.geometry.blocks_and_threads(as_array(lanes)) if lanes is not None else ((), ())
    instructions = at.context.code.function.instructions if at else ()
    instruction = fault.instruction or (instructions[at.pc] if at and at.pc < len(instructions) else None)
    source, line = (instruction.places, instruction.line) if instruction else ((), 0)
    return Finding(fault.kind, "error", fault.message, source, blocks, threads, line)
