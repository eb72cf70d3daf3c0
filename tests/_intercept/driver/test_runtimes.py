"""Tests of other runtimes on the driver library. A right script has no error, and a wrong script has an error at its
marked line.

The tests skip a runtime that is not installed. ``make test-environments`` installs each runtime, and runs the
programs of nvcc.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests._intercept._programs import Ran, run_below

SCRIPTS = Path(__file__).with_name("scripts")
# The table contains the modules that the scripts of each folder need.
MODULES = {
    "numba": "numba_cuda",
    "cupy": "cupy",
    "cute": "cutlass",
    "core": "cuda.core",
    "bindings": "cuda.bindings",
}


def names(pattern: str) -> list[object]:
    found = [f"{path.parent.name}/{path.name}" for path in sorted(SCRIPTS.glob(f"*/{pattern}"))]
    return [pytest.param(name, marks=pytest.mark.slow) if name.endswith(".cu") else name for name in found]


def judged(name: str, folder: Path) -> Ran:
    """Run a Python script, or a program that nvcc compiled, under ``cuda-tma sanitize``."""
    runtime, _, file = name.partition("/")
    if runtime == "cpp":
        shutil.copy(SCRIPTS / name, folder)
        return run_below(folder, built(file, folder), schedules=4)
    pytest.importorskip(MODULES[runtime])
    return run_below(folder, "python", str(SCRIPTS / name), schedules=4)


def built(file: str, folder: Path) -> str:
    """Build a program with nvcc's usual options, and return its path."""
    if shutil.which("nvcc") is None:
        pytest.skip("there is no nvcc")
    options = ("-std=c++17", "-arch=sm_90a", "-lineinfo", "-cudart", "shared", "-w")
    subprocess.run(["nvcc", *options, file, "-o", "program"], cwd=folder, check=True)
    return str(folder / "program")


@pytest.mark.parametrize("name", names("right*"))
def test_right(name, tmp_path):
    ran = judged(name, tmp_path)
    assert ran.status == 0, ran.err
    assert ran.launches and not ran.skipped and not ran.leaks
    assert not [found for found in ran.findings if found["severity"] == "error"]


@pytest.mark.parametrize("name", names("wrong*"))
def test_wrong(name, tmp_path):
    ran = judged(name, tmp_path)
    assert ran.status == 1, ran.err
    lines = (SCRIPTS / name).read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if "# wrong" in line or "// wrong" in line}
    errors_found = [each for each in ran.findings if each["severity"] == "error"]
    places = [place for each in errors_found for place in (each, *each["related"]) if place["source"]]
    calls = [call for place in places for call in (place["source"], *place["inlined"])]
    found = {(Path(call["file"]).name, call["line"]) for call in calls}
    assert {(Path(name).name, line) for line in marked} & found, found
