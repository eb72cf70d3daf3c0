"""The run of a script with the adapters of runtimes, as in ``cuda-tma sanitize``, which records the script's
launches."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from cuda_tma._intercept import adapters
from cuda_tma._intercept.session import Launched, Options, begin
from cuda_tma._intercept.startup.cuda_tma_startup import RUNTIMES, after_import

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """The results of a script, which are its status, its output, its launches and its notes."""

    status: int
    output: str
    errors: str
    launches: list[dict[str, Any]]
    notes: list[str]


class _Sink:
    def __init__(self) -> None:
        self.launches: list[dict[str, Any]] = []
        self.notes: list[str] = []

    def begun(self, launch: Launched) -> None:
        """Receive a launch before it runs."""

    def ended(self, launch: Launched) -> None:
        """Store a launch that has ended."""
        findings = [] if launch.report is None else [_finding(each) for each in launch.report.findings]
        known = {"kernel": launch.kernel, "runtime": launch.runtime, "skipped": launch.skipped}
        self.launches.append({**known, "findings": findings})

    def noted(self, text: str) -> None:
        """Store a note of the session."""
        self.notes.append(text)


def _finding(finding: Any) -> dict[str, Any]:
    places = [[place.file, place.line] for place in finding.source]
    return {"kind": finding.kind, "severity": finding.severity, "message": finding.message, "places": places}


def ran(script: Path, schedules: int = 2, timeout: float = 300, **environment: str) -> Ran:
    """Run a script in a separate process."""
    done = _started([str(script), str(schedules)], timeout, environment)
    return Ran(done.returncode, done.stdout, done.stderr, **_results(script))


def ran_apart(scripts: Sequence[Path], runtime: str) -> list[Ran]:
    """Run each script in a fork of one process that has imported the runtime, because the import is slow."""
    done = _started(["--apart", runtime, *map(str, scripts)], 300, {})
    assert done.returncode == 0, done.stderr
    statuses = json.loads(done.stdout.splitlines()[-1])
    texts = [[script.with_suffix(suffix).read_text() for suffix in (".out", ".err")] for script in scripts]
    return [
        Ran(status, *text, **_results(script)) for status, text, script in zip(statuses, texts, scripts, strict=True)
    ]


def _started(arguments: Sequence[str], timeout: float, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    known = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "tests.support.adapted", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=known, check=False)


def _results(script: Path) -> dict[str, Any]:
    path = script.with_suffix(".results.json")
    return json.loads(path.read_text()) if path.exists() else {"launches": [], "notes": []}


def _with_adapters(schedules: int) -> _Sink:
    sink = _Sink()
    begin(Options(schedules=schedules), sink)
    after_import(RUNTIMES, adapters.loaded)
    return sink


def _run(script: Path, sink: _Sink) -> None:
    try:
        runpy.run_path(str(script), run_name="__main__")
    finally:
        found = {"launches": sink.launches, "notes": sink.notes}
        script.with_suffix(".results.json").write_text(json.dumps(found))


def _run_in_fork(script: Path, sink: _Sink) -> int:
    """Run a script in a fork whose output goes to files, and return its exit status."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        for stream, suffix in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(script.with_suffix(suffix), os.O_WRONLY | os.O_CREAT), stream)
        _run(script, sink)
        status = 0
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def main(arguments: Sequence[str]) -> None:
    """Run a script, or several scripts in forks, and write the launches and notes to a file next to each script."""
    if arguments[0] != "--apart":
        script, schedules = arguments
        _run(Path(script), _with_adapters(int(schedules)))
        return
    _, runtime, *scripts = arguments
    sink = _with_adapters(2)
    import_module(runtime)
    print(json.dumps([_run_in_fork(Path(script), sink) for script in scripts]))


if __name__ == "__main__":
    main(sys.argv[1:])
