"""A test that runs include/test_kernels.py, the tests of the common parts of tensor-core kernels, on hardware."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CASES = 27  # CASES is the least number of cases.


def test_tests_of_the_simulator_run_on_hardware(device, publish):
    """The test runs in a separate process, because a kernel that hangs never ends."""
    pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/include/test_kernels.py"]
    environment = os.environ | {"CUDA_TMA_TEST_HARDWARE": "1", "CUDA_TMA_RESULTS": "off"}
    asked = [*command, "-k", "sums_arrive or a_product or bands or each_task"]
    ran = subprocess.run(asked, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240)
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert ran.returncode == 0 and passed, ran.stdout + ran.stderr
    assert int(passed[1]) >= CASES, f"{passed[1]} cases ran; a test may have another name: {asked[-1]}"
    publish(
        f"device header, what kernels share: {passed[1]} cases leave what NumPy has (sums rounded and stored in parts "
        "of every shape, a product in roles, tiles in bands, tasks that clusters draw)"
    )
