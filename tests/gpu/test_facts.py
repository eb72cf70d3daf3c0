"""A test of hardware facts for the simulator's models, each in a separate process."""

import subprocess
import sys
from pathlib import Path

import pytest

from .fact_kernels import FACTS

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.parametrize("name", FACTS)
def test_a_fact(name):
    command = [sys.executable, "-m", "tests.gpu.fact_kernels", name]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    fact = FACTS[name]
    if fact.error:
        assert fact.error in done.stdout
    else:
        assert done.stdout.strip() == str([*fact.first])
