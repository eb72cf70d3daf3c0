"""Scripts of other runtimes on the driver library: right ones have no error, wrong ones have it at the marked line.

A runtime that is not installed is left out; ``make test-environments`` installs each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).with_name("scripts")
ROOT = Path(__file__).parents[3]
MODULES = {"numba": "numba_cuda", "cupy": "cupy", "cute": "cutlass"}  # the modules that each folder needs


def names(pattern: str) -> list[str]:
    return [f"{path.parent.name}/{path.name}" for path in sorted(SCRIPTS.glob(f"*/{pattern}"))]


def judged(name: str, folder: Path, *options: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run a script below the command; return the status, the launches, and what is on standard error."""
    pytest.importorskip(MODULES[name.partition("/")[0]])
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "cuda_tma", "sanitize", "--schedules", "4", "--json", "out.json", *options]
    done = subprocess.run(
        [*command, "--", "python", str(SCRIPTS / name)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    return done.returncode, json.loads((folder / "out.json").read_text("utf-8"))["launches"], done.stderr


@pytest.mark.parametrize("name", names("right*.py"))
def test_right(name, tmp_path):
    status, launches, errors = judged(name, tmp_path)
    assert status == 0, errors
    assert launches and not any(launch["skipped"] for launch in launches)
    assert not [found for launch in launches for found in launch["findings"] if found["severity"] == "error"]


@pytest.mark.parametrize("name", names("wrong*.py"))
def test_wrong(name, tmp_path):
    status, launches, errors = judged(name, tmp_path)
    assert status == 1, errors
    lines = (SCRIPTS / name).read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# wrong" in line or "// wrong" in line}
    errors_found = [each for launch in launches for each in launch["findings"] if each["severity"] == "error"]
    places = [place["source"] for each in errors_found for place in (each, *each["related"]) if place["source"]]
    found = {(Path(place["file"]).name, place["line"]) for place in places}
    assert {(Path(name).name, line) for line in marked} & found, found
