"""Runs a script with the adapters, as ``cuda-tma sanitize`` does, and writes its launches."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from cuda_tma._intercept import adapters
from cuda_tma._intercept.session import Launched, Options, begin
from cuda_tma._intercept.startup.cuda_tma_startup import RUNTIMES, after_import

ROOT = Path(__file__).parents[2]


class Ran(NamedTuple):
    """The end of a script: its status and output; each launch as a mapping, and the notes."""

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
        """Keep a launch."""
        findings = [] if launch.report is None else [_finding(each) for each in launch.report.findings]
        known = {"kernel": launch.kernel, "runtime": launch.runtime, "skipped": launch.skipped}
        self.launches.append({**known, "findings": findings})

    def noted(self, text: str) -> None:
        """Keep a note."""
        self.notes.append(text)


def _finding(finding: Any) -> dict[str, Any]:
    places = [[place.file, place.line] for place in finding.source]
    return {"kind": finding.kind, "severity": finding.severity, "message": finding.message, "places": places}


def ran(script: Path, schedules: int = 2, timeout: float = 300, **environment: str) -> Ran:
    """Run a script in a process of its own."""
    results = script.with_suffix(".results.json")
    known = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    command = [sys.executable, "-m", "tests.support.adapted", str(script), str(results), str(schedules)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=known, check=False)
    found = json.loads(results.read_text()) if results.exists() else {"launches": [], "notes": []}
    return Ran(done.returncode, done.stdout, done.stderr, **found)


def main(script: str, results: str, schedules: str) -> None:
    """Run a script; write its launches and notes."""
    sink = _Sink()
    begin(Options(schedules=int(schedules)), sink)
    after_import(RUNTIMES, adapters.loaded)
    try:
        runpy.run_path(script, run_name="__main__")
    finally:
        Path(results).write_text(json.dumps({"launches": sink.launches, "notes": sink.notes}))


if __name__ == "__main__":
    main(*sys.argv[1:])
