"""Tests of accesses before a tcgen05 operation is complete, with wrong kernels and their corrected twins."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

from ._kernels import device, kernel, launched, line_of

# The matrix D is in columns 0 to 7, and the matrix A with 16-bit elements is in columns 32 to 39. All elements of the
# operands in shared memory are 1.
SOURCE = """
#define FORM (8 << 24 | 1 << 17 | 0x490)
#define PRODUCT(add) MMA("f16", d, matrix(left, 128), matrix(right, 8), FORM, add)
#define PRODUCT_LEFT(add) MMA_LEFT("f16", d, d + 32, matrix(right, 8), FORM, add)
#define RELAXED(bar) asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" :: "r"(at(bar)) : "memory")
#define COPY() asm volatile( \\
    "tcgen05.cp.cta_group::1.128x256b [%0], %1;" :: "r"(d), "l"(matrix(left, 128)) : "memory")
#define LD_HALVES(x, y, t, apart) asm volatile("tcgen05.ld.sync.aligned.16x32bx2.x2.b32 {%0, %1}, [%2], " #apart ";" \\
    : "=r"(x), "=r"(y) : "r"(t) : "memory")
#define ST_HALVES(t, apart) asm volatile("tcgen05.st.sync.aligned.16x32bx2.x2.b32 [%0], " #apart ", {%1, %1};" \\
    :: "r"(t), "r"(1) : "memory")
