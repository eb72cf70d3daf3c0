"""Tests of the remedies in a random sample of ten findings. The application of each remedy to the kernel's source fixes
the bug."""

from __future__ import annotations

import random
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from cuda_tma import simulate

sys.path.append(str(Path(__file__).parents[3] / "evaluation" / "compute_sanitizer"))
sys.path.append(str(Path(__file__).parents[3] / "tools"))

import compared_kernels
import write_findings
from finding_kernels import KERNELS

# The list is a random sample of the bugs, without bugs that were added later.
REAL_BUGS = [
    "cutlass_2364_init_that_is_none",
    "cutlass_2944_load_beyond_the_last_tile",
    "cutlass_3189_part_of_the_tile",
    "cutlass_3643_peer_not_waited_for",
    "cutlass_3643_release_of_a_cta",
    "cutlass_3658_mask_of_nobody",
    "deepep_642_polled_then_loaded",
    "deepep_657_one_group_too_many",
    "flash_kda_24_barrier_init_without_fence",
    "flash_kda_24_empty_sequence",
    "flash_kda_24_store_without_fence",
    "fuser_5448_store_not_waited_for",
    "sglang_39124_write_then_bulk_store",
    "tilelang_2566_bytes_without_arrival",
    "tilelang_2567_each_waits_for_the_other",
    "tilelang_2634_product_of_unfenced_writes",
    "tilelang_2927_parity_of_the_loop",
    "tirx_kernels_202_one_lane_arrives_for_all",
    "tirx_kernels_202_slot_reused_early",
    "tirx_kernels_6_initialised_by_every_warp",
    "tirx_kernels_6_maximum_of_nothing",
    "tirx_kernels_8_stage_released_unfenced",
    "tlx_462_barrier_made_twice",
    "transformer_engine_2695_read_then_load",
    "transformer_engine_3417_everyone_waits_for_one",
    "triton_10656_peer_has_left",
    "triton_11097_scratch_then_load",
]
LATER_KINDS = {"tensor-memory", "tcgen05-order", "leak", "hardware-difference"}
POOL = sorted([*REAL_BUGS, *(f"V{number}" for number in range(1, 11)), *(KERNELS.keys() - LATER_KINDS)])
SEED = 2026

FENCE = "\n    fence_proxy_async();"
# Each row contains a part of the remedy's text, a part of the source, and the replacement that applies the remedy.
FIXES = {
    "V7": [("put __syncthreads()", "fence_barrier_init(); }", "fence_barrier_init(); }\n    __syncthreads();")],
    "deepep_642_polled_then_loaded": [
        ("fence_proxy_async_global()", "= in[threadIdx.x];", "= in[threadIdx.x];\n        fence_proxy_async_global();")
    ],
    "no-progress": [("make the loop's condition come true", "    while (*flag", "    *flag = 1;\n    while (*flag")],
    "triton_11097_scratch_then_load": [
        ("in each thread that wrote, after its writes", "= in[threadIdx.x];", f"= in[threadIdx.x];{FENCE}"),
        ("in each thread that read, after its reads", "threadIdx.x ^ 1];", f"threadIdx.x ^ 1];{FENCE}"),
    ],
    # The reading thread already arrives on the mbarrier `empty`.
    "tirx_kernels_202_slot_reused_early": [
        ("and wait for it before the write", "slot = in[i];", "empty.wait((i & 1) ^ 1);\n slot = in[i];")
    ],
    "V6": [
        ("pass the sum of the copies' bytes", "expect_tx(BUG == 5 ? 2048 : BUG == 6 ? 512 : 1024)", "expect_tx(1024)")
    ],
    "cutlass_2944_load_beyond_the_last_tile": [
        ("or remove an unused load", "== 0) {\n#endif", "== 0 && i + 2 < tiles) {\n#endif")
    ],
    "tilelang_2634_product_of_unfenced_writes": [
        ("after its writes and before the barrier", "\n    __syncthreads();", f"{FENCE}\n    __syncthreads();")
    ],
    "tilelang_2927_parity_of_the_loop": [("the first phase of each mbarrier has parity 0", "wait(i & 1)", "wait(0)")],
    "sglang_39124_write_then_bulk_store": [
        ("after its writes and before the barrier", "[threadIdx.x] + 1;", f"[threadIdx.x] + 1;{FENCE}")
    ],
    # The remaining kernels are not in the random sample. The remedy adds a wait of one CTA for its peer. In the first
    # of these kernels, the peer already arrives on an mbarrier.
    "cutlass_3643_peer_not_waited_for": [
        ("wait for that mbarrier with .acquire.cluster", "int value;", "int value; peer_full.wait_cluster(0);")
    ],
    "cutlass_3643_release_of_a_cta": [
        ("Barrier::arrive_at()", "ready.in_cta(0).release_async_read();", "ready.arrive_at(0);")
    ],
}
BEYOND_THE_SAMPLE = {"cutlass_3643_peer_not_waited_for", "cutlass_3643_release_of_a_cta"}
CASES = {case.name: case for case in compared_kernels.cases()}
STRICT = {"strict": True, "schedules": 4}


def source_of(name):
    return write_findings.lines_of(name, "-") if name in KERNELS else CASES[name].source


def launched(name, source, **settings):
    gpu = simulate.Device(**settings)
    if name in KERNELS:
        return write_findings.launched(name, source, gpu)
    return compared_kernels.simulated(replace(CASES[name], source=source), gpu)


def test_the_sample():
    assert {*random.Random(SEED).sample(POOL, 10)} == FIXES.keys() - BEYOND_THE_SAMPLE
    assert {*REAL_BUGS} <= CASES.keys()


@pytest.mark.parametrize("name", FIXES)
def test_the_remedy_fixes_the_kernel(name):
    source = source_of(name)
    found = launched(name, source, strict=True).errors
    remedies = "\n".join(
        finding.remedy or f"{finding.message} {simulate._findings._REMEDIES[finding.kind]}" for finding in found
    )
    for remedy, old, new in FIXES[name]:
        assert remedy in remedies and source.count(old) == 1, remedies
        source = source.replace(old, new)
    assert launched(name, source, **STRICT).findings == ()


@pytest.mark.parametrize("name", [name for name, steps in FIXES.items() if len(steps) > 1])
def test_each_remedy_fixes_its_finding(name):
    source, kinds = source_of(name), []
    for _, old, new in FIXES[name]:
        kinds.append(len(launched(name, source, **STRICT).findings))
        source = source.replace(old, new)
    assert kinds == [*range(len(kinds), 0, -1)]
