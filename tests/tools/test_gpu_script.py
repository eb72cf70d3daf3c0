"""Tests of the commands that tools/gpu.sh executes, with stand-ins for the parts of a GPU machine."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = """#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in
*pip*) ;;
*pytest*) echo "7 passed in 1s"; case "$CUDA_TMA_RESULTS" in *.json) echo >"$CUDA_TMA_RESULTS" ;; esac ;;
*gemm.py*) echo "AssertionError: off by 3"; exit 1 ;;
*) echo "ok: 5 cases" ;;
esac
"""
SANITIZER = """#!/bin/sh
echo "sanitizer $*" >>"$LOG"
while [ "$1" != python3 ]; do shift; done
"$@"; status=$?
echo "========= ERROR SUMMARY: 0 errors"
exit $status
"""


@pytest.fixture
def script(tmp_path):
    """Return a function that runs tools/gpu.sh, and returns the exit status, the executed commands, and the text of
    RESULTS.md."""
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    for name, text in (("python3", PYTHON), ("compute-sanitizer", SANITIZER)):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(recorded="abc", **environment):
        out, log = tmp_path / "out", tmp_path / "log"
        out.mkdir()
        (out / "RESULTS.md").write_text(f"# Results\n\n- commit: {recorded}\n")
        search = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        stand_ins = {"PATH": search, "LOG": str(log), "CUDA_TMA_COMMIT": "abc", "CUDA_TMA_SITE": str(tmp_path / "site")}
        (tmp_path / "site").mkdir()
        ended = subprocess.run(
            ["bash", str(ROOT / "tools" / "gpu.sh"), str(out), "-k", "one"],
            env=os.environ | stand_ins | environment,
            capture_output=True,
            text=True,
        )
        _, *commands = log.read_text().splitlines()
        return ended.returncode, commands, (out / "RESULTS.md").read_text().splitlines()[3:]

    return run


def test_stages_are_chosen(script):
    status, commands, added = script(CUDA_TMA_STAGES="tests bench", CUDA_TMA_BENCH="kernels --runs 5")
    assert (status, added) == (0, [])
    *parts, written, timed = commands
    assert all(part.startswith("-m pytest tests/gpu/test_") and "-k one" in part for part in parts)
    files = [word for part in parts for word in part.split() if word.startswith("tests/gpu/")]
    assert sorted(files) == sorted(f"tests/gpu/{path.name}" for path in (ROOT / "tests" / "gpu").glob("test_*.py"))
    # The test of the torch operator runs after the other tests, in a separate process.
    assert parts[-1].startswith("-m pytest tests/gpu/test_torch_operator.py -k one")
    assert len(parts) == 5 == written.count(".json") and written.startswith("-m tests.gpu.results write ")
    assert timed.startswith("-m benchmarks kernels --runs 5 --output ")


def test_the_sanitizer_runs_over_tests_and_examples(script):
    status, commands, added = script(CUDA_TMA_STAGES="sanitize", CUDA_TMA_TOOLS="memcheck synccheck")
    # The script returns the exit status of the example gemm.
    assert status == 1
    run = [command for command in commands if not command.startswith("sanitizer")]
    assert (
        len(run)
        == len(added)
        == 2 * (1 + len([p for p in (ROOT / "examples").glob("*.py") if 'TARGETS = ("sm_90' in p.read_text()]))
    )
    assert (
        "examples/gemm.py --small" in run and "examples/tiled_load.py" in run and "examples/explain_sm120.py" not in run
    )
    assert not any("gemm_sm100" in command for command in run)
    options = {command.split(" python3 ")[0] for command in commands if command.startswith("sanitizer")}
    assert len(options) == 2 and sum("--report-api-errors no" in some for some in options) == 1
    assert "- compute-sanitizer synccheck of header-and-im2col: 7 passed in 1s;  ERROR SUMMARY: 0 errors" in added
    assert "- compute-sanitizer memcheck of copy_2d: ok: 5 cases;  ERROR SUMMARY: 0 errors" in added
    assert "- compute-sanitizer memcheck of gemm: memcheck of gemm ended with 1;  ERROR SUMMARY: 0 errors" in added


def test_another_commits_record_stays_unchanged(script):
    _, commands, added = script(recorded="def", CUDA_TMA_STAGES="sanitize", CUDA_TMA_TOOLS="memcheck")
    assert len(commands) > 10 and added == []
