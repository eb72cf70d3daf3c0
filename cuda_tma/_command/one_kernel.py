"""The command ``cuda-tma sanitize kernel.cu --kernel NAME``, which checks one launch of a kernel in C++ or PTX."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._given import printable
from .console import complain, print_styled
from .excerpts import described
from .exit_status import Misuse
from .judgement import schedules_of, suppressions_of
from .launch import kernel_of, launched
from .outcome import Outcome, counted
from .sources import Sources

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from .._intercept.launches import RecordedLaunch
    from ..simulate import Config, Device, Kernel, Report

__all__ = ["judge_kernel"]


def judge_kernel(
    arguments: argparse.Namespace, stack: ExitStack
) -> tuple[Outcome, Callable[[Launched], Sources], Callable[[Outcome], None]]:
    """Compile or load the kernel, and run it under every schedule."""
    from .._intercept.launched import Launched
    from .._intercept.launches import captured
    from ..simulate import Config

    _check_kernel(arguments)
    gpu, begun = _device(arguments), time.perf_counter()
    kernel = kernel_of(gpu, arguments)
    recorded: list[RecordedLaunch] = []

    def record(config: Config, given: list[Any]) -> None:
        if arguments.record or arguments.html:
            recorded.append(captured(gpu, config, kernel, given, kernel=kernel.name, runtime="cuda-tma"))

    report = _launched(gpu, kernel, arguments, record)
    config = Config(arguments.grid, arguments.block, arguments.cluster, arguments.shmem_size)
    seconds = time.perf_counter() - begun
    take = (lambda: recorded[0]) if recorded else None
    launch = Launched(0, kernel.name, "cuda-tma", config, seconds, report, recorded=take)
    sources = Sources(Path(arguments.file), arguments.include)
    outcome = Outcome((launch,), suppressions=gpu.suppressions, seconds=seconds)
    return outcome, lambda _: sources, lambda judged: _print(judged, sources)


def _launched(
    gpu: Device, kernel: Kernel, arguments: argparse.Namespace, record: Callable[[Config, list[Any]], None]
) -> Report:
    from .._intercept.launches import MemoryTooLarge

    try:
        return launched(gpu, kernel, arguments, before=record)
    except MemoryTooLarge as error:
        raise Misuse(f"the launch cannot be recorded: {error}") from None


def _check_kernel(arguments: argparse.Namespace) -> None:
    if run := _command_of(Path(arguments.file)):
        raise Misuse(f"{arguments.file} is a program: write cuda-tma sanitize -- {run}")
    missing = [f"--{name}" for name in ("kernel", "grid", "block") if getattr(arguments, name) is None]
    if missing:
        raise Misuse(f"the following arguments are required: {', '.join(missing)} (see cuda-tma sanitize --help)")


def _command_of(file: Path) -> str:
    """Return the command that runs a Python script or an executable; for another file, return nothing."""
    name = printable(str(file))
    if file.suffix == ".py":
        return f"python {name}"
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        is_program = stream.read(4) == b"\x7fELF"
    return (name if "/" in name else f"./{name}") if is_program else ""


def _device(arguments: argparse.Namespace) -> Device:
    from ..simulate import Device

    settings = {"strict": arguments.strict, "suppressions": suppressions_of(arguments)}
    settings["time_limit"] = arguments.time_limit
    try:
        return Device(arguments.compute_capability, schedules=schedules_of(arguments), **settings)
    except ValueError as error:
        raise Misuse(str(error)) from None


def _print(outcome: Outcome, sources: Sources) -> None:
    (report,) = [launch.report for launch in outcome.judged if launch.report is not None]
    output = printable(report.output)
    print(output, end="" if output.endswith("\n") or not output else "\n")
    for finding in report.findings:
        print_styled(described(finding, sources))
        print()
    for finding in report.suppressed:
        reason = next(each.reason for each in outcome.suppressions if each.covers(finding))
        print(printable(f"suppressed: {finding.kind} at {_place(finding)}: {reason}"))
    for each in report.unused_suppressions:
        print(printable(f"unused suppression: {each.kind}:{each.place}:{each.reason}"))
    print(_verdict(report, outcome.known), flush=True)
    if report.unfinished:
        complain(report.unfinished)


def _place(finding: Any) -> str:
    where = finding.source[-1:]
    return f"{Path(where[0].file).name}:{where[0].line}" if where else f"PTX line {finding.ptx_line}"


def _verdict(report: Report, known: int) -> str:
    errors, advice = len(report.errors), len(report.findings) - len(report.errors)
    parts = [counted(errors, "error", "errors") if errors else "no errors"]
    parts += [f"{counted(advice, 'piece', 'pieces')} of advice"] * bool(advice)
    parts += [f"{known} known from the baseline"] * bool(known)
    parts += [f"{len(report.suppressed)} suppressed"] * bool(report.suppressed)
    tried = counted(max(len(report.schedules), 1), "schedule", "schedules")
    return f"{', '.join(parts)}; {tried}, {report.thread_instructions} thread instructions"