extern "C" __global__ void k(u32* out) {
    __shared__ alignas(128) unsigned short left[128 * 16], right[8 * 16];
    __shared__ alignas(8) u64 bar[3];
    __shared__ u32 base, again;
    const int t = threadIdx.x, warp = t / 32;
    for (int i = t; i < 128 * 16; i += 128) left[i] = 0x3f80;
    right[t] = 0x3f80;
    if (warp == 0) ALLOC(&base, 64);
    if (t == 0) { INIT(bar, 1); INIT(bar + 1, 128); INIT(bar + 2, 1); }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    const u32 d = base;
    u32 x = 0;
    BODY
    out[t] = x;
    __syncthreads();
    if (warp == 0) DEALLOC(d, 64);
}
"""
ONE = "if (warp == 0 && first())"
SUMS = f"{ONE} {{ PRODUCT(false); COMMIT(bar); }}\n"
READ = "LD(x, d + quarter()); WAIT_LD();"
FILL = "for (u32 c = 32; c < 40; ++c) ST(d + quarter() + c, 0x3f803f80);"
AGAIN = f"{ONE} {{ WAIT(bar + 1, 0);\nPRODUCT(false); // HERE\nCOMMIT(bar + 2); }} WAIT(bar + 2, 0);"
# Each entry contains the wrong body of a kernel, a part of the message, and the corrected body.
WRONG = {
    "no wait": (
        SUMS + f"{READ} // HERE\nWAIT(bar, 0);",
        "reads column 0 of tensor memory, which tcgen05.mma",
        SUMS + f"WAIT(bar, 0); {READ}",
    ),
    "a wait that returns at once": (
        SUMS + f"WAIT(bar + 2, 1);\n{READ} // HERE\nWAIT(bar, 0);",
        "no wait for an mbarrier of a tcgen05.commit",
        SUMS + f"WAIT(bar, 0); {READ}",
    ),
    "a wait for another barrier": (
        SUMS + f"ARRIVE(bar + 1); WAIT(bar + 1, 0);\n{READ} // HERE\nWAIT(bar, 0);",
        "may still write",
        SUMS + f"ARRIVE(bar + 1); WAIT(bar + 1, 0); WAIT(bar, 0); {READ}",
    ),
    "a commit before the product": (
        f"{ONE} {{ COMMIT(bar); PRODUCT(false); }} WAIT(bar, 0);\n{READ} // HERE\n{ONE} COMMIT(bar + 2); "
        "WAIT(bar + 2, 0);",
        "may still write",
        SUMS + f"WAIT(bar, 0); {READ}",
    ),
    "a commit of another thread": (
        f"{ONE} PRODUCT(false);\n__syncthreads(); if (warp == 1 && first()) COMMIT(bar); WAIT(bar, 0);\n"
        f"{READ} // HERE\n{ONE} COMMIT(bar + 2); WAIT(bar + 2, 0);",
        "may still write",
        SUMS + f"WAIT(bar, 0); {READ}",
    ),
    "a store to sums in flight": (
        SUMS + "ST(d + quarter(), x); // HERE\nWAIT_ST(); WAIT(bar, 0);",
        "writes column 0 of tensor memory, which tcgen05.mma",
        SUMS + "WAIT(bar, 0); ST(d + quarter(), x); WAIT_ST();",
    ),
    "a store to A in flight": (
        f"{FILL} WAIT_ST(); __syncthreads(); {ONE} {{ PRODUCT_LEFT(false); COMMIT(bar); }}\n"
        "ST(d + quarter() + 33, x); // HERE\nWAIT_ST(); WAIT(bar, 0);",
        "writes column 33 of tensor memory, which tcgen05.mma",
        f"{FILL} WAIT_ST(); __syncthreads(); {ONE} {{ PRODUCT_LEFT(false); COMMIT(bar); }} WAIT(bar, 0);\n"
        "ST(d + quarter() + 33, x); WAIT_ST();",
    ),
    "a load of stored columns without wait::st": (
        "ST(d + quarter() + 48, t);\nLD(x, d + quarter() + 48); // HERE\nWAIT_LD(); WAIT_ST();",
        "no tcgen05.wait::st",
        "ST(d + quarter() + 48, t); WAIT_ST(); LD(x, d + quarter() + 48); WAIT_LD();",
    ),
    "A without wait::st": (
        f"{FILL} __syncthreads(); {ONE} {{\nPRODUCT_LEFT(false); // HERE\nCOMMIT(bar); }} WAIT(bar, 0);",
        "no tcgen05.wait::st",
        f"{FILL} WAIT_ST(); __syncthreads(); {ONE} {{ PRODUCT_LEFT(false); COMMIT(bar); }} WAIT(bar, 0);",
    ),
    "A without a barrier": (
        f"{FILL} WAIT_ST(); {ONE} {{\nPRODUCT_LEFT(false); // HERE\nCOMMIT(bar); }} WAIT(bar, 0);",
        "nothing orders the two",
        f"{FILL} WAIT_ST(); __syncthreads(); {ONE} {{ PRODUCT_LEFT(false); COMMIT(bar); }} WAIT(bar, 0);",
    ),
    "a load whose halves are apart, in columns of a product": (
        "u32 y; ST_HALVES(d + quarter() + 8, 22); WAIT_ST(); __syncthreads(); "
        f'{ONE} {{ MMA("f16", d + 24, matrix(left, 128), matrix(right, 8), FORM, false); COMMIT(bar); }}\n'
        "LD_HALVES(x, y, d + quarter() + 8, 22); // HERE\nWAIT_LD(); WAIT(bar, 0);",
        "reads columns 30 to 31 of tensor memory, which tcgen05.mma",
        "u32 y; ST_HALVES(d + quarter() + 8, 22); WAIT_ST(); __syncthreads(); "
        f'{ONE} {{ MMA("f16", d + 16, matrix(left, 128), matrix(right, 8), FORM, false); COMMIT(bar); }}\n'
        "LD_HALVES(x, y, d + quarter() + 8, 22); WAIT_LD(); WAIT(bar, 0);",
    ),
    "a product of each lane": (
        "if (warp == 0) {\nPRODUCT(false); // HERE\n} if (warp == 0 && first()) COMMIT(bar); WAIT(bar, 0);",
        "nothing orders the two, which two threads of one warp issue",
        SUMS + "WAIT(bar, 0);",
    ),
    "an operand overwritten in flight": (
        SUMS + "left[t] = 0; // HERE\nWAIT(bar, 0);",
        "write 256 bytes at `left`",
        SUMS + "WAIT(bar, 0); left[t] = 0;",
    ),
    "a source of a copy overwritten in flight": (
        f"{ONE} {{ COPY(); COMMIT(bar); }}\nleft[t] = 0; // HERE\nWAIT(bar, 0);",
        "tcgen05.cp at",
        f"{ONE} {{ COPY(); COMMIT(bar); }} WAIT(bar, 0); left[t] = 0;",
    ),
    "sums overwritten while they are read": (
        SUMS + f"WAIT(bar, 0); LD(x, d + quarter()); ARRIVE(bar + 1);\n{AGAIN}",
        "no tcgen05.wait::ld, and no register of the load is used",
        SUMS + f"WAIT(bar, 0); LD(x, d + quarter()); WAIT_LD(); ARRIVE(bar + 1);\n{AGAIN}",
    ),
    "sums overwritten without a barrier": (
        SUMS + f"WAIT(bar, 0); {READ} {ONE} {{\nPRODUCT(false); // HERE\nCOMMIT(bar + 2); }} WAIT(bar + 2, 0);",
        "nothing orders the two",
        SUMS + f"WAIT(bar, 0); {READ} ARRIVE(bar + 1);\n{AGAIN}",
    ),
    "sums overwritten after a relaxed arrival": (
        SUMS + f"WAIT(bar, 0); {READ} RELAXED(bar + 1);\n{AGAIN}",
        "nothing orders the two",
        SUMS + f"WAIT(bar, 0); {READ} FENCE_BEFORE(); RELAXED(bar + 1);\n{AGAIN}",
    ),
    "columns freed in flight": (
        SUMS + "if (warp == 0) { DEALLOC(d, 64); // HERE\nALLOC(&again, 64); } WAIT(bar, 0); __syncthreads();",
        "frees columns 0 to 63 of tensor memory, which tcgen05.mma",
        SUMS + "WAIT(bar, 0); if (warp == 0) { DEALLOC(d, 64); ALLOC(&again, 64); } __syncthreads();",
    ),
}


@cache
def report(body: str):
    return launched(SOURCE.replace("BODY", body), np.zeros(128, np.uint32))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_order_is_found(name):
    wrong, message, _ = WRONG[name]
    found = [each for each in report(wrong).errors if each.kind == "tcgen05-order"]
    line = line_of(SOURCE.replace("BODY", wrong), "HERE")
    assert [each.source[-1].line for each in found][:1] == [line], report(wrong).findings
    assert message in found[0].message


@pytest.mark.parametrize("name", WRONG)
def test_its_fixed_twin_has_no_error(name):
    assert report(WRONG[name][2]).errors == ()


def test_registers_that_are_used_before_the_stage_is_released_are_advice():
    """Compilers omit the wait for a tcgen05 load before a use of the loaded registers, because the use is a true
    dependency."""
    body = SUMS + f"WAIT(bar, 0); LD(x, d + quarter()); x += 1; out[t] = x; ARRIVE(bar + 1);\n{AGAIN}"
    (finding,) = report(body).findings
    assert (finding.kind, finding.severity) == ("tcgen05-order", "advice")
    assert "its registers are used before the stage is released" in finding.message


def test_a_store_over_a_store_of_the_same_warp_without_wait_is_advice():
    """PTX ISA 9.2, "Pipelined tcgen05 Instructions", does not order two tcgen05 stores of one warp."""
    twice = "ST(d + quarter() + 48, 1);{}\nST(d + quarter() + 48, 2); // HERE\nWAIT_ST(); {}"
    source = SOURCE.replace("BODY", twice.format("", READ.replace("d +", "d + 48 +")))
    (finding,) = launched(source, np.zeros(128, np.uint32)).findings
    assert (finding.kind, finding.severity) == ("tcgen05-order", "advice")
    assert finding.source[-1].line == line_of(source, "HERE")
    assert report(twice.format(" WAIT_ST();", "")).findings == ()


def test_a_load_that_is_early_under_any_schedule_is_one_finding():
    """Under some schedules, an early tcgen05 load precedes the product, and reads columns that no instruction has
    written."""
    source = SOURCE.replace("BODY", f"{SUMS}{READ} // HERE\nWAIT(bar, 0);")
    found = device(4).launch(simulate.Config(1, 128), kernel(source), np.zeros(128, np.uint32)).findings
    assert [(each.kind, each.severity, each.source[-1].line) for each in found] == [
        ("tcgen05-order", "error", line_of(source, "HERE"))
    ]


@pytest.mark.parametrize("name", ["no wait", "A without wait::st"])
def test_the_end_of_the_columns_does_not_repeat_a_finding(name):
    assert len(report(WRONG[name][0]).errors) == 1


def test_products_of_one_thread_follow_each_other():
    body = f"{ONE} {{ PRODUCT(false); PRODUCT(true); COPY(); PRODUCT(true); COMMIT(bar); }} WAIT(bar, 0); {READ}"
    assert report(body).findings == ()


UNWRITTEN = "LD(x, d + 48 + quarter()); // HERE\nWAIT_LD();"


def test_columns_that_nothing_wrote_are_advice_if_their_values_have_no_effect():
    """Triton 3.9 moves the first load of a product's result before a loop that may have no iteration."""
    report = launched(SOURCE.replace("BODY", f"{UNWRITTEN} x = 0;"), np.zeros(128, np.uint32))
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("tensor-memory", "advice")
    assert "reads column 48 of tensor memory, to which nothing has been written" in finding.message


