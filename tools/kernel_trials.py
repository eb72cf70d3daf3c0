"""Launches that mutants are tried on, each once on the simulator, in a process of its own.

A subject is a test that launches a kernel: only its first launch is made, under several schedules, and only until the
first finding. What it leaves in memory is compared with what the kernel without a fault leaves.
"""

from __future__ import annotations

import functools
import hashlib
import re
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cuda_tma import CompileError, include_path, simulate
from cuda_tma._launch import nvrtc
from cuda_tma.simulate import device as simulated
from cuda_tma.simulate._schedules import _restore, _saved
from tests import simulated_examples, test_simulate_examples
from tests.gpu import test_header_cluster, test_header_order, test_header_replace, test_header_scope
from tests.machine_code import machine_code
from tests.real_bugs import real_bugs
from tests.simulated_machine import Machine

__all__ = ["SCHEDULES", "SUBJECTS", "Fault", "baseline", "same_machine_code", "tried"]

SCHEDULES = (("early", 0), ("late", 0), ("random", 1), ("random", 2))
MAX_STEPS = 100_000
DEBUG = re.compile(r"^[ \t]*(?:\.loc|\.file|//).*\n|^[ \t]*\.section[ \t]+\.debug[\s\S]*", re.M)


@dataclass(frozen=True)
class Fault:
    """What is changed: of the kernel itself (`header` is empty) or of a header, its whole text."""

    header: str
    text: str


class _Launched(Exception):
    """The first launch is over."""


# ---- subjects ----


def _example(name: str, sizes: dict[str, int]) -> Callable[[], None]:
    def start() -> None:
        gpu = simulate.Device(multiprocessor_count=4)
        compiled = functools.cache(lambda source, kernel, **constants: gpu.compile(source, kernel, constants=constants))
        test = getattr(test_simulate_examples, f"test_{name}")
        given = {"run": gpu.launch, "compiled": compiled, "gpu": gpu}
        wanted = test.__code__.co_varnames[: test.__code__.co_argcount]
        test(**{key: given[key] for key in wanted if key in given}, **sizes)

    return start


def _whole_example(name: str, case: tuple) -> Callable[[], None]:
    """The first launch of an example as it runs itself."""

    def start() -> None:
        simulated_examples.SIZES[name] = (case,)
        simulated_examples.run_simulated(name)

    return start


def _header_test(module: Any, test: str, parameters: dict[str, object]) -> Callable[[], None]:
    return lambda: getattr(module, f"test_{test}")(Machine(), **parameters)


