"""Tests of one kernel with ten bugs, each of a kind that occurs in public repositories."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate
from tests.simulate._sanitize._sanitizer import BUGS, SOURCE, line_of

ORDERS = ("early", "late", "random")


@cache
def compiled(gpu: simulate.Device, bug: int) -> simulate.Kernel:
    return gpu.compile(SOURCE, "kernel", defines={"BUG": bug})


GPU = simulate.Device()
STRICT = simulate.Device(strict=True)
BLIND = simulate.Device(sanitize=False)


def launched(bug: int, gpu: simulate.Device = GPU, **settings: object) -> simulate.Report:
    source, target, out = np.arange(1024, dtype=np.int32), np.zeros(256, np.int32), np.zeros(256, np.int32)
    maps = [gpu.create_tensor_map(array, box_dim=(256,)) for array in (source, target)]
    return gpu.launch(simulate.Config(1, 256), compiled(gpu, bug), *maps, out, 4, **settings)


@pytest.mark.parametrize("order", ORDERS)
def test_a_right_kernel_has_no_finding(order):
    assert launched(0, order=order).findings == ()
    assert launched(0, STRICT, order=order).findings == ()


@pytest.mark.parametrize(("bug", "kind", "where", "other", "part"), BUGS)
def test_a_bug_is_found(bug, kind, where, other, part):
    finding = launched(bug).errors[0]
    assert finding.kind == kind
    assert finding.source[-1].line == line_of(where)
    assert [place.line for place in finding.other[-1:]] == ([line_of(other)] if other else [])
    assert part in finding.message


@pytest.mark.parametrize("order", ["late", "random"])
@pytest.mark.parametrize(("bug", "kind"), [bug[:2] for bug in BUGS])
def test_a_bug_is_found_in_other_orders(bug, kind, order):
    """A kernel that waits for the wrong phase of an mbarrier may arrive too early, or may wait forever in a later
    wait."""
    assert launched(bug, order=order).errors[0].kind in (kind, "barrier-use")


def test_one_finding_a_cause_with_a_count():
    (finding,) = launched(2).findings
    # Each of 8 warps executes the access in 3 of 4 turns.
    assert finding.count == 24
    assert finding.blocks == ((0, 0, 0),) and finding.threads == (0,)


def test_without_the_sanitizer_only_faults_and_hangs_are_found():
    assert [launched(bug, BLIND).findings for bug in (1, 2, 3, 4, 7, 8)] == [()] * 6


# ---- several schedules ----

BY_LUCK = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void kernel(const __grid_constant__ TensorMap source, int* out) {
    __shared__ __align__(128) int tile[256];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(1024);
        load(tile, source, full, Coordinates{0});
    }
    __syncthreads();
    unsigned is_in;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                 : "=r"(is_in) : "r"(unsigned(__cvta_generic_to_shared(&full))) : "memory");
    if (!is_in) out[1] = tile[threadIdx.x];  // READ
    full.wait(0);
    out[0] = tile[0];
}
"""


def test_an_access_in_only_one_schedule_is_found():
    gpu = simulate.Device(schedules=5)
    out, tile = np.zeros(2, np.int32), np.full(256, 9, np.int32)
    source = gpu.create_tensor_map(tile, box_dim=(256,))
    report = gpu.launch(simulate.Config(1, 32), gpu.compile(BY_LUCK, "kernel"), source, out)
    assert report.schedules == (("early", 0), ("late", 0), ("random", 0), ("random", 1), ("random", 2))
    (finding,) = report.errors
    read = BY_LUCK[: BY_LUCK.index("// READ")].count("\n") + 1
    assert finding.kind == "race" and read in (finding.source[-1].line, finding.other[-1].line)
    # The output is the result of the first schedule, which has no finding.
    assert out.tolist() == [9, 0]


def test_a_cause_is_one_finding_for_all_schedules():
    (finding,) = launched(1, simulate.Device(schedules=4)).errors
    assert (finding.kind, finding.source[-1].line) == ("race", line_of("READ"))


# ---- suppressions ----


@pytest.mark.parametrize("place", [f"kernel.cu:{line_of('READ')}", "kernel.cu:*", "kernel"])
def test_a_suppression_hides_the_findings_that_it_covers(place):
    given = simulate.Suppression("race", place, "planted")
    report = launched(1, simulate.Device(suppressions=[given]))
    assert report.errors == () and report.unused_suppressions == ()
    assert [finding.kind for finding in report.suppressed] == ["race"]


def test_an_unused_suppression_is_reported():
    given = simulate.Suppression("deadlock", "kernel.cu:*", "planted")
    report = launched(1, simulate.Device(suppressions=[given]))
    assert [finding.kind for finding in report.errors] == ["race"]
    assert report.unused_suppressions == (given,)
    assert "unused suppression: Suppression(kind='deadlock'" in str(report)


@pytest.mark.parametrize(("kind", "reason", "part"), [("rase", "why", "one of race"), ("race", " ", "has no reason")])
def test_a_suppression_needs_a_kind_and_a_reason(kind, reason, part):
    with pytest.raises(ValueError, match=part):
        simulate.Suppression(kind, "*", reason)
