"""The launches of the mutants, each of which runs once on the simulator in a separate process.

A subject is a test that launches a kernel. Only the first launches of a test run, under several schedules, until the
first finding. Then the memory is compared with the memory of the kernel without a fault.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_subjects import LAUNCHES, SUBJECTS

from cuda_tma import CompileError, include_path, simulate
from cuda_tma._compile import nvrtc
from cuda_tma.simulate._device import device as simulated
from cuda_tma.simulate._warps.observe import Events
from tests.support.machine_code import machine_code

SCHEDULES = (("early", 0), ("late", 0), ("random", 1), ("random", 2))
MAX_STEPS = 100_000
DEBUG = re.compile(r"^[ \t]*(?:\.loc|\.file|//).*\n|^[ \t]*\.section[ \t]+\.debug[\s\S]*", re.M)


@dataclass(frozen=True)
class Fault:
    """A change, which is the complete text of a header, or of the kernel if `header` is empty."""

    header: str
    text: str


class _Launched(Exception):
    """The exception that ends a test after the first launch."""


# ---- one launch ----


def baseline(name: str) -> dict:
    """Run a subject without a fault. Return its source, its PTX, the lines of each instruction, and its final
    memory."""
    seen: dict[str, Any] = {}
    with _executed() as executed:
        found = _first_launch(name, None, seen)
    every = [each for code in seen["kernel"].program.codes.values() for each in code.function.instructions]
    chains, reached = _chains_of(every), _chains_of(executed.values())
    return {"source": seen["source"], "ptx": seen["ptx"], "chains": chains, "reached": reached, **found}


def _chains_of(instructions: Iterable[Any]) -> list[tuple]:
    return sorted({tuple((place.file, place.line) for place in each.places) for each in instructions if each.places})


@contextlib.contextmanager
def _executed() -> Iterator[dict[int, Any]]:
    """Record the instructions that any thread executes during the block."""
    found: dict[int, Any] = {}
    steps_of = Events.steps_of

    def noted(instruction: Any, step: Any) -> Any:
        def run(group: Any, lanes: Any) -> Any:
            found[id(instruction)] = instruction
            return step(group, lanes)

        return run

    @functools.cache
    def watched(events: Any, code: Any) -> list:
        steps, instructions = steps_of(events, code), code.function.instructions
        return [*map(noted, instructions, steps), *steps[len(instructions) :]]

    Events.steps_of = watched
    try:
        yield found
    finally:
        Events.steps_of = steps_of


def tried(name: str, fault: Fault, known: dict, wanted: Callable[[dict], bool]) -> dict:
    """Run a mutant until a finding satisfies `wanted`. Return the findings or the memory. A finding that also occurs
    without the fault does not count.
    """
    before = {_cause(row) for row in known["findings"]}

    def counts(finding: dict) -> bool:
        return _cause(finding) not in before and wanted(finding)

    try:
        found = _first_launch(name, fault, {"before": known["ptx"]}, counts)
        return {**found, "findings": [row for row in found.get("findings", []) if _cause(row) not in before]}
    except (CompileError, simulate.UnsupportedInstruction) as error:
        return {"outcome": "does not compile", "error": str(error)[:300]}
    except (TypeError, ValueError, OverflowError) as error:
        return {"outcome": "does not launch", "error": f"{type(error).__name__}: {error}"[:300]}


def _first_launch(
    name: str, fault: Fault | None, seen: dict, wanted: Callable[[dict], bool] = lambda finding: False
) -> dict:
    results: dict[str, Any] = {"findings": [], "memory": []}
    launch = simulate.Device.launch

    def launched(gpu: Any, config: Any, kernel: Any, *arguments: Any, **_: Any) -> simulate.Report:
        seen["kernel"], seen["launches"] = kernel, seen.get("launches", 0) + 1
        with gpu._memory.launch() as address:
            # The call of _block() maps the arrays, so that the script can save their contents.
            gpu._block(kernel, arguments, address)
        saved = {segment.start: segment.bytes.tobytes() for segment in gpu._memory if segment.writeable}
        for order, seed in SCHEDULES:
            for segment in gpu._memory:
                if segment.start in saved:
                    segment.bytes.data[:] = saved[segment.start]
            report = launch(gpu, config, kernel, *arguments, order=order, seed=seed, max_steps=MAX_STEPS)
            found = [_row(finding, order, seed) for finding in report.findings]
            results["findings"] += [row for row in found if _cause(row) not in map(_cause, results["findings"])]
            results["memory"].append(_digest(gpu._memory))
            if any(map(wanted, found)):
                raise _Launched
        if seen["launches"] == LAUNCHES.get(name, 1) or report.errors:
            raise _Launched
        return report

    with tempfile.TemporaryDirectory(prefix="kernel-mutant-") as folder:
        simulate.Device.launch = launched
        simulated.run_compiler = _compiler(fault, Path(folder), seen)
        try:
            SUBJECTS[name]()
        except (_Launched, AssertionError):  # An AssertionError means that the result of another launch is wrong.
            return {"outcome": "launched", **results}
        except _Same:
            return {"outcome": "the same PTX"}
        finally:
            simulate.Device.launch, simulated.run_compiler = launch, nvrtc.run
    raise AssertionError(f"{name} launches nothing")


class _Same(Exception):
    """The exception for a fault that does not change the compiler's input."""


