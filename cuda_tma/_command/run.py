"""The command ``cuda-tma run``, which runs a kernel of C++ or PTX on the simulator and prints its arrays."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .console import complain, print_json
from .exit_status import ACCEPTED, REFUSED, UNSUPPORTED, Misuse
from .launch import arrays_of, as_json, kernel_of, launched

if TYPE_CHECKING:
    from ..simulate import Report

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Compile or load the kernel, run it, and print its output and its findings."""
    from ..simulate import Device

    _check_timeline(arguments.timeline)
    try:
        gpu = Device(arguments.compute_capability, time_limit=arguments.time_limit)
    except ValueError as error:
        raise Misuse(str(error)) from None
    report = launched(gpu, kernel_of(gpu, arguments), arguments, trace=arguments.timeline is not None)
    if arguments.output:
        _write(Path(arguments.output), arrays_of(arguments.arg))
    if arguments.timeline:
        _draw(report, arguments.timeline)
    _print(report, arguments.json)
    if report.unfinished:
        complain(report.unfinished)
    return REFUSED if report.errors else UNSUPPORTED if report.unfinished else ACCEPTED


def _write(folder: Path, arrays: dict[int, np.ndarray]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for number, array in arrays.items():
            np.save(folder / f"arg{number}.npy", array)
    except OSError as error:
        raise Misuse(f"--output {folder} cannot be written: {error}") from None


def _check_timeline(name: str | None) -> None:
    """Refuse an unknown format of the timeline before the kernel runs."""
    if name is not None and Path(name).suffix not in (".svg", ".html"):
        raise Misuse(f"--timeline {name} is not the name of a timeline; end the name in .svg or .html")


def _draw(report: Report, name: str) -> None:
    try:
        report.timeline().write(name)
    except OSError as error:
        raise Misuse(f"--timeline {name} cannot be written: {error.strerror or error}") from None


def _print(report: Report, in_json: bool) -> None:
    if in_json:
        print_json(as_json(report))
        return
    print(report.output, end="")
    for finding in report.findings:
        print(finding)
    errors = len(report.errors)
    verdict = f"{errors} error{'s' * (errors > 1)}" if errors else "no errors"
    print(f"{verdict}; {report.thread_instructions} thread instructions")