def _mended(bug: Any) -> Callable[[], None]:
    def start() -> None:
        gpu = simulate.Device()
        given, out = np.arange(4096, dtype=np.int32), np.zeros(4096, np.int32)
        maps = [gpu.create_tensor_map(array.reshape(-1, *bug.box[1:]), box_dim=bug.box) for array in (given, out)]
        kernel = gpu.compile(bug.source, "kernel", defines={"FIXED": 1})
        gpu.launch(
            simulate.Config(bug.grid // bug.cluster, bug.block, bug.cluster), kernel, *maps, given, out, bug.tiles
        )

    return start


# So that each ring goes round, a CTA has several tiles, and their steps are an odd number.
_EXAMPLES: dict[str, dict[str, int]] = {
    "tiled_load": {}, "copy_2d": {"ctas": 1}, "transpose": {}, "replace_address": {}, "fp8_tiles": {}, "kv_tiles": {},
    "gemm": {"m": 136, "n": 520, "k": 264}, "conv_im2col": {"n": 2, "h": 33, "w": 31},
    "grouped_gemm": {"rows": 520, "depth": 136, "clusters": 1},
}  # fmt: skip
_HEADER_TESTS = (
    (test_header_order, "pipeline", {"stages": 2}),
    (test_header_order, "arrive_at", {}),
    (test_header_scope, "a_flag_between_ctas", {"scope": "gpu"}),
    (test_header_replace, "a_changed_map_is_loaded_through", {"scope": "gpu"}),
    (test_header_cluster, "send_reduce_bulk", {"op": "add", "name": "u32"}),
    (test_header_cluster, "store_async", {}),
    (test_header_cluster, "barrier_of_another_cta", {}),
    # Of the third batch alone.
    (test_header_cluster, "pipeline_of_a_cluster", {"stages": 2}),
    (test_header_cluster, "pipeline_of_two_producers", {"stages": 2}),
    (test_header_cluster, "named_barriers_take_turns", {}),
    (test_header_cluster, "cluster_barrier_in_two_steps", {}),
    (test_header_cluster, "arrivals_with_a_count", {}),
    (test_header_cluster, "reduce_async", {}),
    (test_header_order, "barrier_phases", {}),
    (test_header_order, "tensor_map_written_by_another_cta", {}),
)
_WHOLE_EXAMPLES = {"attention": (1, 2, 1, 70, 700, 64, True), "gather_rows": (900, 45)}
SUBJECTS: dict[str, Callable[[], None]] = {
    **{f"examples/{name}": _example(name, sizes) for name, sizes in _EXAMPLES.items()},
    **{f"examples/{name}": _whole_example(name, case) for name, case in _WHOLE_EXAMPLES.items()},
    **{f"tests/gpu/{name}": _header_test(module, name, given) for module, name, given in _HEADER_TESTS},
    **{f"tests/real_bugs/{bug.name}": _mended(bug) for bug in real_bugs()},
}


# ---- one launch ----


def baseline(name: str) -> dict:
    """Of a subject without a fault: its source, its PTX, the lines of each instruction, what it leaves in memory."""
    seen: dict[str, Any] = {}
    found = _first_launch(name, None, seen)
    chains = {
        tuple((place.file, place.line) for place in instruction.places)
        for code in seen["kernel"].program.codes.values()
        for instruction in code.function.instructions
        if instruction.places
    }
    return {"source": seen["source"], "ptx": seen["ptx"], "chains": sorted(chains), **found}


def tried(name: str, fault: Fault, known: dict, wanted: Callable[[dict], bool]) -> dict:
    """What becomes of a mutant: what is found until something is `wanted`, or what it leaves in memory."""
    try:
        return _first_launch(name, fault, {"before": known["ptx"]}, wanted)
    except (CompileError, simulate.UnsupportedInstruction) as error:
        return {"outcome": "does not compile", "error": str(error)[:300]}
    except (TypeError, ValueError) as error:
        return {"outcome": "does not launch", "error": f"{type(error).__name__}: {error}"[:300]}


def _first_launch(
    name: str, fault: Fault | None, seen: dict, wanted: Callable[[dict], bool] = lambda finding: False
) -> dict:
    results: dict[str, Any] = {"findings": [], "memory": []}
    launch = simulate.Device.launch

    def launched(gpu: Any, config: Any, kernel: Any, *arguments: Any, **_: Any) -> None:
        seen["kernel"] = kernel
        simulated.parameter_block(kernel, arguments, gpu.address, gpu._typed_map)  # arrays are mapped
        saved = _saved(gpu._memory)
        for order, seed in SCHEDULES:
            _restore(gpu._memory, saved)
            report = launch(gpu, config, kernel, *arguments, order=order, seed=seed, max_steps=MAX_STEPS)
            found = [_row(finding, order, seed) for finding in report.findings]
            results["findings"] += [row for row in found if _cause(row) not in map(_cause, results["findings"])]
            results["memory"].append(_digest(gpu._memory))
            if any(map(wanted, found)):
                break
        raise _Launched

    with tempfile.TemporaryDirectory(prefix="kernel-mutant-") as folder:
        simulate.Device.launch = launched
        simulated.run_compiler = _compiler(fault, Path(folder), seen)
        try:
            SUBJECTS[name]()
        except _Launched:
            return {"outcome": "launched", **results}
        except _Same:
            return {"outcome": "the same PTX"}
        finally:
            simulate.Device.launch, simulated.run_compiler = launch, nvrtc.run
    raise AssertionError(f"{name} launches nothing")


class _Same(Exception):
    """The fault changes nothing that the compiler sees."""


def _compiler(fault: Fault | None, folder: Path, seen: dict) -> Callable[[nvrtc.Request], Any]:
    def run_compiler(asked: nvrtc.Request) -> Any:
        compiled = nvrtc.run(_changed(asked, fault, folder))
        seen["source"], seen["ptx"] = asked.source, _digest_of(DEBUG.sub("", compiled.ptx).encode())
        if seen["ptx"] == seen.get("before"):
            raise _Same
        return compiled

    return run_compiler


def _changed(asked: nvrtc.Request, fault: Fault | None, folder: Path) -> nvrtc.Request:
    """With the kernel's source changed; or with the headers of a copy, of which one is changed."""
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
    """Whether ptxas makes the same instructions of both."""
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


# ---- what is kept of it ----


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
    return row["kind"], str(row["places"])


def _digest(memory: Any) -> str:
    return _digest_of(b"".join(segment.bytes.tobytes() for segment in memory if segment.writeable))


def _digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]
