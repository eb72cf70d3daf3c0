"""Tests of kernels that hang on hardware. After the deadline, the report equals the simulator's report, and the process
continues."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from .planted_hangs import PLANTED

ROOT = Path(__file__).parents[2]
WATCHDOG_SECONDS = 0.2
SHORT, RING = PLANTED[0], PLANTED[9]
ENDING = [str(number) for number, planted in enumerate(PLANTED) if planted.ends == "hang"]
OTHERS = [str(number) for number, planted in enumerate(PLANTED) if planted.ends != "hang"]
LIVING = ["by_torch", "in_a_graph", "two_at_once", "one_kernel_twice", "built_elsewhere"]


def children(cases: list[str], timeout: float) -> dict[str, dict]:
    """Return the reports of processes with hangs. If a process dies, a second process runs the remaining hangs."""
    told: dict[str, dict] = {}
    while left := [case for case in cases if case not in told]:
        command = [sys.executable, "-m", "tests.gpu.hang_child", *left]
        environment = os.environ | {"CUDA_TMA_RESULTS": "off"}
        child = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            output, errors = child.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            child.kill()
            output, errors = child.communicate()
            errors += f"\nno end after {timeout} s"
        found = {answer["case"]: answer for answer in map(json.loads, output.splitlines())}
        told |= found
        if len(found) < len(left):
            dead = next(case for case in left if case not in told)
            told[dead] = {"kind": "died", "text": errors[-2000:], "seconds": 0.0, "before": {}, "written": []}
    return told


@cache
def told() -> dict[str, dict]:
    answers = children(ENDING, 60) | children(LIVING, 60)
    for case in (*OTHERS, "trapped"):
        answers |= children([case], 30)
    if file := os.environ.get("CUDA_TMA_HANGS"):
        Path(file).write_text(json.dumps(answers, indent=1))
    return answers


def assert_told(text: str, planted) -> None:
    for line in planted.report:
        assert f"  {line}\n" in text, text
    assert f"\nprobable cause: {planted.cause}" in text, text


@pytest.mark.parametrize("number", range(len(PLANTED)), ids=[planted.name for planted in PLANTED])
def test_a_hang_is_explained(device, number):
    planted, answer = PLANTED[number], told()[str(number)]
    text = answer["text"]
    if planted.ends == "fault":
        assert answer["kind"] == "CUDAError" and "CUDA_ERROR_ILLEGAL_INSTRUCTION" in text, text
        return
    assert answer["kind"] == "KernelHang", text
    assert_told(text, planted)
    assert ("the kernel is still running" in text) == (planted.ends == "never"), text
    assert answer["seconds"] < WATCHDOG_SECONDS + 2
    if planted.ends == "hang":
        assert answer["launches"] and answer["written"] == [1] * planted.cluster


def test_torch_waits_and_the_report_waits_too(device):
    answer = told()["by_torch"]
    assert answer["before"]["kind"] == "" and answer["before"]["seconds"] < WATCHDOG_SECONDS + 2
    assert answer["kind"] == "KernelHang" and answer["launches"] and answer["written"] == [1], answer
    assert_told(answer["text"], SHORT)


def test_a_graph_reports_each_launch(device):
    answer = told()["in_a_graph"]
    for each in (answer["before"], answer):
        assert each["kind"] == "KernelHang" and each["seconds"] < WATCHDOG_SECONDS + 2, answer
        assert_told(each["text"], SHORT)
        assert each["text"].count("can go on") == 1
    assert answer["launches"]


def test_two_kernels_in_flight_are_two_hangs(device):
    """The test waits for two hanging kernels in both orders, while a third kernel, which is right, runs at the same
    time."""
    answer = told()["two_at_once"]
    text = answer["before"].get("text", "") + "\n" + answer["text"]
    assert answer["before"]["kind"] == "KernelHang" and text.count("can go on") == 2, text
    assert_told(text, SHORT)
    assert_told(text, RING)
    assert answer["written"] == list(range(64)) and answer["launches"]


def test_two_launches_of_a_kernel_are_two_hangs(device):
    answer = told()["one_kernel_twice"]
    text = answer["before"].get("text", "") + "\n" + answer["text"]
    assert text.count("can go on") == text.count(SHORT.report[0]) == 2, text
    assert answer["launches"]


def test_a_kernel_of_another_compiler(device):
    """For a kernel of another compiler, Python does not have the source, so the report contains line numbers without
    names."""
    answer = told()["built_elsewhere"]
    line = SHORT.report[0].split(" for `full`")[0].rpartition(":")[2]
    assert answer["kind"] == "KernelHang" and answer["launches"], answer
    assert f":{line} for the mbarrier at 0x" in answer["text"], answer["text"]
    assert "8,192 of 16,384 bytes are missing" in answer["text"]


def test_trap_on_request_loses_the_context_and_not_the_report(device):
    answer = told()["trapped"]
    assert answer["kind"] == "KernelHang" and "the context is lost: CUDA_ERROR_" in answer["text"], answer
    assert_told(answer["text"], SHORT)


def test_the_record_contains_the_times(device, publish):
    ended = [told()[case] for case in ENDING]
    assert len(ended) == 11 and all(answer.get("launches") for answer in ended)
    longest = max(answer["seconds"] for answer in told().values())
    publish(
        f"watchdog: {len(PLANTED)} planted hangs, each reported with place and counts at most {longest:.2f} s after "
        f"the launch (deadline {WATCHDOG_SECONDS} s); after {len(ended)} of them the process launched again; the same "
        "under torch.cuda.synchronize(), in a CUDA graph, with two kernels in flight"
    )
