"""A test of eight threads that concurrently create and change tensor maps, launch kernels, and capture graphs."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "evaluation" / "threads" / "stress_threads.py"


def test_threads_at_once_leave_no_wrong_tile(device, publish):
    pytest.importorskip("torch")
    command = [sys.executable, str(TOOL), "--minutes", "0.15", "--alone", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "no wrong tile" in done.stdout, done.stdout + done.stderr
    works = re.search(r"8 threads, \d+ s, Python [\d.]+: (\d+) works", done.stdout)
    assert works is not None and int(works[1]) > 1000, done.stdout
    publish(f"8 threads at once: {works[1]} works, no wrong tile, no growth but that of others")