def test_columns_that_nothing_wrote_are_an_error_if_their_values_have_an_effect():
    source = SOURCE.replace("BODY", UNWRITTEN)
    (finding,) = launched(source, np.zeros(128, np.uint32)).findings
    assert (finding.kind, finding.severity) == ("tensor-memory", "error")
    assert finding.source[-1].line == line_of(source, "HERE")
    assert "has an effect" in finding.message


def test_sums_over_columns_that_nothing_wrote_are_an_error():
    body = f"{ONE} {{ PRODUCT(true); COMMIT(bar); }}\nWAIT(bar, 0); {READ}"
    (finding,) = launched(SOURCE.replace("BODY", body), np.zeros(128, np.uint32)).errors
    assert "tcgen05.mma of thread 0 (warp 0) reads columns 0 to 7" in finding.message


def test_columns_that_were_freed_are_unwritten_again():
    again = "__syncthreads(); if (warp == 0) { DEALLOC(d, 64); ALLOC(&again, 64); } __syncthreads();"
    body = f"ST(d + 48 + quarter(), 7); WAIT_ST(); {again} {UNWRITTEN}"
    (finding,) = launched(SOURCE.replace("BODY", body), np.zeros(128, np.uint32)).errors
    assert "nothing has been written" in finding.message


COMMITTED = f"{ONE} {{ PRODUCT(false); COMMIT(bar); // HERE\n}} WAIT(bar, 0); {READ}"


