"""Planted hangs on hardware: each explained soon after its deadline in the simulator's words, and the process lives."""

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


def children(numbers: list[int], timeout: float) -> dict[int, dict]:
    """What processes told of hangs: one process, and another for the rest where one died."""
    told: dict[int, dict] = {}
    while left := [number for number in numbers if number not in told]:
        command = [sys.executable, "-m", "tests.gpu.hang_child", *map(str, left)]
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
        found = {answer["number"]: answer for answer in map(json.loads, output.splitlines())}
        told |= found or {left[0]: {"kind": "died", "text": errors[-2000:], "seconds": 0.0, "written": []}}
    return told


@cache
def told() -> dict[int, dict]:
    that_end = [number for number, planted in enumerate(PLANTED) if planted.ends == "hang"]
    others = [number for number in range(len(PLANTED)) if number not in that_end]
    answers = children(that_end, 60)
    for number in others:
        answers |= children([number], 30)
    if folder := os.environ.get("CUDA_TMA_HANGS"):
        Path(folder).write_text(json.dumps(answers, indent=1))
    return answers


@pytest.mark.parametrize("number", range(len(PLANTED)), ids=[planted.name for planted in PLANTED])
def test_a_hang_is_explained(device, number):
    planted, answer = PLANTED[number], told()[number]
    text = answer["text"]
    if planted.ends == "fault":
        assert answer["kind"] == "CUDAError" and "CUDA_ERROR_ILLEGAL_INSTRUCTION" in text, text
        return
    assert answer["kind"] == "KernelHang", text
    for line in planted.report:
        assert f"  {line}\n" in text, text
    assert f"\nprobable cause: {planted.cause}" in text, text
    assert ("the kernel still runs" in text) == (planted.ends == "never"), text
    assert answer["seconds"] < WATCHDOG_SECONDS + 2
    if planted.ends == "hang":
        assert answer["launches"] and answer["written"] == [1] * planted.cluster


def test_the_record_says_how_soon(device, publish):
    ended = [told()[number] for number, planted in enumerate(PLANTED) if planted.ends == "hang"]
    assert len(ended) == 11 and all(answer.get("launches") for answer in ended)
    longest = max(answer["seconds"] for answer in told().values())
    publish(
        f"watchdog: {len(PLANTED)} planted hangs, each told by place, barrier and counts at most {longest:.2f} s after "
        f"the launch (deadline {WATCHDOG_SECONDS} s); after {len(ended)} of them the process launched again"
    )
