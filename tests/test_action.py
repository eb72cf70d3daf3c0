"""Tests of the steps of the GitHub action in a shell. The action fails at a wrong kernel, and passes after the fix."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
PROGRAM = '''
import numpy as np
from cuda_tma import LaunchConfig, simulate

SOURCE = """extern "C" __global__ void shift(int* out) {
    __shared__ int row[64];
    row[threadIdx.x] = threadIdx.x;BARRIER
    out[threadIdx.x] = row[63 - threadIdx.x];MORE
}"""
gpu = simulate.Device()
gpu.launch(LaunchConfig(grid=1, block=64), gpu.compile(SOURCE, "shift"), np.zeros(64, np.int32))
'''
WRONG = PROGRAM.replace("BARRIER", "").replace("MORE", "")
FIXED = PROGRAM.replace("BARRIER", " __syncthreads();").replace("MORE", "")
WRONG_TWICE = PROGRAM.replace("BARRIER", "").replace("MORE", "\n    out[0] = threadIdx.x;")
LINE = 1 + WRONG.splitlines().index("    out[threadIdx.x] = row[63 - threadIdx.x];")


@pytest.fixture
def judge(tmp_path):
    """Return a function that runs the step of the GitHub action on a project, and returns the exit status and the lines
    of findings."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    tool = binaries / "cuda-tma"
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m cuda_tma "$@"\n')
    tool.chmod(0o755)
    step = ACTION["runs"]["steps"][-1]

    def judge(program: str, baseline: str = "", sarif: str = "out.sarif") -> tuple[int, list[int]]:
        (tmp_path / "run.py").write_text(program)
        inputs = {name: str(each.get("default", "")) for name, each in ACTION["inputs"].items()}
        inputs |= {"command": f'"{sys.executable}" run.py', "baseline": baseline, "sarif": sarif}
        given = {name: inputs[value[len("${{ inputs.") : -len(" }}")]] for name, value in step["env"].items()}
        path = f"{binaries}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, **given, "PATH": path, "PYTHONPATH": str(ROOT)}
        ended = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environment, capture_output=True)
        (run,) = json.loads((tmp_path / sarif).read_text("utf-8"))["runs"]
        places = [result["locations"][0]["physicalLocation"]["region"]["startLine"] for result in run["results"]]
        return ended.returncode, places

    return judge


@pytest.mark.skipif(shutil.which("bash") is None, reason="a step of the action runs in bash")
def test_the_step_fails_at_the_line_passes_after_the_fix_and_reports_only_new_findings(judge):
    assert judge(WRONG, sarif="known.sarif") == (1, [LINE])
    assert judge(FIXED) == (0, [])
    assert judge(WRONG, baseline="known.sarif") == (0, [])
    status, lines = judge(WRONG_TWICE, baseline="known.sarif")
    assert (status, {*lines}) == (1, {LINE + 1})


def test_the_steps_use_no_input_in_a_script():
    """The steps of the action read inputs from the environment, so that a shell does not execute the text of an
    input."""
    assert [step["run"] for step in ACTION["runs"]["steps"] if "${{" in step["run"]] == []


def test_the_page_names_each_input_with_its_default():
    page = (ROOT / "docs" / "how-to" / "sanitize-in-ci.md").read_text("utf-8")
    for name, each in ACTION["inputs"].items():
        (row,) = [line for line in page.splitlines() if line.startswith(f"| `{name}` |")]
        default = each.get("default", "")
        assert name == "package" or row.endswith(f"| `{default}` |" if default else "| |")