def _compiler(fault: Fault | None, folder: Path, seen: dict) -> Callable[[nvrtc.Request], Any]:
    def run_compiler(asked: nvrtc.Request) -> Any:
        compiled = nvrtc.run(_changed(asked, fault, folder))
        seen["source"], seen["ptx"] = asked.source, _digest_of(DEBUG.sub("", compiled.ptx).encode())
        if seen["ptx"] == seen.get("before"):
            raise _Same
        return compiled

    return run_compiler


def _changed(asked: nvrtc.Request, fault: Fault | None, folder: Path) -> nvrtc.Request:
    """Change the kernel's source, or one header in a copy of the headers."""
    if fault is None:
        return asked
    if not fault.header:
        return asked._replace(source=fault.text)
    shutil.copytree(include_path(), folder, dirs_exist_ok=True)
    (folder / "cuda_tma" / fault.header).write_text(fault.text)
    of_package = f"--include-path={include_path()}"
    options = [f"--include-path={folder}" if option == of_package else option for option in asked.options]
    return asked._replace(options=tuple(options))


def same_machine_code(name: str, fault: Fault) -> bool:
    """Return whether ptxas emits the same instructions for two PTX texts."""
    codes: list[dict[str, bytes]] = []
    with tempfile.TemporaryDirectory(prefix="kernel-mutant-") as folder:

        def run_compiler(asked: nvrtc.Request) -> None:
            target = asked._replace(target="sm_90a", options=("--gpu-architecture=sm_90a", *asked.options[1:]))
            for each in (None, fault):
                codes.append(machine_code(nvrtc.run(_changed(target, each, Path(folder))).cubin))
            raise _Launched

        simulated.run_compiler = run_compiler
        try:
            SUBJECTS[name]()
        except (_Launched, CompileError):
            return len(codes) == 2 and codes[0] == codes[1]
        finally:
            simulated.run_compiler = nvrtc.run
    return False


# ---- the stored results ----


def _row(finding: simulate.Finding, order: str, seed: int) -> dict:
    return {
        "kind": finding.kind,
        "severity": finding.severity,
        "schedule": f"{order} {seed}" if order == "random" else order,
        "places": [[(place.file, place.line) for place in chain] for chain in _chains(finding)],
        "message": finding.message[:400],
    }


def _chains(finding: simulate.Finding) -> list[tuple]:
    related = (places for _, places in finding.related)
    return [chain for chain in (finding.source, finding.other, *related) if chain]


def _cause(row: dict) -> tuple:
    """Return the cause of an error with file names only, because the headers of a fault are in another folder."""
    return row["kind"], str([[(Path(file).name, line) for file, line in chain] for chain in row["places"]])


def _digest(memory: Any) -> str:
    return _digest_of(b"".join(segment.bytes.tobytes() for segment in memory if segment.writeable))


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
