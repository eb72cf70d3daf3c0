"""Tests of the detection of endless loops. The simulator stops a loop that returns to an earlier state, because the
loop never ends."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config
from cuda_tma.simulate._machine.repetition import Repetition

SOURCE = r"""
extern "C" __global__ void polls(volatile int* out) { while (out[0] == 0) {} }
extern "C" __global__ void locked(int* out) { while (atomicCAS(out + 1, 1, 1) != 0) {} }
extern "C" __global__ void writes_the_same(volatile int* out) { while (out[0] == 0) out[2] = 7; }
extern "C" __global__ void turns_round(volatile int* out) { for (int i = 0; out[0] == 0; i = (i + 1) % 3) out[2] = i; }

extern "C" __global__ void looks_at_the_clock(int* out) {
    const long long start = clock64();
    while (clock64() - start < 30000) {}
    if (threadIdx.x == 0) out[0] = 1;
}
extern "C" __global__ void counts(int* out) {
    volatile int n = 0;
    while (n < 4000) n = n + 1;
    if (threadIdx.x == 0) out[0] = 1;
}
extern "C" __global__ void waits_for_one_who_counts(volatile int* out) {
    if (threadIdx.x >= 32) {
        for (volatile int n = 0; n < 3000;) n = n + 1;
        if (threadIdx.x == 32) out[0] = 1;
    }
    while (out[0] == 0) {}
}

extern "C" __global__ void looks_at_a_phase(const int* in, int* out, int expected_bytes) {
    __shared__ alignas(128) int tile[32];
    __shared__ alignas(8) unsigned long long full;
    const unsigned bar = __cvta_generic_to_shared(&full), at = __cvta_generic_to_shared(tile);
    if (threadIdx.x == 0)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1; fence.proxy.async;" :: "r"(bar) : "memory");
    __syncthreads();
    for (int i = 0; i < 20; ++i) {
        if (threadIdx.x == 0) {
            asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" :: "r"(bar), "r"(expected_bytes));
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 128, [%2];"
                         :: "r"(at), "l"(in + 32 * i), "r"(bar) : "memory");
        }
        for (int done = 0; !done;)
            asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                         : "=r"(done) : "r"(bar), "r"(i & 1) : "memory");  // LOOK
        out[32 * i + threadIdx.x % 32] = tile[threadIdx.x % 32];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
    }
}
"""


@pytest.fixture(scope="module")
def gpu() -> simulate.Device:
    return simulate.Device(multiprocessor_count=2)


@pytest.mark.parametrize("name", ["polls", "locked", "writes_the_same", "turns_round"])
def test_a_loop_that_changes_nothing(gpu, name):
    """The test uses the default step limit of a launch, which is four million steps."""
    (finding,) = gpu.launch(Config(2, 32), gpu.compile(SOURCE, name), np.array([0, 1, 0], np.int32)).findings
    steps = re.match(r"after (\d+) steps the kernel is where it has been before", finding.message)[1]
    line = 1 + SOURCE[: SOURCE.index(f"void {name}(")].count("\n")
    assert (finding.kind, finding.severity, finding.source[0].line) == ("no-progress", "error", line)
    assert int(steps) < 200_000


@pytest.mark.parametrize("order", ["early", "late", "random"])
@pytest.mark.parametrize("name", ["looks_at_the_clock", "counts", "waits_for_one_who_counts"])
def test_a_loop_that_ends(gpu, name, order):
    out = np.zeros(3, np.int32)
    report = gpu.launch(Config(1, 64), gpu.compile(SOURCE, name), out, order=order)
    assert report.findings == () and out[0] == 1


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_polling_a_phase_in_a_loop_ends_soon(gpu, order):
    """Without the detection of endless loops, each of the test's 20 copies would take 4096 steps."""
    given, out = np.arange(640, dtype=np.int32), np.zeros(640, np.int32)
    kernel = gpu.compile(SOURCE, "looks_at_a_phase")
    assert gpu.launch(Config(1, 32), kernel, given, out, 128, order=order, max_steps=40_000).findings == ()
    np.testing.assert_array_equal(out, given)


@pytest.mark.parametrize("order", ["early", "late"])
def test_polling_a_phase_that_does_not_complete_is_a_wait(gpu, order):
    kernel = gpu.compile(SOURCE, "looks_at_a_phase")
    given = np.arange(640, dtype=np.int32), np.zeros(640, np.int32), 160
    (finding,) = gpu.launch(Config(1, 64), kernel, *given, order=order).errors
    assert (finding.kind, len(finding.threads)) == ("transaction-count", 64)
    assert "32 of 160 bytes are missing" in finding.message or "128 of 160" in finding.message
    look = next(i for i, text in enumerate(SOURCE.splitlines(), 1) if "// LOOK" in text)
    assert look - 1 <= finding.source[0].line <= look


def test_a_state_counts_only_after_every_group_has_run():
    """In the test, three groups of threads have equal states. A state counts as repeated only after every group has
    run, because each group may change memory."""
    standing = [(None, pc, np.zeros(1, np.int64)) for pc in range(3)]
    scheduler = SimpleNamespace(standing=lambda: standing)
    nothing = SimpleNamespace(writeable=tuple, all=tuple)
    runtime = SimpleNamespace(printed=0, heap=())
    looks = Repetition(np.ones(96, bool), runtime, scheduler, nothing, nothing)
    assert [looks.found() for _ in range(4)] == [False, False, False, True]
