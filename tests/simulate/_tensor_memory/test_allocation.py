"""Tests of right and wrong uses of tcgen05.alloc, tcgen05.dealloc and tcgen05.relinquish_alloc_permit."""

from __future__ import annotations

import numpy as np
import pytest

from ._kernels import launched, line_of

SOURCE = """
extern "C" __global__ void k(u32* out) {
    __shared__ u32 base[4];
    const int t = threadIdx.x, warp = t / 32;
    u32 x = 0;
    BODY
    out[t] = x;
}
"""


def run(body: str, threads: int = 128):
    out = np.zeros(threads, np.uint32)
    return launched(SOURCE.replace("BODY", body), out, threads=threads), out


def test_addresses_of_columns():
    body = """
    if (warp == 0) { ALLOC(base, 64); ALLOC(base + 1, 32); DEALLOC(base[0], 64); }
    if (warp == 0) { ALLOC(base, 32); ALLOC(base + 2, 256); }
    __syncthreads();
    x = base[t % 3];
    __syncthreads();
    if (warp == 0) { DEALLOC(base[0], 32); DEALLOC(base[1], 32); DEALLOC(base[2], 256); }
    """
    report, out = run(body)
    assert report.findings == ()
    assert out[:3].tolist() == [0, 64, 96]


def test_a_warp_waits_for_columns():
    body = """
    if (warp == 0) {
        ALLOC(base, 512);
        x = base[0];
        __nanosleep(100);
        DEALLOC(x, 512);
    } else if (warp == 1) {
        __nanosleep(10);
        ALLOC(base + 1, 256);
        DEALLOC(base[1], 256);
    }
    """
    report, _ = run(body)
    assert report.findings == ()


def test_columns_that_are_never_freed_are_a_deadlock():
    report, _ = run("if (warp == 0) { ALLOC(base, 512); ALLOC(base + 1, 32); }")
    finding = report.errors[0]
    assert finding.kind == "deadlock"
    assert "tcgen05.alloc asks for 32 columns, and 512 of 512 are allocated" in finding.message


# Each entry contains the wrong body of a kernel, a part of the message, and the corrected body.
WRONG = {
    "leak": (
        "if (warp == 0) ALLOC(base, 32); // HERE\n",
        "the CTA ends with 32 columns of tensor memory from column 0 on allocated",
        "if (warp == 0) { ALLOC(base, 32); DEALLOC(base[0], 32); }",
    ),
    "double free": (
        "if (warp == 0) { ALLOC(base, 32); x = base[0]; DEALLOC(x, 32);\nDEALLOC(x, 32); // HERE\n}",
        "which are free already",
        "if (warp == 0) { ALLOC(base, 32); x = base[0]; DEALLOC(x, 32); }",
    ),
    "free of another size": (
        "if (warp == 0) { ALLOC(base, 64);\nDEALLOC(base[0], 32); // HERE\n}",
        "of which 64 were allocated there",
        "if (warp == 0) { ALLOC(base, 64); DEALLOC(base[0], 64); }",
    ),
    "size": (
        "if (warp == 0)\nALLOC(base, 48); // HERE\n",
        "tcgen05.alloc has 48 columns, but the number must be a power of two from 32 to 512",
        "if (warp == 0) { ALLOC(base, 64); DEALLOC(base[0], 64); }",
    ),
    "after the permit": (
        "if (warp == 0) { RELINQUISH();\nALLOC(base, 32); // HERE\n}",
        "tcgen05.alloc after tcgen05.relinquish_alloc_permit",
        "if (warp == 0) { ALLOC(base, 32); RELINQUISH(); DEALLOC(base[0], 32); }",
    ),
    "never allocated": (
        "if (warp == 0) { ALLOC(base, 32);\nST(64, x); // HERE\nDEALLOC(base[0], 32); }",
        "that the CTA has not allocated",
        "if (warp == 0) { ALLOC(base, 128); ST(64, x); WAIT_ST(); DEALLOC(base[0], 128); }",
    ),
    "used after its free": (
        "if (warp == 0) { ALLOC(base, 32); const u32 d = base[0]; ST(d, x); WAIT_ST(); DEALLOC(d, 32);\n"
        "LD(x, d); // HERE\n}",
        "after tcgen05.dealloc of them",
        "if (warp == 0) { ALLOC(base, 32); const u32 d = base[0]; ST(d, x); WAIT_ST(); LD(x, d); WAIT_LD(); "
        "DEALLOC(d, 32); }",
    ),
    "out of columns": (
        "if (warp == 0) { ALLOC(base, 512);\nST(512, x); // HERE\nDEALLOC(base[0], 512); }",
        "accesses column 512 of tensor memory, which has 512",
        "if (warp == 0) { ALLOC(base, 512); ST(511, x); WAIT_ST(); DEALLOC(base[0], 512); }",
    ),
    "wrong quarter": (
        "if (warp == 1) { ALLOC(base, 32);\nST(base[0] + (64 << 16), x); // HERE\nDEALLOC(base[0], 32); }",
        "in a warp that may access only lanes 32 to 63",
        "if (warp == 1) { ALLOC(base, 32); ST(base[0] + quarter(), x); WAIT_ST(); DEALLOC(base[0], 32); }",
    ),
    "uninitialized": (
        "if (warp == 0) { ALLOC(base, 32);\nLD(x, base[0]); // HERE\nWAIT_LD(); DEALLOC(base[0], 32); }",
        "reads column 0 of tensor memory, to which nothing has been written",
        "if (warp == 0) { ALLOC(base, 32); ST(base[0], x); WAIT_ST(); LD(x, base[0]); WAIT_LD(); "
        "DEALLOC(base[0], 32); }",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_use_of_columns(name):
    wrong, message, fixed = WRONG[name]
    report, _ = run(wrong)
    found = [each for each in report.errors if each.kind == "tensor-memory"]
    assert len(found) == 1, report.findings
    assert message in found[0].message
    assert found[0].source[-1].line == line_of(SOURCE.replace("BODY", wrong), "HERE")
    assert run(fixed)[0].errors == ()


def test_an_address_without_a_quarter_names_lanes_of_the_warp():
    body = """
    if (warp == 0) ALLOC(base, 32);
    __syncthreads();
    ST(base[0], t);
    WAIT_ST();
    LD(x, base[0] + quarter());
    WAIT_LD();
    __syncthreads();
    if (warp == 0) DEALLOC(base[0], 32);
    """
    report, out = run(body)
    assert report.findings == ()
    assert out.tolist() == [*range(128)]


@pytest.mark.parametrize("threads", [1, 7, 40])
def test_a_warp_of_fewer_threads_allocates(threads):
    body = "if (warp == 0) { ALLOC(base, 64); DEALLOC(base[0], 64); }"
    report, _ = run(body, threads)
    assert report.findings == ()


def test_a_warp_of_fewer_threads_moves_no_lanes():
    body = "ALLOC(base, 64); x = 7; ST(base[0], x); DEALLOC(base[0], 64);"
    report, _ = run(body, 7)
    (finding,) = report.errors
    assert finding.kind == "tensor-memory"
    assert "a warp of 7 threads executes tcgen05.st (PTX ISA: the instruction moves 32 lanes" in finding.message
