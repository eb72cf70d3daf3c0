"""Tests of accesses to the registers of a wgmma before its wait.

Each access before the wait is a finding, and a read returns a wrong value."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

# All elements of A and B are 1, so each product adds 16 to each accumulator.
SOURCE = r"""
__device__ unsigned long long matrix(const void* tile) {  // of core matrices, 128 and 256 bytes apart
    return static_cast<unsigned>(__cvta_generic_to_shared(tile)) >> 4 | 8ull << 16 | 16ull << 32;
}
#define SUMS(d) "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define FENCE() asm volatile("wgmma.fence.sync.aligned;" : SUMS(c), SUMS(e) :: "memory")
#define PRODUCT(d) asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; " \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, p, 1, 1, 0, 0; }" \
    : SUMS(d) : "l"(matrix(a)), "l"(matrix(b)))
#define LEFT(d) asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; " \
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, {%5, %6, %7, %8}, %4, p, 1, 1, 0; }" \
    : SUMS(d) : "l"(matrix(b)), "r"(f[0]), "r"(f[1]), "r"(f[2]), "r"(f[3]))
#define COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define WAIT(n) asm volatile("wgmma.wait_group.sync.aligned %8;" : SUMS(c), SUMS(e) : "n"(n) : "memory")
#define SET(x, value) asm volatile("add.f32 %0, %1, 0f00000000;" : "+f"(x) : "f"(value))
#define LOAD() asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];" \
    : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]) \
    : "r"(static_cast<unsigned>(__cvta_generic_to_shared(a))) : "memory")

