"""Programs in C that run below the command, shared by the tests of the driver library and of the runtime."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "cuda_tma" / "_intercept" / "libcuda" / "libcuda.so"

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="a C compiler is needed")


class Ran(NamedTuple):
    """The end of the command: its exit status, its document, and what the program printed."""

    status: int
    launches: list[dict[str, Any]]
    notes: list[str]
    out: str

    @property
    def skipped(self) -> list[tuple[str, str]]:
        return [(each["kernel"], each["skipped"]) for each in self.launches if each["skipped"]]

    @property
    def kinds(self) -> list[str]:
        return [found["kind"] for launch in self.launches for found in launch["findings"]]


def run_program(folder: Path, text: str, library: str, *arguments: str) -> Ran:
    """Compile C, link it with a library by its name, and run it below the command."""
    (folder / "program.c").write_text(text, "utf-8")
    (folder / f"lib{library}.so").symlink_to(LIBRARY)
    subprocess.run(["cc", "program.c", "-L.", f"-l{library}", "-o", "program"], cwd=folder, check=True)
    command = [sys.executable, "-m", "cuda_tma", "sanitize", "--json", "out.json", "--schedules", "2"]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [*command, "--", "./program", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=300,
    )
    answer = json.loads((folder / "out.json").read_text("utf-8"))
    return Ran(done.returncode, answer["launches"], answer["notes"], done.stdout.partition("cuda-tma:")[0])
