"""Tests of launches that ``--on-gpu`` checks, compares, skips and records. The command's driver library replaces the
GPU."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from cuda_tma._command import cli
from tests._intercept.libcuda.conftest import BEGINNING
from tests.support.forked import run_forked

ROOT = Path(__file__).parents[3]
SCRIPT = """
import struct
from cuda_tma._intercept.driver.machine_code import keep

begin()
values = np.arange(64, dtype=np.uint32)
address, other, third = array(values), array(values), array(values)
_, scale = loaded()
for _ in range(3):
    launch(scale, 64, address)
launch(scale, 32, address)
launch(scale, 96, other)
assert read(address, values)[63] == 63 * 5**3


def code_of(fill, ptx):
    code = bytearray(b"\x7fELF" + bytes(508))
    code[100:500] = bytes([fill]) * 400
    struct.pack_into("<Q", code, 0x28, 512)
    keep(bytes(code), ptx.decode())
    return bytes(code)


unknown = PTX.replace(b"scale", b"unknown")
_, function = loaded(b"unknown", code_of(1, unknown))
for _ in range(4):
    launch(function, 64, third)
# A kernel that reaches memory by a pointer in memory, at an offset.
INDIRECT = b'''.version 8.0
.target sm_90
.address_size 64
.visible .entry indirect(.param .u64 table) {
    .reg .b64 %rd<3>; .reg .b32 %r<2>;
    ld.param.u64 %rd1, [table];
    ld.global.u64 %rd2, [%rd1+8];
    ld.global.u32 %r1, [%rd2];
    st.global.u32 [%rd2+4], %r1;
    ret;
}
'''
table = array(np.array([5, third.value + 16], np.uint64))
_, function = loaded(b"indirect", INDIRECT)
launch(function, 1, table)
assert list(read(third, values)[4:6]) == [values[4]] * 2
# The GPU and the session have different PTX for the same machine code.
right = PTX.replace(b"scale", b"disagreeing")
wrong = right.replace(b"mul.lo.u32 %r2", b"add.u32 %r2")
code = code_of(2, right)
ctypes.CDLL(None).cuda_tma_on_gpu_code(code, u64(512), wrong, u64(len(wrong)))
_, function = loaded(b"disagreeing", code)
launch(function, 64, third)
"""


def run_on_gpu(folder: Path, text: str, *options: str) -> dict:
    """Run a script on the stand-in for a GPU, and return the JSON document of the command."""
    (folder / "script.py").write_text(BEGINNING + text, "utf-8")
    gpu = [sys.executable, "-m", "cuda_tma", "sanitize", "--schedules", "1", "--", "python", "script.py"]
    given = ["--on-gpu", "--schedules", "2", "--json", "out.json", *options, "--", *gpu]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = run_forked("sanitize", *given, folder=folder, environment=environment, seconds=120)
    assert done.returncode == 1, done.stdout + done.stderr
    return json.loads((folder / "out.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """Return the folder and the JSON document of the first script."""
    folder = tmp_path_factory.mktemp("on_gpu")
    return folder, run_on_gpu(folder, SCRIPT, "--record", "launches", "--every", "2")


def of(document: dict, kernel: str) -> list[dict]:
    return [each for each in document["launches"] if each["kernel"] == kernel]


def row_of(document: dict, kernel: str) -> dict:
    return next(each for each in document["gpu"][0]["kernels"] if each["kernel"] == kernel)


def test_each_configuration_is_checked_first_and_at_intervals(judged):
    _, document = judged
    assert [(each["block"], each["hardware"]) for each in of(document, "scale")] == [
        ([64, 1, 1], "equal"),
        ([64, 1, 1], "equal"),
        ([32, 1, 1], "equal"),
        ([96, 1, 1], "not compared: an error ends the simulated launch"),
    ]
    row = row_of(document, "scale")
    assert (row["launches"], row["judged"], row["alike"]) == (5, 4, 1)
    assert row["nanoseconds"] > 0


def test_an_error_has_the_place_of_the_launch(judged):
    folder, document = judged
    (found,) = of(document, "scale")[3]["findings"]
    assert found["kind"] == "out-of-bounds"
    text = (folder / "script.py").read_text("utf-8").splitlines()
    assert text[of(document, "scale")[0]["launched_at"]["line"] - 1].strip().startswith("require(cuda.cuLaunchKernel")


def test_a_replay_gives_the_same_report(judged, capsys, monkeypatch):
    folder, document = judged
    monkeypatch.chdir(folder)
    assert cli.main(["sanitize", "launches", "--json", "replayed.json"]) == 1
    capsys.readouterr()
    replayed = json.loads((folder / "replayed.json").read_text("utf-8"))
    for launch in (*document["launches"], *replayed["launches"]):
        launch.pop("seconds")
    assert replayed["launches"] == [each for each in document["launches"] if not each["skipped"]]


def test_a_gpu_that_disagrees_is_found(judged):
    _, document = judged
    (launch,) = of(document, "disagreeing")
    assert [each["kind"] for each in launch["findings"]] == ["hardware-difference"]
    assert launch["hardware"].startswith("differs: ")


def test_a_kernel_of_only_machine_code_is_counted(judged):
    _, document = judged
    row = row_of(document, "unknown")
    assert (row["launches"], row["judged"]) == (4, 0)
    assert row["reason"] == "its image has no PTX for the GPU, only machine code"
    assert [each["skipped"] for each in of(document, "unknown")] == [row["reason"]]


def test_an_option_of_a_gpu_needs_one(capsys):
    assert cli.main(["sanitize", "--every", "2", "--", "python"]) == 2
    assert "--every is only for --on-gpu" in capsys.readouterr().err
