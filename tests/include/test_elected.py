"""Tests of elected.cuh on the simulator and as PTX: one load for each call of a warp."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from tests.include._header import cubin, defined_in, ptx

SOURCE = """
#include <cuda_tma/elected.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<8, 32>>;
extern "C" __global__ void k(const __grid_constant__ TiledMap<Window> map, float* out) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
    }
    __syncthreads();
    load(tile, map, full, Coordinates{0, 0});
    full.wait(0);
    for (int i = 0; i < 8; ++i) out[32 * i + threadIdx.x] = tile(i, threadIdx.x);
}
"""
ELECTED = SOURCE.replace(" load(", " load_elected(")


def launched(source: str) -> tuple[simulate.Report, bool]:
    device = simulate.Device((9, 0), schedules=2, sanitize=True)
    given = np.arange(256, dtype=np.float32).reshape(8, 32)
    out = np.zeros_like(given)
    report = device.launch(simulate.Config(1, 32), device.compile(source, "k"), given, out)
    return report, np.array_equal(given, out)


def test_a_warp_issues_one_load():
    report, is_right = launched(ELECTED)
    assert report.findings == () and is_right


def test_32_threads_of_a_plain_load_issue_32_loads():
    report, _ = launched(SOURCE)
    assert {finding.kind for finding in report.errors} == {"race", "early-exit"}
    (count,) = (finding for finding in report.findings if finding.kind == "transaction-count")
    assert f"{31 * 1024:,} bytes arrived in its phase 1 without an expect_tx" in count.message


CALLS = {
    "load_elected(raw, plain, full, Coordinates{0, 1}, evict_first());": ".tile.mbarrier",
    "load_multicast_elected(raw, plain, full, Coordinates{0, 1}, 3);": ".multicast::cluster",
    "load_multicast_elected(tile, map, full, Coordinates{0, 1}, 3);": ".multicast::cluster",
    "load_im2col_elected(raw, plain, full, Coordinates{0, 1, 2}, Offsets{1});": ".im2col.",
}


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_each_load_is_elected(target):
    source = ELECTED.replace("map, float", "map, const __grid_constant__ TensorMap plain, float")
    source = source.replace("__shared__ Barrier", "__shared__ alignas(128) char raw[1024]; __shared__ Barrier")
    source = source.replace("full.wait(0);", "".join(CALLS) + "full.wait(0);")
    assert cubin(source, target).startswith(b"\x7fELF")
    text = ptx(source, target.replace("sm", "compute"))
    statements = [line for line in text.splitlines() if "elect.sync" in line or "cp.async.bulk.tensor" in line]
    assert ["elect" in line for line in statements] == [True, False] * (1 + len(CALLS))
    for line, qualifier in zip(statements[3::2], CALLS.values(), strict=True):
        assert qualifier in line
    assert defined_in("elected.cuh") <= {call.split("(")[0] for call in CALLS}