extern "C" __global__ void k(float* out, int turns) {
    __shared__ alignas(1024) unsigned short a[1024], b[128];
    const int t = threadIdx.x;
    for (int i = t; i < 1024; i += 128) a[i] = 0x3f80;
    b[t] = 0x3f80;
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    float c[4] = {1, 1, 1, 1}, e[4] = {}, read = 0;
    unsigned f[4] = {0x3f803f80, 0x3f803f80, 0x3f803f80, 0x3f803f80};
    FENCE();
    BODY
    for (int i = 0; i < 4; ++i) out[8 * t + i] = c[i], out[8 * t + 4 + i] = e[i];
    out[1024 + t] = read;
}
"""
# Each entry contains the body of a kernel, the line of the finding, the line of the conflicting statement, the event,
# and the values.
WRONG = {
    "read": ("PRODUCT(c); // OTHER\nCOMMIT();\nSET(read, c[0]); // HERE\nWAIT(0);", "reads registers", {"read": 1}),
    "read behind an uncommitted": (
        "PRODUCT(c); // OTHER\nWAIT(0);\nSET(read, c[0]); // HERE\nCOMMIT(); WAIT(0);", "reads registers", {"read": 1},
    ),
    "read of the newer of two": (
        "PRODUCT(e); COMMIT();\nPRODUCT(c); // OTHER\nCOMMIT(); WAIT(1);\nSET(read, c[0] + e[0]); // HERE\nWAIT(0);",
        "reads registers",
        {"read": 17},
    ),
    "store": (
        "PRODUCT(c); // OTHER\nCOMMIT();\nout[1300 + t] = c[1]; // HERE\nWAIT(0);", "reads registers", {"stored": 1},
    ),
    "store of a copy": (
        'PRODUCT(c); // OTHER\nCOMMIT();\nfloat x; asm volatile("mov.f32 %0, %1;" : "=f"(x) : "f"(c[1]));\n'
        "out[1300 + t] = x; // HERE\nWAIT(0);",
        "reads registers",
        {"stored": 1},
    ),
    "scale": (
        "PRODUCT(c); // OTHER\nCOMMIT();\n"
        'asm volatile("mul.f32 %0, %0, 0f40000000;" : "+f"(c[0])); // HERE\nWAIT(0);',
        "reads registers",
        {"c0": 17},
    ),
    "write": (
        'PRODUCT(c); // OTHER\nCOMMIT();\nasm volatile("cvt.rn.f32.s32 %0, %1;" : "+f"(c[0]) : "r"(t)); // HERE\n'
        "WAIT(0);",
        "writes registers",
        {"c0": 17},
    ),
    "A overwritten": ("LEFT(c); // OTHER\nCOMMIT();\nLOAD(); // HERE\nWAIT(0); f[0] += t; out[1300 + t] = f[0];",
        "overwrites A in registers", {}),
    "in a loop": (
        "for (int i = 0; i < turns; ++i) {\nPRODUCT(c); // OTHER\nCOMMIT();\nSET(read, c[0]); // HERE\n}\nWAIT(0);",
        "reads registers", {},
    ),
    "unfenced": (
        'asm volatile("mul.f32 %0, %0, 0f40000000;" : "+f"(c[0])); // OTHER\nPRODUCT(c); // HERE\nCOMMIT(); WAIT(0);',
        "has written since its last wgmma.fence",
        {"c0": 18},
    ),
}  # fmt: skip
RIGHT = {
    "read": "PRODUCT(c); COMMIT(); WAIT(0); SET(read, c[0]);",
    "accumulate": "PRODUCT(c); PRODUCT(c); COMMIT(); PRODUCT(c); COMMIT(); WAIT(0);",
    "older of two": "PRODUCT(c); COMMIT(); PRODUCT(e); COMMIT(); WAIT(1); SET(read, c[0]); WAIT(0);",
    "scale": 'PRODUCT(c); COMMIT(); WAIT(0); asm volatile("mul.f32 %0, %0, 0f40000000;" : "+f"(c[0])); FENCE(); '
    "PRODUCT(c); COMMIT(); WAIT(0);",
    "A": "LEFT(c); COMMIT(); WAIT(0); LOAD(); FENCE(); LEFT(c); COMMIT(); WAIT(0); f[0] += t; out[1300 + t] = f[0];",
    "copies": 'PRODUCT(c); COMMIT(); float x; asm volatile("mov.f32 %0, %1;" : "=f"(x) : "f"(c[1])); WAIT(0); '
    "read = x;",
    "loop": "for (int i = 0; i < turns; ++i) { PRODUCT(c); COMMIT(); PRODUCT(e); COMMIT(); WAIT(1); } WAIT(0);",
    "branches": "if (turns > 1) { PRODUCT(c); COMMIT(); WAIT(0); } else { PRODUCT(e); COMMIT(); WAIT(0); }",
    "path": "if (turns > 9) { PRODUCT(c); COMMIT(); } if (turns < 9) SET(read, c[0]); WAIT(0);",
    "cleared": "PRODUCT(c); COMMIT(); WAIT(0); for (int i = 0; i < 4; ++i) c[i] = 0; PRODUCT(c); COMMIT(); WAIT(0);",
}


@cache
def compiled(body: str) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE.replace("BODY", body), "k")


def launched(body: str, sanitize: bool = True, strict: bool = False) -> tuple[tuple[simulate.Finding, ...], np.ndarray]:
    out = np.zeros(2048, np.float32)
    gpu = simulate.Device(schedules=4 if sanitize else 1, sanitize=sanitize, strict=strict)
    return gpu.launch(simulate.Config(1, 128), compiled(body), out, 3).findings, out


def line_of(body: str, mark: str) -> int:
    return 1 + next(i for i, line in enumerate(SOURCE.replace("BODY", body).splitlines()) if line.endswith(mark))


@pytest.mark.parametrize("name", WRONG)
def test_a_touch_is_found(name):
    body, text, _ = WRONG[name]
    findings, _ = launched(body)
    assert {(each.kind, each.severity) for each in findings} == {("wgmma-order", "error")}, findings
    found = [each for each in findings if text in each.happened]
    assert {each.source[-1].line for each in found} == {line_of(body, "// HERE")}
    assert {each.other[-1].line for each in found} == {line_of(body, "// OTHER")}


@pytest.mark.parametrize("name", [name for name, (_, _, values) in WRONG.items() if values])
@pytest.mark.parametrize("sanitize", [True, False])
def test_an_early_access_gives_a_possible_value(name, sanitize):
    body, _, values = WRONG[name]
    _, out = launched(body, sanitize)
    got = {"read": out[1024:1152], "stored": out[1300:1428], "c0": out[:1024:8]}
    assert {each: {*got[each].tolist()} for each in values} == {each: {value} for each, value in values.items()}


def test_a_read_in_the_open_group_is_advice():
    """A read of wgmma registers in an open group is advice, because Triton adds partial sums with such reads, and ptxas
    13.4 inserts a wait."""
    body = "PRODUCT(c); // OTHER\nSET(read, c[0]); // HERE\nCOMMIT(); WAIT(0);"
    findings, out = launched(body)
    (finding,) = findings
    assert (finding.kind, finding.severity) == ("wgmma-order", "advice") and "C7517" in finding.happened
    assert (finding.source[-1].line, finding.other[-1].line) == (line_of(body, "// HERE"), line_of(body, "// OTHER"))
    assert {*out[1024:1152].tolist()} == {17}
    assert [each.severity for each in launched(body, strict=True)[0]] == ["error"]


def test_a_product_whose_a_is_overwritten_has_undefined_sums():
    _, out = launched(WRONG["A overwritten"][0])
    assert np.isnan(out[:1024].reshape(128, 8)[:, :4]).all()


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_kernel_is_silent(name):
    findings, out = launched(RIGHT[name])
    assert findings == () and np.isfinite(out).all()


def test_right_kernels_have_right_sums():
    assert {*launched(RIGHT["accumulate"])[1][:1024:8].tolist()} == {49}
    assert {*launched(RIGHT["loop"])[1][4:1024:8].tolist()} == {48}
    assert {*launched(RIGHT["copies"])[1][1024:1152].tolist()} == {17}


def test_a_product_of_the_earlier_cta_in_its_place():
    """The registers of a CTA are free when the CTA ends, even if no thread has waited for its wgmma."""
    body = "if (blockIdx.x == 0) { PRODUCT(c); COMMIT(); return; }\nSET(read, c[0]);"
    gpu, out = simulate.Device(schedules=1, multiprocessor_count=1), np.zeros(1300 + 128, np.float32)
    config = simulate.Config(2, 128, shmem_size=200_000)
    findings = gpu.launch(config, compiled(body), out, 3).findings
    assert {each.blocks for each in findings} <= {((0, 0, 0),)}
    assert (out[1024 : 1024 + 128] == 1).all()