def test_a_commit_without_a_fence_after_the_init_of_its_mbarrier_is_advice():
    source = SOURCE.replace("BODY", COMMITTED)
    assert launched(source, np.zeros(128, np.uint32)).findings == ()
    early = source.replace("if (t == 0) { INIT(bar, 1); INIT(bar + 1, 128); INIT(bar + 2, 1); }", "")
    late = early.replace("const u32 d = base;", "if (t == 0) INIT(bar, 1); __syncthreads(); const u32 d = base;")
    (finding,) = launched(late, np.zeros(128, np.uint32)).findings
    assert (finding.kind, finding.severity) == ("missing-proxy-fence", "advice")
    assert finding.source[-1].line == line_of(late, "HERE")
    assert (
        "tcgen05.commit that thread 0 (warp 0) issued signals `bar` in block (0, 0, 0) through the async"
        in finding.message
    )


def test_a_commit_to_an_mbarrier_that_another_warp_initializes_needs_a_barrier():
    commit = COMMITTED.replace(ONE, "if (warp == 1 && first())").replace("COMMIT(bar)", "COMMIT(bar + 2)")
    commit = commit.replace("WAIT(bar, 0)", "__syncthreads(); WAIT(bar + 2, 0)")
    plain = SOURCE.replace(" INIT(bar + 2, 1);", "")
    source = plain.replace("BODY", f"if (t == 0) INIT(bar + 2, 1); {commit}")
    (finding,) = launched(source, np.zeros(128, np.uint32)).errors
    assert (finding.kind, finding.source[-1].line) == ("barrier-use", line_of(source, "HERE"))
    assert "nothing orders the signal after its mbarrier.init" in finding.message
    fixed = plain.replace("BODY", f"if (t == 0) INIT(bar + 2, 1); __syncthreads(); {commit}")
    assert launched(fixed, np.zeros(128, np.uint32)).errors == ()


def test_the_timeline_has_products_and_the_wait_for_their_commit():
    body = f"{ONE} {{ PRODUCT(false); PRODUCT(true); // HERE\nCOMMIT(bar); }} WAIT(bar, 0); {READ}"
    source = SOURCE.replace("BODY", body)
    tracks = launched(source, np.zeros(128, np.uint32), trace=True).timeline().tracks
    multiplying = next(track for track in tracks if "tcgen05" in track.name)
    assert multiplying.name == "warp 0: tcgen05"
    first, second = (span for span in multiplying.spans if span.kind == "tcgen05")
    assert (first.label, first.end - first.begin, second.begin) == ("mma n8", 4, first.end)
    assert first.source == f"k.cu:{line_of(source, 'HERE')}"
    (phase, *_) = next(track for track in tracks if (track.kind, track.name) == ("mbarrier", "bar")).spans
    assert phase.end == second.end
