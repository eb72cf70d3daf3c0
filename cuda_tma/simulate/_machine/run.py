"""The run of one launch, from its arguments to its report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..._files import shown_path
from ...rules import _configurations, _launches
from .._config import Config
from .._errors import TimeLimitReached
from .._findings import Finding
from .._kernel import Kernel
from .._memory.global_memory import GlobalMemory, Segment
from .._places import statements
from .._ptx import Instruction
from .._report import Report
from .._sync.deadlock import deadlock, explained
from .._warps.faults import Fault
from .._warps.geometry import Geometry
from .._warps.lanes import as_array
from .._warps.spaces import GRID_WORKSPACE, PARAM_WINDOW
from .._warps.waiting import CALLED, Stuck, Waiting
from .machine import Machine, Settings
from .observer import Observer
from .plan import LaunchPlan

__all__ = ["Running", "run", "run_overlapping"]

_MOST_SHARED_BYTES = 227 << 10  # A CTA of compute capability 9.0 has at most 227 KB of shared memory.
_DEVICE_ID = 0


class Running:
    """A launch that the simulator runs in several parts.

    Parameters
    ----------
    kernel : Kernel
    config : Config
    block : numpy.ndarray of uint8
        The block of parameters.
    memory : GlobalMemory
    settings : Settings
    observer : Observer, optional
    begins_early : bool
        Whether the launch begins before the end of the preceding launch.
    """

    def __init__(
        self,
        kernel: Kernel,
        config: Config,
        block: np.ndarray,
        memory: GlobalMemory,
        settings: Settings,
        observer: Observer | None = None,
        begins_early: bool = False,
    ):
        plan = _plan(kernel, config, block, settings, begins_early)
        self.machine = Machine(kernel.program, plan, memory, settings, observer)
        self._kernel, self._memory, self._segments = kernel, memory, [plan.parameters]
        self._faults: tuple[Finding, ...] = ()
        self._unfinished = ""
        if plan.grid_workspace:
            self._segments.append(Segment(plan.grid_workspace, np.zeros(8, np.uint8), "the grid's workspace"))

    def go(self, until: Callable[[], bool] | None = None) -> None:
        """Run the machine; a fault ends the launch, and the report contains it."""
        if self.has_faulted:
            return
        deadline, interrupt = self.machine.deadline, self.machine.parts.scheduler.interrupt
        with self._memory.holding(*self._segments), deadline.interrupting(interrupt):
            try:
                self.machine.run(until)
            except Fault as fault:
                self._faults = (replace(_finding(*self._told(fault)), ends_launch=True),)
            except Stuck as stuck:
                blocked = self._deadlock(stuck.waiting)
                self._faults = (replace(_finding(blocked, self.machine, stuck.waiting), ends_launch=True),)
            except TimeLimitReached as reached:
                self._unfinished = self._cut(reached)

    def _cut(self, reached: TimeLimitReached) -> str:
        """Return the sentence about a launch that the time limit ended, with the places of its threads."""
        scheduler = self.machine.parts.scheduler
        at = next((each for each in scheduler.standing()[-1:]), None)
        instruction = at[0].code.instruction(at[1]) if at else None
        where = f", at {_place(instruction)}" if instruction else ""
        return (
            f"{reached} after {scheduler.steps} steps{where}: the rest of the launch is not checked. Remedy: raise the "
            "time limit, or launch a smaller grid or fewer schedules"
        )

    def _told(self, fault: Fault) -> tuple[Fault, Machine, list[Waiting]]:
        """Return the deadlock that led to a trap, because a wait with a deadline traps at its deadline."""
        stalled, at = self.machine.stalled, self.machine.parts.scheduler.where
        instructions = at.context.code.function.instructions if at else ()
        is_trap = at is not None and at.pc < len(instructions) and instructions[at.pc].opcode[0] == "trap"
        if stalled and is_trap:
            told = self._deadlock(stalled)
            told.message += f"\nuntil a wait gave up: {fault.message}"
            return told, self.machine, stalled
        waiting = [*self.machine.parts.waiting()]
        return explained(fault, waiting), self.machine, waiting

    def _deadlock(self, waiting: list[Waiting]) -> Fault:
        return deadlock(waiting, self.machine.parts.geometry, self._kernel)

    def close(self) -> None:
        """Release the memory of the observer."""
        self.machine.close()

    @property
    def has_faulted(self) -> bool:
        """Return whether a fault or the time limit ended the launch."""
        return bool(self._faults or self._unfinished)

    def report(self) -> Report:
        """Return the report of the launch."""
        machine, observer, parts = self.machine, self.machine.observer, self.machine.parts
        kept = [replace(_finding(each.fault, machine, []), count=each.count) for each in parts.faults]
        observed = observer.findings() if observer is not None else ()
        findings = (*kept, *self._faults, *observed)
        output, thread_steps = "".join(parts.runtime.output), parts.scheduler.thread_steps
        return Report(findings, output, thread_steps, unfinished=self._unfinished)


def run(
    kernel: Kernel,
    config: Config,
    block: np.ndarray,
    memory: GlobalMemory,
    settings: Settings,
    observer: Observer | None = None,
) -> Report:
    """Run a kernel to its end or to a fault, and return the report; the arguments are those of :class:`Running`."""
    running = Running(kernel, config, block, memory, settings, observer)
    running.go()
    report = running.report()
    running.close()
    return report


def run_overlapping(launches: Iterable[Running]) -> Iterator[Report]:
    """Run launches in sequence, where a launch may begin before the end of the preceding launch.

    A launch that begins early runs until it waits for the preceding launch, which then continues.
    """
    before = None
    for running in launches:
        if before is not None:
            if running.machine.observer is not None:
                running.machine.observer.follows(before.machine.observer)
            if running.machine.parts.dependents.is_held:
                running.go()
            before.go()
            yield before.report()
            running.machine.parts.dependents.release()
        running.go(running.machine.lets_begin)
        before = running
    if before is not None:
        before.go()
        yield before.report()


def _plan(kernel: Kernel, config: Config, block: np.ndarray, settings: Settings, begins_early: bool) -> LaunchPlan:
    """Check a configuration, and return the plan of its launch."""
    name, extents = kernel.parameters.kernel, (config.grid, config.block, config.cluster)
    grid, cluster = _configurations.shape(name, kernel.directives, *extents)
    dynamic_bytes = config.shmem_size or kernel.parameters.dynamic_shared_bytes
    _check_shared_memory(kernel, dynamic_bytes)
    entry, shared_bytes = kernel.program.entry, kernel.program.static_shared_bytes + dynamic_bytes
    thread_bytes = entry.register_bytes + entry.local_bytes
    count, cancels = settings.multiprocessor_count, kernel.program.cancels_clusters and not config.is_cooperative
    geometry = Geometry(grid, config.block, cluster, count, shared_bytes, thread_bytes, cancels)
    if config.is_cooperative:
        _check_resident(geometry, settings)
    is_given = (config.cluster or kernel.cluster) is not None or "explicitcluster" in entry.function.attributes
    return LaunchPlan(
        geometry,
        Segment(PARAM_WINDOW, block, "the kernel's parameters", writeable=False),
        dynamic_bytes,
        has_explicit_cluster=is_given or geometry.cluster_ctas > 1,
        grid_workspace=GRID_WORKSPACE if config.is_cooperative else 0,
        is_held=begins_early,
    )


def _check_resident(geometry: Geometry, settings: Settings) -> None:
    if geometry.slots < geometry.clusters:
        ctas, most = geometry.clusters * geometry.cluster_ctas, geometry.resident_ctas
        raise ValueError(
            f"is_cooperative=True: all {ctas} CTAs must run at the same time, but {settings.multiprocessor_count} "
            f"multiprocessors run at most {most} of them; launch a smaller grid, or pass a larger "
            "Device(multiprocessor_count=...)"
        )


def _check_shared_memory(kernel: Kernel, dynamic_bytes: int) -> None:
    known, static_bytes = kernel.parameters, kernel.program.static_shared_bytes
    if dynamic_bytes < known.dynamic_shared_bytes:
        raise _launches.shared_memory_needed(known.kernel, dynamic_bytes, known.dynamic_shared_bytes)
    if static_bytes + dynamic_bytes > _MOST_SHARED_BYTES:
        raise _launches.shared_memory_limit(known.kernel, dynamic_bytes, static_bytes, _MOST_SHARED_BYTES, _DEVICE_ID)


def _finding(fault: Fault, machine: Machine, waiting: list[Waiting]) -> Finding:
    at = machine.parts.scheduler.where
    lanes = fault.lanes if fault.lanes is not None else at.lanes if at else None
    blocks, threads = machine.parts.geometry.blocks_and_threads(as_array(lanes)) if lanes is not None else ((), ())
    instructions = at.context.code.function.instructions if at else ()
    instruction = fault.instruction or (instructions[at.pc] if at and at.pc < len(instructions) else None)
    is_advice = fault.is_disputed and not machine.strict
    explained = () if is_advice else _explained(fault, as_array(lanes) if lanes is not None else None, machine, waiting)
    source, line = (instruction.places, instruction.line) if instruction else ((), 0)
    calls = at.context.calls if at and fault.instruction is None else ()
    beside = (*((CALLED, by) for by in calls), *fault.related, *explained)
    related = tuple({(what, each.places): None for what, each in beside if each is not None and each.places})
    severity = "advice" if is_advice else "error"
    return Finding(fault.kind, severity, fault.message, source, blocks, threads, line, related=related)


def _place(instruction: Instruction) -> str:
    own, _ = statements(instruction.places)
    return f"{shown_path(own[0].file)}:{own[0].line}" if own else f"PTX line {instruction.line}"


def _explained(
    fault: Fault, lanes: np.ndarray | None, machine: Machine, waiting: list[Waiting]
) -> Sequence[tuple[str, Instruction | None]]:
    """Return the statements with which the observer explains a fault."""
    if machine.observer is None or lanes is None:
        return ()
    return machine.observer.explained(fault, lanes, [each.parked.lanes for each in waiting])
