"""Tests that the report for a seed is equal in all processes and Python versions, with any number of cores.

Each Python version and each machine compares the report's facts with the same file.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXPECTED = ROOT / "tests" / "data" / "racing_report.json"

# Each of 128 threads stores to shared memory and reads the element of another warp, and cp.async copies 16 bytes.
PTX = """.version 9.0
.target sm_90
.address_size 64
.visible .entry kernel(.param .u64 in, .param .u64 out) {
  .reg .b32 %r<6>; .reg .b64 %rd<6>; .reg .pred %p1;
  .shared .align 16 .b8 first[512]; .shared .align 16 .b8 second[2048];
  ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; xor.b32 %r3, %r2, 256;
  mov.u32 %r4, first; add.u32 %r5, %r4, %r2; st.shared.u32 [%r5], %r1;
  add.u32 %r5, %r4, %r3; ld.shared.u32 %r4, [%r5];
  mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3;
  mov.u32 %r5, second; mad.lo.u32 %r5, %r1, 16, %r5;
  cp.async.cg.shared.global [%r5], [%rd4], 16; cp.async.commit_group;
  ld.shared.u32 %r3, [%r5]; add.u32 %r4, %r4, %r3;
  atom.global.add.u32 %r3, [%rd2], %r4; mul.wide.u32 %rd3, %r3, 0; add.u64 %rd2, %rd2, %rd3;
  st.global.u32 [%rd2+4], %r1;
  cp.async.wait_all;
  ret;
}
"""
SCRIPT = f"""
import json, sys
import numpy as np
from cuda_tma import simulate
from cuda_tma._intercept.launches.report_values import values_of

gpu = simulate.Device(schedules=6)
source, out = np.arange(512, dtype=np.int32), np.zeros(64, np.int32)
kernel = gpu.load({PTX!r}, "kernel")
report = gpu.launch(simulate.Config(4, 128), kernel, source, out, order="random", seed=7)
values = values_of(report) | {{"text": str(report), "memory": out.tolist()}}
sys.stdout.write(json.dumps(values, indent=1) + "\\n")
"""
CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else [0]


def report(hash_seed: str = "0", cores: int = len(CORES)) -> bytes:
    """Return the report of a launch in a separate process."""
    pin = f"import os; os.sched_setaffinity(0, {set(CORES[:cores])!r})\n" if cores < len(CORES) else ""
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", pin + SCRIPT], env=env, check=True, capture_output=True).stdout


def facts(report: bytes) -> dict:
    """Return the facts of a report, which are all values except the sentences."""
    values = json.loads(report)
    sentences = ("message", "rule", "remedy", "related")
    findings = [{key: each[key] for key in each if key not in sentences} for each in values["findings"]]
    return {**values, "findings": findings, "text": ""}


@pytest.fixture(scope="module")
def first():
    return report()


@pytest.mark.parametrize(("hash_seed", "cores"), [("1", len(CORES)), ("2", 1)])
def test_each_process_has_the_same_report(first, hash_seed, cores):
    assert report(hash_seed, cores) == first


def test_each_python_has_the_same_report(first):
    assert facts(first) == json.loads(EXPECTED.read_text())


def test_the_report_depends_on_the_order():
    expected = json.loads(EXPECTED.read_text())
    assert sum(each["kind"] == "race" for each in expected["findings"]) >= 3
    assert ["random", 7] in expected["schedules"] and expected["memory"][0]


if __name__ == "__main__":
    EXPECTED.write_text(json.dumps(facts(report()), indent=1) + "\n")
