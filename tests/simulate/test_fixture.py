"""Tests of the pytest fixture for kernels; a launch with an error fails its test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cuda_tma

pytest_plugins = ["pytester"]

CONFTEST = 'pytest_plugins = ["cuda_tma.simulate.fixture"]'
TEST = '''
import numpy as np
import pytest
from cuda_tma.simulate import Config

FILL = 'extern "C" __global__ void fill(int* out, int n) { if (threadIdx.x < n) out[threadIdx.x] = 7; }'
SUM = """extern "C" __global__ void sum(int* out) {
    __shared__ volatile int tile[32];
    tile[threadIdx.x] += threadIdx.x;
    out[threadIdx.x] = threadIdx.x;
}"""

def fill(gpu, count):
    out = np.zeros(4, np.int32)
    gpu.launch(Config(1, 32), gpu.compile(FILL, "fill"), out, count)
    return out

def add(gpu):
    gpu.launch(Config(1, 32), gpu.compile(SUM, "sum"), np.zeros(32, np.int32))
'''
RACE = """extern "C" __global__ void f(float* out) {
    __shared__ float tile[64];
    tile[threadIdx.x] = 1;
    out[threadIdx.x] = tile[threadIdx.x ^ 32];
}"""
KNOWN = "uninitialized-read:sum.cu:3:zeros do as well"


@pytest.fixture
def run(pytester):
    """Write a test file, run the file with pytest, and return the output."""
    pytester.makeconftest(CONFTEST)

    def run(tests, *options, ini=""):
        pytester.makeini(f"[pytest]\n{ini}")
        pytester.makepyfile(TEST + tests)
        start = pytester.runpytest_subprocess if "-n" in options else pytester.runpytest_inprocess
        # The option hides a warning of pytest, because another test of the process may already have imported the
        # fixture.
        return start("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning", *options)

    return run


def test_launches_by_every_function_are_checked(run):
    """The pytest fixture also checks a sequence of launches that may overlap."""
    result = run(
        """
RACE = """
        + repr(RACE)
        + """

@pytest.mark.parametrize("is_dependent", [(False,), (True,), (False, True), (False, True, True)])
def test_row(simulated_gpu, is_dependent):
    kernel = simulated_gpu.compile(RACE, "f")
    configs = [Config(1, 64, programmatic_stream_serialization=each) for each in is_dependent]
    launches = [(config, kernel, np.zeros(64, np.float32)) for config in configs]
    simulated_gpu.launch_all(launches)
"""
    )
    result.assert_outcomes(failed=4)


def test_errors_fail_the_test(run):
    result = run("""
def test_right(simulated_gpu):
    assert fill(simulated_gpu, 4).tolist() == [7] * 4

def test_wrong(simulated_gpu):
    fill(simulated_gpu, 5)

@pytest.fixture
def gpu(simulated_gpu):
    return simulated_gpu

def test_wrong_by_way_of_another_fixture(gpu):
    fill(gpu, 5)

def test_expected(simulated_gpu):
    fill(simulated_gpu, 5)
    assert [each.kind for each in simulated_gpu.reports[0].errors] == ["out-of-bounds"]
    simulated_gpu.reports.clear()
""")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.re_match_lines([r".*fill.cu:1: error: a write of 4 bytes .*\[out-of-bounds\]"])


def test_launches_in_the_teardown_of_another_fixture_are_checked(run):
    """A wrong launch in the teardown of another fixture is an error of the teardown. The fixture checks each launch of
    a test once."""
    result = run("""
@pytest.fixture
def wrong_after(simulated_gpu):
    yield
    fill(simulated_gpu, 5)

@pytest.fixture
def right_after(simulated_gpu):
    yield
    fill(simulated_gpu, 4)

@pytest.fixture
def cleared_after(simulated_gpu):
    yield
    fill(simulated_gpu, 5)
    simulated_gpu.reports.clear()

kept = []

@pytest.fixture
def wrong_last():
    yield
    fill(kept[0], 5)

def test_wrong_after(wrong_after): pass
def test_right_after(right_after): pass
def test_cleared_after(cleared_after): pass
def test_wrong_last(wrong_last, simulated_gpu): kept.append(simulated_gpu)
def test_wrong_and_right_after(right_after, simulated_gpu): fill(simulated_gpu, 5)
""")
    result.assert_outcomes(passed=4, failed=1, errors=2)
    result.stdout.re_match_lines(
        ["_+ ERROR at teardown of test_wrong_after _+", r".*fill.cu:1: error: a write of 4 bytes .*"]
    )


def test_a_test_that_skips_after_an_error_fails(run):
    result = run("""
import unittest

def test_skips(simulated_gpu):
    fill(simulated_gpu, 5)
    pytest.skip("no need")

def test_skips_otherwise(simulated_gpu):
    fill(simulated_gpu, 5)
    raise unittest.SkipTest("no need")

