"""Tests of compute-sanitizer's racecheck on missing waits: a kernel reads a tile before ``full.wait()``.

Observed (compute-sanitizer 2025.3.1, driver 580, sm_90): racecheck finds the race for a tile that ``load_bulk`` writes,
also if a second load precedes some reads of the first. Racecheck does not find the race for a tile that ``load`` writes
through a tensor map, although the kernel read wrong bytes. Racecheck does not track the reads of a store. It does not
report a tile that threads overwrite before ``wait_group_read``, or a store before all threads have written the tile.
Racecheck is therefore useful only for loads of contiguous bytes, and for ordinary accesses around these loads.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(shutil.which("compute-sanitizer") is None, reason="compute-sanitizer is not on PATH")

CHILD = """
import sys
import cuda_tma
from tests.gpu.header_kernels import Machine, place
device = cuda_tma.Device(0)
device.set_current()
params = cuda_tma.params_of(cuda_tma.TensorSpec((64, 64), "uint8"), box_dim=(64, 64))
Machine(device, device.create_stream()).run("plain", sys.argv[1], [place()], params=params)
"""
STATEMENT = """
    __shared__ alignas(128) unsigned char tile[4096];
    if (threadIdx.x == 0) {{
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(4096);
        {load}
    }}
    __syncthreads();
    {wait}
    show(tile, out, 4096);
    full.wait(0);   // after the read of the tile
"""
BULK = "load_bulk(tile, memory, 4096, full);"
TENSOR = "load(tile, map, full, Coordinates{0, 0});"


def hazards(*arguments):
    """Return the number of racecheck reports of a Python process with these arguments."""
    command = ["compute-sanitizer", "--tool", "racecheck", sys.executable, *arguments]
    environment = os.environ | {"CUDA_TMA_RESULTS": "off", "CUDA_TMA_WATCH": "off"}
    child = subprocess.run(command, capture_output=True, text=True, env=environment)
    summary = re.search(r"RACECHECK SUMMARY: (\d+) hazard", child.stdout)
    if "Device not supported" in child.stdout:
        pytest.skip("compute-sanitizer does not work on this machine")
    assert child.returncode == 0 and summary, child.stdout + child.stderr
    return int(summary.group(1))


def hazards_of(load, wait):
    return hazards("-c", CHILD, STATEMENT.format(load=load, wait=wait))


@pytest.mark.parametrize("load", [BULK, TENSOR])
def test_no_false_alarm(load):
    assert hazards_of(load, "full.wait(0);") == 0


def test_a_removed_wait_is_found():
    assert hazards_of(BULK, "") > 0


@pytest.mark.xfail(strict=True, reason="racecheck does not follow writes through tensor maps")
def test_a_removed_wait_is_found_with_a_tensor_map():
    assert hazards_of(TENSOR, "") > 0


def test_bulk_copies_have_no_hazard():
    """All tests of test_header_bulk.py pass under racecheck, too."""
    tests = Path(__file__).with_name("test_header_bulk.py")
    assert hazards("-m", "pytest", "-p", "no:cacheprovider", str(tests)) == 0
