"""Tests of ``pytest --cuda-tma``, in which exactly the tests with wrong kernels fail."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest

TESTS = Path(__file__).parent
SUITE = """
import numpy as np
import pytest
from fake_runtime import UNSUPPORTED, launch, right, wrong

@pytest.mark.parametrize("number", range(12))
def test_right(number):
    assert right().sum() == 64

@pytest.mark.parametrize("number", range(3))
def test_wrong(number):
    wrong()

@pytest.fixture
def launching():
    wrong()

def test_findings_of_a_fixture(launching):
    pass

@pytest.mark.cuda_tma(expected="race")
def test_expected():
    wrong()

@pytest.mark.cuda_tma(expected=["race", "deadlock"])
def test_expected_errors_that_do_not_occur():
    wrong()

def test_without_launches():
    pass

def test_that_fails_itself():
    wrong()
    assert 1 == 2
"""
RIGHT = {f"test_right[{number}]" for number in range(12)} | {"test_expected", "test_without_launches"}


@pytest.fixture
def suite(tmp_path, monkeypatch):
    """Return a function that runs pytest on a suite, and returns the exit status, the output, and each test's
    outcome."""
    packages = tmp_path / "site-packages"
    packages.mkdir()
    copy(TESTS / "support" / "fake_runtime.py", packages)
    paths = [str(packages), str(TESTS.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)

    def suite(text, *options):
        (tmp_path / "test_suite.py").write_text(text)
        command = [sys.executable, "-m", "pytest", "-p", "pytest_cuda_tma", "-p", "no:cacheprovider", "-rA", "-q"]
        done = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, check=False)
        found = re.findall(r"^(PASSED|FAILED|ERROR) test_suite\.py::(\S+)", done.stdout, re.MULTILINE)
        return done.returncode, done.stdout + done.stderr, {name: outcome for outcome, name in found}

    return suite


@pytest.mark.parametrize("options", [[], ["-n", "2"]])
def test_exactly_the_wrong_tests_fail(suite, tmp_path, options):
    if options:
        pytest.importorskip("xdist")
    status, output, found = suite(
        SUITE, "--cuda-tma", "--cuda-tma-schedules", "2", "--cuda-tma-json", "o.json", *options
    )
    assert status == 1
    assert {name for name, outcome in found.items() if outcome == "PASSED"} == RIGHT
    wrong = {f"test_wrong[{number}]": "FAILED" for number in range(3)}
    wrong |= {
        "test_findings_of_a_fixture": "ERROR",
        "test_expected_errors_that_do_not_occur": "FAILED",
        "test_that_fails_itself": "FAILED",
    }
    assert {name: outcome for name, outcome in found.items() if outcome != "PASSED"} == wrong
    assert "error: thread 0 (warp 0) and 63 other threads read 256 bytes at `tile`" in output and "[race]" in output
    assert "no kernel of this test has the expected error: deadlock" in output
    assert "kernels on the simulated GPU" in output and "assert 1 == 2" in output
    assert "19 launches judged under 2 schedules, 1 error; " in output
    answer = json.loads((tmp_path / "o.json").read_text())
    assert (len(answer["launches"]), answer["status"], answer["program_status"]) == (19, 1, 1)
    assert {launch["launched_at"]["line"] for launch in answer["launches"]} == {8, 12, 16, 23, 27, 33}


def test_without_the_option_nothing_is_intercepted(suite):
    text = "import sys\ndef test_it():\n    assert not any(name.startswith('cuda_tma') for name in sys.modules)\n"
    assert suite(text)[0] == 0


def test_an_unchecked_launch_fails_if_all_must_be_checked(suite):
    text = "from cuda_tma._intercept.session import current\ndef test_it(): current().skip('k', 'no PTX is known')\n"
    status, output, _ = suite(text, "--cuda-tma")
    assert status == 0 and "0 launches judged, 1 skipped (no PTX is known); " in output
    status, output, _ = suite(text, "--cuda-tma", "--cuda-tma-require-judged")
    assert status == 1 and "k was not judged: no PTX is known" in output


def test_suppressions(suite, tmp_path):
    (tmp_path / "known").write_text("race:*:planted\ndeadlock:*:old\n")
    text = "from fake_runtime import wrong\ndef test_it(): wrong()\n"
    status, output, _ = suite(text, "--cuda-tma", "--cuda-tma-suppressions", "known")
    assert status == 0 and "unused suppression: deadlock:*:old\n" in output


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--cuda-tma-schedules", "0"], "schedules=0; pass 1 to 1000"),
        (["--cuda-tma-schedules", "x"], "invalid literal"),
        (["--cuda-tma-compute-capability", "8.0"], "has no TMA"),
        (["--cuda-tma-suppressions", "absent"], "absent cannot be read"),
        (["--cuda-tma-json", "absent/o.json"], "there is no such folder"),
    ],
)
def test_misuse(suite, options, text):
    status, output, _ = suite("def test_it(): pass", "--cuda-tma", *options)
    assert status == 4 and text in output and "Traceback" not in output


def test_an_unknown_kind_is_misuse(suite):
    text = "import pytest\n@pytest.mark.cuda_tma(expected='rase')\ndef test_it(): pass\n"
    _, output, found = suite(text, "--cuda-tma")
    assert (
        "cuda_tma(expected='rase') names an unknown kind; use one of race, " in output
        and found.get("test_it") != "PASSED"
    )
