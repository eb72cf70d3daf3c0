"""``cuda-tma sanitize``: what is wrong in a kernel, for people, for programs (JSON), and for code scanning (SARIF)."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._files import write
from .._given import printable
from . import sarif
from .console import print_json, print_styled
from .excerpts import described
from .exit_status import ACCEPTED, REFUSED, Misuse
from .launch import as_json, kernel_of, launched
from .sources import Sources

if TYPE_CHECKING:
    from ..simulate import Device, Report, Suppression

__all__ = ["EXIT_STATUS", "run", "suppression"]

EXIT_STATUS = (
    "exit status: 0 if nothing is wrong (advice and what is suppressed do not count), 1 if there are errors, 2 if the "
    "command line is wrong or a file cannot be read, compiled or written, 3 if the kernel has an instruction that the "
    "simulator does not know: then nothing is said of it"
)


def suppression(text: str) -> Suppression:
    """What ``--suppress`` says."""
    from ..simulate import Suppression

    try:
        return Suppression.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(arguments: argparse.Namespace) -> int:
    """Compile or load the kernel, run it under every schedule, and say what was found."""
    gpu = _device(arguments)
    if arguments.sarif and not Path(arguments.sarif).absolute().parent.is_dir():  # said before a long run, not after
        raise Misuse(f"--sarif {arguments.sarif} cannot be written: there is no such folder")
    _check_is_no_input(arguments)
    try:
        kernel = kernel_of(gpu, arguments)
        report = launched(gpu, kernel, arguments)
    except Misuse as error:
        if arguments.sarif:
            _write(Path(arguments.sarif), sarif.failure(str(error), error.status))
        raise
    sources = Sources(Path(arguments.file), arguments.include)
    if arguments.sarif:
        _write(Path(arguments.sarif), sarif.log(report, kernel.name, sources, gpu.suppressions))
    if arguments.json:
        print_json(_as_json(report, kernel.name))
    else:
        _print(report, sources, gpu.suppressions)
    return REFUSED if report.errors else ACCEPTED


def _check_is_no_input(arguments: argparse.Namespace) -> None:
    """Refuse to write the log over the kernel or the suppressions, links resolved."""
    if not arguments.sarif or not os.path.exists(arguments.sarif):
        return
    for given in (arguments.file, *arguments.suppressions):
        if os.path.exists(given) and os.path.samefile(given, arguments.sarif):
            raise Misuse(f"--sarif {arguments.sarif} is {given}, which this command reads; name another file")


def _device(arguments: argparse.Namespace) -> Device:
    from ..simulate import Device, read_suppressions

    given = list(arguments.suppress)
    try:
        for path in arguments.suppressions:
            given += read_suppressions(path)
        return Device(
            arguments.compute_capability,
            strict=arguments.strict,
            schedules=arguments.schedules,
            suppressions=given,
        )
    except OSError as error:
        raise Misuse(f"--suppressions {path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise Misuse(str(error)) from None


def _as_json(report: Report, kernel: str) -> dict[str, Any]:
    return {"kernel": kernel, "errors": len(report.errors), **as_json(report)}


def _write(path: Path, log: dict[str, Any]) -> None:
    import json

    try:
        write(path, json.dumps(log, indent=2, ensure_ascii=False) + "\n")
    except OSError as error:
        raise Misuse(f"--sarif {path} cannot be written: {error.strerror or error}") from None


def _print(report: Report, sources: Sources, suppressions: tuple[Suppression, ...]) -> None:
    output = printable(report.output)
    print(output, end="" if output.endswith("\n") or not output else "\n")
    for finding in report.findings:
        print_styled(described(finding, sources))
        print()
    for finding in report.suppressed:
        reason = next(each.reason for each in suppressions if each.covers(finding))
        print(printable(f"suppressed: {finding.kind} at {_place(finding)}: {reason}"))
    for each in report.unused_suppressions:
        print(printable(f"this suppression covers nothing: {each.kind}:{each.place}:{each.reason}"))
    print(_verdict(report))


def _place(finding: Any) -> str:
    where = finding.source[-1:]
    return f"{Path(where[0].file).name}:{where[0].line}" if where else f"PTX line {finding.ptx_line}"


def _verdict(report: Report) -> str:
    errors, advice = len(report.errors), len(report.findings) - len(report.errors)
    parts = [f"{errors} error{'s' * (errors != 1)}" if errors else "no errors"]
    parts += [f"{advice} of advice"] * bool(advice) + [f"{len(report.suppressed)} suppressed"] * bool(report.suppressed)
    tried = max(len(report.schedules), 1)
    run = f"{tried} schedule{'s' * (tried > 1)}, {report.thread_instructions} instructions of threads"
    return f"{', '.join(parts)}; {run}"
