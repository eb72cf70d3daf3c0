"""The command ``cuda-tma sanitize -- COMMAND``, which runs a program and checks every launch of its processes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import shown_path
from .._given import printable
from .console import complain, print_styled
from .excerpts import described
from .exit_status import Misuse
from .gpu_table import gpu_lines
from .judgement import STANDARD_OUTPUT, check_filters, schedules_of, seed_of, suppressions_of
from .outcome import Outcome, causes, coverage, unused
from .sources import Sources

if TYPE_CHECKING:
    from .._intercept.launched import Launched
    from .._intercept.options import Options

__all__ = ["judge_program", "show_launches", "sources_of"]


def judge_program(
    arguments: argparse.Namespace, stack: ExitStack
) -> tuple[Outcome, Callable[[Launched], Sources], Callable[[Outcome], None]]:
    """Run the program to its end, and read the journals of its processes from a folder.

    The folder exists until `stack` closes.
    """
    from .._intercept.program import argv_of, run_program, session_folder

    options = _options(arguments)
    try:
        argv = argv_of(arguments.program)
    except FileNotFoundError as error:
        raise Misuse(str(error)) from None
    streams = {"stdout": sys.stderr} if arguments.json == STANDARD_OUTPUT else {}
    begun = time.perf_counter()
    try:
        folder = stack.enter_context(session_folder(options))
        ended = run_program(argv, folder, on_gpu=options.on_gpu, **streams)
    except OSError as error:
        raise Misuse(f"{arguments.program[0]} cannot be run: {error.strerror or error}") from None
    journals = ended.journals
    outcome = Outcome(
        journals.launches,
        ended.status,
        options.suppressions,
        journals.notes,
        journals.lost,
        journals.lost_errors,
        journals.cause,
        time.perf_counter() - begun,
        tables=ended.tables,
    )
    return outcome, sources_of, show_launches


def _options(arguments: argparse.Namespace) -> Options:
    """Return the settings of the session; the function makes a device with these settings, which checks them."""
    from .._intercept.options import Options
    from ..simulate import Device

    if not arguments.program:
        raise Misuse("no program follows -- (see cuda-tma sanitize --help)")
    if arguments.file is not None:
        raise Misuse(f"{arguments.file} names a FILE, and a program follows --; leave one of them out")
    check_filters(arguments, "a program")
    schedules = schedules_of(arguments)
    try:
        Device(arguments.compute_capability, schedules=schedules, time_limit=arguments.time_limit)
    except ValueError as error:
        raise Misuse(str(error)) from None
    return Options(
        compute_capability=arguments.compute_capability,
        schedules=schedules,
        seed=seed_of(arguments),
        strict=arguments.strict,
        time_limit=arguments.time_limit,
        kernel=arguments.kernel or "",
        launch_skip=arguments.launch_skip,
        launch_count=arguments.launch_count,
        suppressions=suppressions_of(arguments),
        records="all" if arguments.record else "findings" if arguments.html else "",
        **_gpu_options(arguments),
    )


def _gpu_options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the settings of launches on a GPU."""
    for name in ("every", "configurations", "capture_bytes"):
        if getattr(arguments, name) is not None and not arguments.on_gpu:
            raise Misuse(f"--{name.replace('_', '-')} is only for --on-gpu: leave it out, or add --on-gpu")
        if getattr(arguments, name) is not None and not 0 < getattr(arguments, name) < 1 << 31:
            raise Misuse(f"--{name.replace('_', '-')} {getattr(arguments, name)} is not a positive number of 31 bits")
    given = {name: getattr(arguments, name) for name in ("every", "configurations", "capture_bytes")}
    return {"on_gpu": arguments.on_gpu, **{name: value for name, value in given.items() if value is not None}}


def sources_of(launch: Launched) -> Sources:
    """Return the files whose lines a finding may show.

    The files are in the working directory, or belong to the script that launches.
    """
    at = launch.launched_at
    folder = os.path.dirname(at.file) if at is not None else ""
    folders = [folder] if os.path.dirname(folder) != folder else []
    return Sources(Path(launch.ptx_file), folders, launch.sources, launch.generated)


# ---- text for users ----


def show_launches(outcome: Outcome) -> None:
    """Print each cause once, with the first launch that has the cause, and then the notes and the coverage."""
    print_styled(_styled(outcome))
    for text in (*outcome.notes, *_without_lines(outcome)):
        complain(f"note: {text}")
    for launch in outcome.unfinished:
        complain(f"{_described(launch)}: {launch.report.unfinished if launch.report else ''}")
    for text in gpu_lines(outcome):
        print(printable(text))
    print(printable(f"cuda-tma: {coverage(outcome)}"), flush=True)


def _styled(outcome: Outcome) -> Iterator[tuple[str, str]]:
    for cause in causes(outcome):
        yield from described(cause.finding, sources_of(cause.launch))
        yield ("  launch: " if cause.launch.config is not None else "  call of: "), "bold"
        yield printable(f"{_described(cause.launch)}{_others(cause.launches - 1)}\n\n"), ""
    hidden: dict[str, None] = {}
    for launch in outcome.judged:
        for finding in launch.report.suppressed if launch.report is not None else ():
            reason = next(each.reason for each in outcome.suppressions if each.covers(finding))
            hidden[printable(f"suppressed: {finding.kind} in {launch.kernel}: {reason}\n")] = None
    yield from ((text, "") for text in hidden)
    for each in unused(outcome):
        yield printable(f"unused suppression: {each.kind}:{each.place}:{each.reason}\n"), ""


def _without_lines(outcome: Outcome) -> Iterator[str]:
    """Yield a note if findings name lines of PTX, because the options of nvcc omit the lines of the source."""
    found = (cause for cause in causes(outcome) if cause.finding.ptx_line and not cause.finding.source)
    if names := sorted({printable(cause.launch.plain_kernel) for cause in found}):
        has = "has" if len(names) == 1 else "have"
        yield f"{', '.join(names)} {has} no line information: compile with -lineinfo to see the lines of the source"


def _described(launch: Launched) -> str:
    config, at = launch.config, launch.launched_at
    shape = f", grid {config.grid}, block {config.block}" if config is not None else ""
    cluster = f", cluster {config.cluster}" if config is not None and config.cluster else ""
    place = f", by {shown_path(at.file)}:{at.line}" if at is not None else ""
    return f"{launch.kernel}{shape}{cluster}{place}"


def _others(number: int) -> str:
    return f", and {number} more launch{'es' * (number > 1)}" if number else ""
