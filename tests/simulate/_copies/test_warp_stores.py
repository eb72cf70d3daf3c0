"""Tests of a TMA instruction in all 32 lanes of a warp. The lanes execute one store together, but one load or reduction
each.

On an H200 (recorded), ptxas emits one UTMASTG if the operands are uniform, and a loop over the lanes for a load and a
reduction. CuTe DSL lets 32 lanes execute each store.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

__device__ void bulk(int* memory, const int* tile, bool adds) {
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    if (adds) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 1024;"
            :: "l"(memory), "r"(from) : "memory");
    } else {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 1024;"
            :: "l"(memory), "r"(from) : "memory");
    }
}

extern "C" __global__ void k(const __grid_constant__ TensorMap source, const __grid_constant__ TensorMap target,
                             int* memory, int* out) {
    __shared__ alignas(128) int tile[256], other[256];
    __shared__ Barrier full;
    const unsigned t = threadIdx.x, warp = t / 32, lane = t % 32;
    if (t == 0) { full.init(1); fence_barrier_init(); }
    for (unsigned i = t; i < 256; i += blockDim.x) tile[i] = i, other[i] = SECOND;
    fence_proxy_async();
    __syncthreads();
    BODY
}
"""
_END = "commit_group(); wait_group_read<0>();"
_LOAD = """
    if (t == 0) full.arrive_expect_tx(TILES * 1024);
    __syncthreads();
    if (warp == 0) load(tile, source, full, Coordinates{0});  // THE LOAD
    full.wait(0);
    out[t] = tile[t];
"""
BODIES = {
    "store": f"if (warp == 0) {{ store(target, Coordinates{{0}}, tile); {_END} }}",
    "bulk": f"if (warp == 0) {{ bulk(memory, tile, false); {_END} }}",
    "store_and_reuse": f"if (warp == 0) {{ store(target, Coordinates{{0}}, tile); {_END} tile[lane] = 7; }}",
    "store_and_reuse_early": "if (warp == 0) { store(target, Coordinates{0}, tile); commit_group(); tile[lane] = 7; "
    "wait_group_read<0>(); }",
    "first_lane_alone_waits": "if (warp == 0) { store(target, Coordinates{0}, tile); commit_group(); "
    "if (lane == 0) wait_group_read<0>(); __syncwarp(); tile[lane] = 7; }",
    "nobody_waits": "if (warp == 0) { store(target, Coordinates{0}, tile); commit_group(); }",
    "two_warps": f"store(target, Coordinates{{0}}, tile); {_END}",
    "two_tiles": f"store(target, Coordinates{{0}}, warp ? other : tile); {_END}",
    "two_bulk": f"bulk(memory, warp ? other : tile, false); {_END}",
    "reduction": f"if (warp == 0 && lane < LANES) {{ reduce<Reduction::add>(target, Coordinates{{0}}, tile); {_END} }}",
    "bulk_reduction": f"if (warp == 0) {{ bulk(memory, tile, true); {_END} }}",
    "load": _LOAD,
}


@cache
def compiled(body: str, second: str = "i", tiles: int = 32, lanes: int = 32) -> simulate.Kernel:
    defines = {"SECOND": second, "TILES": tiles, "LANES": lanes}
    return simulate.Device().compile(SOURCE.replace("BODY", BODIES[body]), "k", defines=defines)


def launched(
    kernel: simulate.Kernel, strict: bool = False, schedules: int = 4
) -> tuple[simulate.Report, np.ndarray, np.ndarray]:
    given, target, out = np.arange(256, dtype=np.int32) * 3, np.zeros(256, np.int32), np.zeros(256, np.int32)
    gpu = simulate.Device(strict=strict, schedules=schedules)
    maps = [gpu.create_tensor_map(array, box_dim=(256,)) for array in (given, target)]
    return gpu.launch(simulate.Config(1, 64), kernel, *maps, target, out), target, out


@pytest.mark.parametrize("body", ["store", "bulk", "store_and_reuse", "first_lane_alone_waits"])
def test_a_store_by_all_lanes_of_a_warp_is_one_store(body):
    report, target, _ = launched(compiled(body), strict=True)
    assert report.findings == () and target.tolist() == [*range(256)]


@pytest.mark.parametrize(("body", "kind"), [("store_and_reuse_early", "race"), ("nobody_waits", "early-exit")])
def test_a_store_by_all_lanes_is_waited_for(body, kind):
    report, _, _ = launched(compiled(body))
    assert {(finding.kind, finding.severity) for finding in report.findings} == {(kind, "error")}


@pytest.mark.parametrize("body", ["two_warps", "two_tiles", "two_bulk"])
def test_stores_of_the_same_bytes_by_two_warps_are_advice(body):
    report, target, _ = launched(compiled(body))
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("race", "advice") and "writes the same value there" in finding.happened
    assert target.tolist() == [*range(256)]
    assert {each.severity for each in launched(compiled(body), strict=True)[0].findings} == {"error"}


# The stores of the two warps differ in all elements, or only in the last element.
@pytest.mark.parametrize("second", ["i + 1", "i / 255 * 7 + i"])
@pytest.mark.parametrize("body", ["two_tiles", "two_bulk"])
def test_stores_of_other_bytes_by_two_warps_race(body, second):
    report, _, _ = launched(compiled(body, second))
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("race", "error") and "nothing orders the two" in finding.happened


@pytest.mark.parametrize("lanes", [1, 2, 7, 20, 32])
def test_a_reduction_by_some_lanes_runs_once_per_lane(lanes):
    report, target, _ = launched(compiled("reduction", lanes=lanes), schedules=1)
    assert report.findings == () and target.tolist() == [lanes * i for i in range(256)]


def test_a_bulk_reduction_by_all_lanes_runs_once_per_lane():
    report, target, _ = launched(compiled("bulk_reduction"), schedules=1)
    assert report.findings == () and target.tolist() == [32 * i for i in range(256)]


def test_a_load_by_all_lanes_runs_once_per_lane():
    report, _, out = launched(compiled("load"), schedules=1)
    # The warp issues 32 loads of the same tile.
    assert {finding.kind for finding in report.errors} <= {"race"}
    assert out[:64].tolist() == [3 * i for i in range(64)]


def test_a_load_by_all_lanes_brings_no_more_than_32_tiles():
    report, _, _ = launched(compiled("load", tiles=33), schedules=1)
    (finding,) = [each for each in report.errors if each.kind == "transaction-count"]
    assert "1,024 of 33,792 bytes are missing" in finding.happened