def test_skips_before(simulated_gpu):
    fill(simulated_gpu, 4)
    pytest.skip("right so far")

@pytest.fixture
def skips(simulated_gpu):
    fill(simulated_gpu, 5)
    pytest.skip("in the setup")

def test_skipped_in_the_setup(skips): pass

@pytest.mark.xfail(strict=True)
def test_expected(simulated_gpu):
    fill(simulated_gpu, 5)
""")
    result.assert_outcomes(failed=2, skipped=2, errors=1, xfailed=1)
    result.stdout.re_match_lines([r".*fill.cu:1: error: a write of 4 bytes .*", "the test skips after that: no need"])


def test_advice_of_a_launch_in_a_teardown_is_a_warning(run):
    result = run("""
@pytest.fixture
def after(simulated_gpu):
    yield
    add(simulated_gpu)

def test_reported(after): pass
""")
    result.assert_outcomes(passed=1, warnings=1)


def test_another_failure_also_prints_the_errors_of_kernels(run):
    result = run("""
def test_wrong(simulated_gpu):
    assert fill(simulated_gpu, 5).tolist() == [8] * 4
""")
    result.assert_outcomes(failed=1)
    result.stdout.re_match_lines([".*kernels on the simulated GPU.*", r".*fill.cu:1: error: a write of 4 bytes .*"])


def test_advice_is_a_warning_unless_it_is_not_wanted(run):
    result = run(
        """
def test_reported(simulated_gpu):
    add(simulated_gpu)

@pytest.mark.simulated_gpu(advice=False)
def test_unreported(simulated_gpu):
    add(simulated_gpu)
""",
        "--strict-markers",
    )
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.re_match_lines([r".*SimulatedGpuWarning: .*sum.cu:3: advice: thread 0 .*"])


def test_marks_take_the_devices_arguments(run):
    result = run("""
pytestmark = pytest.mark.simulated_gpu(schedules=3, compute_capability="10.0", strict=True)

@pytest.mark.simulated_gpu(schedules=2)
def test_settings(simulated_gpu):
    assert (simulated_gpu.schedules, simulated_gpu.strict, simulated_gpu.target) == (2, True, "compute_100a")
    fill(simulated_gpu, 4)
    assert len(simulated_gpu.reports[0].schedules) == 2

@pytest.mark.simulated_gpu(4)
def test_no_keyword(simulated_gpu):
    pass
""")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.re_match_lines([".*the mark simulated_gpu takes only keywords, not \\(4,\\)"])


def test_suppressions_are_a_sequence(run):
    result = run("""
@pytest.mark.simulated_gpu(suppressions="race:f.cu:1:fine")
def test_text(simulated_gpu): pass
""")
    result.assert_outcomes(errors=1)
    result.stdout.re_match_lines([r".*suppressions is 'race:f.cu:1:fine'; pass a sequence of Suppression or of text"])


def test_suppressions_need_a_reason_and_something_to_cover(run):
    result = run(f"""
@pytest.mark.simulated_gpu(suppressions=["{KNOWN}"])
def test_covered(simulated_gpu):
    add(simulated_gpu)

@pytest.mark.simulated_gpu(suppressions=["{KNOWN}"])
def test_nothing_to_cover(simulated_gpu):
    fill(simulated_gpu, 4)

@pytest.mark.simulated_gpu(suppressions=["race:*: "])
def test_no_reason(simulated_gpu):
    pass
""")
    result.assert_outcomes(passed=2, errors=1, warnings=1)
    result.stdout.re_match_lines(
        [".*the suppression of race at .* has no reason", ".*unused suppression: Suppression.kind='uninit.*"]
    )


@pytest.mark.parametrize("processes", [(), ("-n", "1")])
def test_suppressions_for_all_tests_are_reported_if_none_needs_them(run, pytester, monkeypatch, processes):
    monkeypatch.setenv("PYTHONPATH", str(Path(cuda_tma.__file__).parent.parent))
    pytester.path.joinpath("known.txt").write_text(f"# all tests\n{KNOWN}\nrace:old.cu:4:it was an estimate\n")
    result = run(
        """
def test_one(simulated_gpu):
    add(simulated_gpu)

def test_two(simulated_gpu):
    fill(simulated_gpu, 4)
""",
        *processes,
        ini="simulated_gpu_suppressions = known.txt",
    )
    result.assert_outcomes(passed=2)
    lines = result.stdout.str()
    assert re.search(r"these tests did not use =*\nrace:old.cu:4:it was an estimate\n", lines)
    assert f"\n{KNOWN}\n" not in lines


def test_a_file_of_suppressions_that_is_wrong_is_named(run, pytester):
    pytester.path.joinpath("known.txt").write_text("rase:*:why\n")
    result = run("def test_one(simulated_gpu): pass", ini="simulated_gpu_suppressions = known.txt")
    assert "known.txt:1: kind='rase'; pass one of" in result.stdout.str()
