"""Tests of wrong uses of mbarriers, such as an invalidation during a use, a wait with an old token, or an excess
arrival."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

SOURCE = r"""
__device__ unsigned at(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
__device__ void init(unsigned long long& bar, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(at(&bar)), "r"(count) : "memory");
}
__device__ void inval(unsigned long long& bar) {
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" :: "r"(at(&bar)) : "memory");
}
__device__ unsigned long long arrive(unsigned long long& bar) {
    unsigned long long token;
    asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(token) : "r"(at(&bar)) : "memory");
    return token;
}
__device__ bool passed(unsigned long long& bar, unsigned long long token) {
    int done;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(at(&bar)), "l"(token) : "memory");
    return done;
}
__device__ bool is_over(unsigned long long& bar, unsigned parity) {
    int done;
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
        : "=r"(done) : "r"(at(&bar)), "r"(parity) : "memory");
    return done;
}
__device__ void wait(unsigned long long& bar, unsigned parity) { while (!is_over(bar, parity)) {} }

extern "C" __global__ void k(int* out) {
    __shared__ unsigned long long bar, other;
    __shared__ int shared[128];
    const int t = threadIdx.x;
    if (t == 0) { init(bar, COUNT); init(other, 1); }
    __syncthreads();
    BODY
    out[t] = t;
}
"""


@cache
def compiled(body: str, count: int) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE.replace("COUNT", str(count)).replace("BODY", body), "k")


def launched(body: str, count: int, block: int = 96) -> tuple[simulate.Finding, ...]:
    gpu = simulate.Device(schedules=4)
    report = gpu.launch(simulate.Config(1, block), compiled(body, count), np.zeros(block, np.int32))
    assert all(finding.severity == "error" for finding in report.findings)
    return report.findings


def lines_of(body: str, mark: str) -> list[int]:
    source = SOURCE.replace("BODY", body)
    return [number for number, line in enumerate(source.splitlines(), 1) if mark in line]


def is_found(findings: tuple[simulate.Finding, ...], part: str, line: int) -> bool:
    return any(
        finding.kind == "barrier-use" and part in finding.message and line in {place.line for place in finding.source}
        for finding in findings
    )


INVALIDATED = {
    "while others wait": "arrive(bar);\n wait(bar, 0);\n if (t == 0) inval(bar);  // here",
    "while others test": "arrive(bar);\n while (!is_over(bar, 0)) {}\n if (t == 95) inval(bar);  // here",
    "after a barrier of one warp": "arrive(bar);\n wait(bar, 0);\n __syncwarp();\n if (t == 0) inval(bar);  // here",
}
VALID_UNTIL_THEN = {
    "after a barrier": "arrive(bar);\n wait(bar, 0);\n __syncthreads();\n if (t == 0) inval(bar);",
    "by the only thread that waits": "arrive(bar);\n if (t == 0) { wait(bar, 0); inval(bar); }",
    "made again": (
        "arrive(bar);\n wait(bar, 0);\n __syncthreads();\n if (t == 0) { inval(bar); init(bar, 96); }"
        "\n __syncthreads();\n arrive(bar);\n wait(bar, 0);"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INVALIDATED)
def test_an_inval_without_order_to_other_uses_is_an_error(name):
    body = INVALIDATED[name]
    assert is_found(launched(body, 96), "invalidates", lines_of(body, "// here")[0])


@pytest.mark.parametrize("name", VALID_UNTIL_THEN)
def test_an_inval_after_all_uses_is_right(name):
    assert launched(VALID_UNTIL_THEN[name], 96) == ()


@pytest.mark.parametrize("use", ["arrive(bar);", "wait(bar, 0);"])
def test_a_use_after_inval_is_an_error(use):
    body = f"if (t == 0) inval(bar);\n __syncthreads();\n {use}  // here"
    (finding,) = launched(body, 96)
    assert is_found((finding,), "is used after its mbarrier.inval", lines_of(body, "// here")[0])
    assert [what for what, _ in finding.related if what == "invalidated"]


def test_a_wait_after_inval_is_an_error():
    body = "if (t == 0) inval(bar); else if (t > 31) wait(bar, 0);  // here"
    (finding,) = [each for each in launched(body, 96) if "is used after" in each.message]
    assert finding.kind == "barrier-use"


RING = """unsigned long long ring[2] = {};
    #pragma unroll
    for (int i = 0; i < 5; ++i) {
        unsigned long long token = arrive(bar);
        DELAY
        ring[i % 2] = token;
    }"""
STALE = {
    "two phases old": "if (i > 1) while (!passed(bar, ring[i % 2])) {} else __syncthreads();  // here",
    "two phases old, once": "__syncthreads();\n if (i == 2 && passed(bar, ring[0])) shared[t] = 1;  // here",
}
CURRENT = {
    "of the present phase": "while (!passed(bar, token)) {}",
    "of the preceding phase": "__syncthreads();\n if (!passed(bar, token)) shared[t] = 1;",
}


@pytest.mark.parametrize("name", STALE)
def test_a_token_two_phases_old_is_an_error(name):
    body = RING.replace("DELAY", STALE[name])
    assert is_found(launched(body, 96), "with a token of phase", lines_of(body, "// here")[0])


@pytest.mark.parametrize("name", CURRENT)
def test_a_token_of_the_present_or_the_preceding_phase_is_right(name):
    assert launched(RING.replace("DELAY", CURRENT[name]), 96) == ()


def test_a_token_three_phases_old_is_an_error():
    body = "auto old = arrive(bar);\n for (int i = 0; i < 3; ++i) { __syncthreads(); if (i < 2) arrive(bar); }\n"
    body += "if (!passed(bar, old)) shared[t] = 1;  // here"
    assert is_found(launched(body, 96), "with a token of phase 0", lines_of(body, "// here")[0])


# ---- arrivals: each entry contains the count, and the body ----

TOO_MANY = {
    "a thread arrives twice": (96, "arrive(bar);\n if (t == 5) arrive(bar);  // here\n wait(bar, 0);"),
    "three of two": (2, "if (t % 32 == 0) arrive(bar);  // here\n wait(bar, 0);"),
    "all lanes of a warp": (1, "if (t < 32) arrive(bar);  // here\n wait(bar, 0);"),
    "a producer that does not wait": (
        64,
        "if (t < 64) for (int i = 0; i < 3; ++i) arrive(bar);  // here\n"
        "else for (int i = 0; i < 3; ++i) wait(bar, i & 1);",
    ),
}
AS_MANY = {
    "each phase": (96, "for (int i = 0; i < 3; ++i) { arrive(bar); wait(bar, i & 1); }"),
    "two barriers": (
        32,
        "if (t < 32) for (int i = 0; i < 4; ++i) { arrive(bar); wait(other, i & 1); }\n"
        "else if (t == 32) for (int i = 0; i < 4; ++i) { wait(bar, i & 1); arrive(other); }",
    ),
    "a barrier of the CTA": (96, "for (int i = 0; i < 3; ++i) { arrive(bar); __syncthreads(); }"),
    "one thread, one arrival": (1, "if (t == 0) for (int i = 0; i < 3; ++i) arrive(bar);"),
    "one thread, its two arrivals": (2, "if (t == 0) for (int i = 0; i < 6; ++i) arrive(bar);"),
    "a lane that waits for its warp": (
        96, "for (int i = 0; i < 3; ++i) { arrive(bar); if (t % 32 == 0) wait(bar, i & 1); __syncwarp(); }",
    ),
    "a lane that waits, and a shuffle": (
        96,
        "for (int i = 0; i < 3; ++i) { arrive(bar); if (t % 32 == 0) wait(bar, i & 1); __shfl_sync(~0u, t, 0); }",
    ),
    "a flag": (
        1,
        "volatile int* flag = shared;\n if (t == 0) { arrive(bar); __threadfence_block(); *flag = 1; }\n"
        "if (t == 64) { while (*flag != 1) {} arrive(bar); }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TOO_MANY)
def test_an_arrival_beyond_the_count_is_an_error(name):
    count, body = TOO_MANY[name]
    found = launched(body, count)
    line = lines_of(body, "// here")[0]
    assert is_found(found, "exceeds the count of mbarrier.init", line) or is_found(found, "more arrive", line)


@pytest.mark.parametrize("name", AS_MANY)
def test_arrivals_that_follow_the_preceding_phase_are_right(name):
    count, body = AS_MANY[name]
    kinds = {finding.kind for finding in launched(body, count)}
    assert kinds <= ({"race"} if name == "a flag" else set())
