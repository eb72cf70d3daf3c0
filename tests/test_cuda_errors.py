"""Tests of errors that a GPU reported, and of their explanations."""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "evaluation" / "recordings"))
sys.path.append(str(Path(__file__).parent.parent / "tools"))

import numpy as np
import pytest
import record_faults
from fault_cases import CASES, HOST, OF_TMA
from fault_kernels import GIVEN, SOURCE, WAITS
from recordings import read
from write_errors import RECORDED, number_of, outcome

from cuda_tma import TensorMapIm2colOptions, simulate
from cuda_tma._cuda_errors import CUDA_ERRORS, DOCUMENTED, OBSERVED

DEVICE, *ROWS = read(RECORDED)
CASE_ROWS = [row for row in ROWS if "blocking" not in row]
# The two calls never return the error of an earlier kernel.
NEVER_FAIL = {"cuCtxGetCurrent", "cuPointerGetAttribute"}
KERNEL = re.compile(r'extern "C" __global__ (?:__cluster_dims__\(2\) )?void (\w+)')


def test_every_case_can_be_run():
    """Each case of an error has a kernel that accepts the case's arguments, and each kernel has a case."""
    kernels = {case.kernel for case in CASES.values()}
    of_host = {name for name in kernels if name.startswith(HOST)}
    assert of_host == set(record_faults._HOST)
    assert set(record_faults.BLOCKING) | OF_TMA <= set(CASES) and set(WAITS) <= kernels
    assert kernels - of_host | {"healthy"} == set(KERNEL.findall(SOURCE))
    for case in CASES.values():
        assert set(case.arguments) <= {*GIVEN, "address_offset"}, case.name
        assert len(record_faults.raw_map(case, 4096)) == 128, case.name


def test_the_kernels_compile():
    assert b"cluster_multicast" in record_faults.compiled()


# ---- the recordings, and the table ----


def test_every_case_was_recorded():
    """For each case, a recorded process worked after other processes had failed on the same device."""
    assert [row["case"] for row in CASE_ROWS] == list(CASES)
    assert len(ROWS) > 120 and all(row["healthy"] == [0, 0] and "ended" not in row for row in ROWS)


def test_names_and_texts_are_the_drivers():
    assert {n: [row.name, row.text] for n, row in CUDA_ERRORS.items()} == {
        n: DEVICE["names"][str(n)] for n in CUDA_ERRORS
    }


def test_causes_are_those_that_were_recorded():
    found: dict[int, list[str]] = {}
    for row in CASE_ROWS:
        if row["case"] in OF_TMA and number_of(row) and not row["launch"]:
            found.setdefault(number_of(row), []).append(row["case"])
    assert {number: list(row.causes) for number, row in CUDA_ERRORS.items() if row.causes} == found


def test_sources_match_the_recordings():
    seen = {number for row in CASE_ROWS for number in (row["launch"], row["found"]) if number and number != "hang"}
    assert {number for number, row in CUDA_ERRORS.items() if row.source == OBSERVED} == seen
    assert {row.source for row in CUDA_ERRORS.values()} == {OBSERVED, DOCUMENTED}


@pytest.mark.parametrize("row", CASE_ROWS, ids=lambda row: row["case"])
def test_sticky_errors(row):
    """After a sticky error of a kernel, every later call returns the error, except a call that has another error."""
    if row["found"] == "hang":
        assert "after" not in row
        return
    stays = row["found"] or (number_of(row) if not row["launch"] else 0)
    assert not stays or CUDA_ERRORS[stays].is_sticky
    assert not row["launch"] or not CUDA_ERRORS[row["launch"]].is_sticky
    after = dict(row["after"])
    broken_rule = after.pop("cuTensorMapEncodeTiled of a map that breaks a rule")
    if row["found"]:
        assert {name for name, number in after.items() if number != stays} == NEVER_FAIL and broken_rule == stays
        # A process with an error of a kernel cannot recover, and a reset also returns the error.
        assert row["reset"]["cuDevicePrimaryCtxRetain"] == stays
    elif not stays:
        assert set(after.values()) == {0} and broken_rule == 1 and set(row["reset"].values()) == {0}
    else:
        # The next synchronization returns the error of a prefetch.
        assert after["cuCtxSynchronize"] == stays


def test_a_blocking_launch_is_the_one_that_fails():
    """With CUDA_LAUNCH_BLOCKING=1, as the messages recommend, the launch itself returns the error of its kernel."""
    found = {row["case"]: (row["launch"], row["found"]) for row in ROWS if "blocking" in row}
    assert found == {
        "a load": (0, 0),
        "a load from a wild address": (700, 700),
        "the innermost coordinate is not a multiple of 16 bytes": (715, 715),
        "trap": (719, 719),
    }
    # Without CUDA_LAUNCH_BLOCKING, the launch succeeds, and a later call returns the error.
    assert all(row["launch"] == 0 for row in CASE_ROWS if row["found"])


def test_outcomes_in_words():
    words = {row["case"]: outcome(row) for row in CASE_ROWS}
    assert words["a load"] == "its phase completes"
    assert words["more bytes come than are expected"] == "its phase does not complete"
    assert words["trap"] == "719 `CUDA_ERROR_LAUNCH_FAILED`"
    assert words["a map at a wild address is prefetched"] == "700 `CUDA_ERROR_ILLEGAL_ADDRESS`, later"
    assert words["a wait for bytes that never come"] == "hangs"
    assert words["a store"] == "no error"


# ---- a fault that the simulator once did not report ----

THROUGH_IM2COL_MAP = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map) {
    __shared__ alignas(128) char tile[4096];
    __shared__ Barrier full;
    full.init(1);
    fence_barrier_init();
    full.arrive_expect_tx(4096);
    LOAD;
    full.wait(0);
}
"""


@pytest.mark.parametrize(
    ("load", "kinds"),
    [
        ("load_im2col(tile, map, full, Coordinates{0, 0, 0, 0}, Offsets{0, 0})", []),
        ("load(tile, map, full, Coordinates{0, 0, 0, 0})", ["map-mismatch"]),
    ],
)
def test_a_tiled_load_through_an_im2col_map(load, kinds):
    """For a tiled load through an im2col map, hardware reports error 715."""
    gpu = simulate.Device()
    options = TensorMapIm2colOptions((0, 0), (0, 0), 32, 32)
    images = np.zeros((2, 8, 8, 32), np.float32)
    kernel = gpu.compile(THROUGH_IM2COL_MAP.replace("LOAD", load), "kernel")
    report = gpu.launch(simulate.Config(grid=1, block=1), kernel, gpu.create_tensor_map(images, options))
    assert [finding.kind for finding in report.errors] == kinds


@pytest.mark.parametrize("act", ["store", "reduce<Reduction::add>"])
@pytest.mark.parametrize("shape", [(8,), (2, 4, 8)])
def test_a_store_by_coordinates_of_another_rank(act, shape):
    gpu = simulate.Device()
    map_of_rank = gpu.create_tensor_map(np.zeros(shape, np.float32), box_dim=shape)
    kernel = gpu.compile(STORE.replace("ACT", act), "kernel")
    report = gpu.launch(simulate.Config(grid=1, block=1), kernel, map_of_rank)
    assert [finding.kind for finding in report.errors] == ["map-mismatch"]


STORE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map) {
    __shared__ alignas(128) char tile[4096];
    for (int i = 0; i < 4096; ++i) tile[i] = 0;
    fence_proxy_async();
    ACT(map, Coordinates{0, 0}, tile);
    commit_group();
    wait_group<0>();
}
"""
