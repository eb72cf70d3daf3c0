"""The functions that run programs under the command, for the tests of the driver library, the runtime and scripts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.forked import run_forked

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "cuda_tma" / "_intercept" / "libcuda" / "libcuda.so"

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is needed")


class Ran(NamedTuple):
    """The results of a run of the command, which are its exit status, its document and its output.

    Attributes
    ----------
    status : int
    launches : list of dict
        The launches, and the wrong calls of the program. Leaks are separate, because few of these programs free their
        memory.
    leaks : list of dict
        The findings.
    notes : list of str
    out, err : str
        The output of the program and of the command.
    """

    status: int
    launches: list[dict[str, Any]]
    leaks: list[dict[str, Any]]
    notes: list[str]
    out: str
    err: str

    @property
    def printed(self) -> str:
        """Return the output of a program whose last line has no newline."""
        return re.split(r"cuda-tma:|(?:error|advice)\[", self.out)[0]

    @property
    def skipped(self) -> list[tuple[str, str]]:
        return [(each["kernel"], each["skipped"]) for each in self.launches if each["skipped"]]

    @property
    def findings(self) -> list[dict[str, Any]]:
        return [found for launch in self.launches for found in launch["findings"]]

    @property
    def kinds(self) -> list[str]:
        return [found["kind"] for found in self.findings]


def run_below(folder: Path, *command: str, schedules: int = 2) -> Ran:
    """Run ``cuda-tma sanitize`` in a folder, with a given command as the checked program."""
    options = ["--json", "out.json", "--schedules", str(schedules)]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": paths}
    done = run_forked("sanitize", *options, "--", *command, folder=folder, environment=environment, seconds=600)
    answer = json.loads((folder / "out.json").read_text("utf-8"))
    launches, leaks = [], []
    for launch in answer["launches"]:
        found = [each for each in launch["findings"] if each["kind"] == "leak"]
        leaks += found
        launches += [] if found else [launch]
    return Ran(done.returncode, launches, leaks, answer["notes"], done.stdout, done.stderr)


def run_program(folder: Path, text: str, library: str, *arguments: str) -> Ran:
    """Compile a C program, link it with the named library, and run it under the command."""
    (folder / "program.c").write_text(text, "utf-8")
    (folder / f"lib{library}.so").symlink_to(LIBRARY)
    subprocess.run(["cc", "program.c", "-L.", f"-l{library}", "-o", "program"], cwd=folder, check=True)
    return run_below(folder, "./program", *arguments)
