"""Tests of malicious kernels, which the simulator reports with bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config
from cuda_tma.simulate._warps import code as _code

SOURCE = r"""
__device__ __noinline__ int plus(int x) { return x + 1; }
__device__ __noinline__ int twice(int x) { return x * 2; }
typedef int (*Function)(int);
struct Functions { int count; const Function* first; };
__device__ const Function table[2] = {plus, twice};
__device__ Functions functions = {2, table};
struct Base { __device__ virtual int value(int x) const { return x; } };
struct Derived : Base { __device__ int value(int x) const override { return -x; } };

extern "C" __global__ void by_table(int* out) {
    const int i = threadIdx.x;
    const Base base; const Derived derived;
    const Base* chosen = i % 3 ? &base : &derived;
    out[i] = functions.first[i % functions.count](i) + 1000 * chosen->value(i);
}

__device__ __noinline__ int deeper(int n, int* out) { return n < 0 ? 0 : deeper(n + 1, out) * 3 + n; }
extern "C" __global__ void recurses(int* out) { out[0] = deeper(0, out); }

extern "C" __global__ void large_locals(int* out) {
    char values[100000];
    for (int i = 0; i < 100000; i += 10000) values[i + (out[0] & 1)] = i;
    if (values[out[0]] > 0) out[0] = 1;
}

extern "C" __global__ void larger_locals(int* out) {
    char values[300000];
    for (int i = 0; i < 300000; i += 10000) values[i + (out[0] & 1)] = i;
    out[0] = values[out[0]];
}

extern "C" __global__ void wild_local(int* out, int at) {
    int values[8];
    for (int i = 0; i < 8; ++i) values[i] = i;
    values[at] = 7;
    out[0] = values[out[0]];
}

extern "C" __global__ void barrier(int number) { asm volatile("bar.sync %0, 64;" ::"r"(number)); }
extern "C" __global__ void whole_barrier(int number) { asm volatile("bar.sync %0;" ::"r"(number)); }

extern "C" __global__ void keeps(int* out) {
    for (int i = 0; i < 20; ++i) {
        char* piece = static_cast<char*>(malloc(1 << 20));
        if (piece) piece[i] = 1;
        out[0] += piece != nullptr;
    }
}

extern "C" __global__ void unrolled(int* out) {
    __shared__ int values[64];
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
        values[threadIdx.x] = i + threadIdx.x;
        out[threadIdx.x] += values[63 - threadIdx.x];
    }
}

extern "C" __global__ void prints() {
    for (int i = 0; i < 100; ++i) printf("%10000d", i);
}
"""


@pytest.fixture(scope="module")
def launch():
    gpu = simulate.Device()
    ptx = gpu.compile(SOURCE, "by_table").ptx
    return lambda name, config, *arguments: gpu.launch(Config(*config), gpu.load(ptx, name), *arguments)


def test_functions_in_tables_of_tables_and_virtual_ones(launch):
    out, i = np.zeros(32, np.int32), np.arange(32)
    launch("by_table", (1, 32), out).raise_for_errors()
    np.testing.assert_array_equal(out, np.where(i % 2, i * 2, i + 1) + 1000 * np.where(i % 3, i, -i))


DEFECTS = {
    "recurses": ((64, 1024), (np.zeros(1, np.int32),), "fault", "stack overflow: calls are "),
    "larger_locals": ((1, 32), (np.zeros(1, np.int32),), "fault", "a thread needs 3000"),
    "wild_local": ((1, 1), (np.zeros(1, np.int32), 10**6), "out-of-bounds", "byte 4000000 of local memory"),
    "barrier": ((1, 64), (17,), "barrier-use", "barrier 17 does not exist; use one of the barriers 0 to 15"),
    "whole_barrier": ((1, 64), (16,), "barrier-use", "barrier 16 does not exist; use one of the barriers 0 to 15"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_a_finding(launch, name, monkeypatch):
    # The test uses a sixteenth of the limit on bytes of registers, with the same code path.
    monkeypatch.setattr(_code, "REGISTER_BYTES", 1 << 26)
    config, arguments, kind, text = DEFECTS[name]
    (finding,) = launch(name, config, *arguments).errors
    assert finding.kind == kind
    assert text in finding.message


def test_threads_of_large_local_memory_run_fewer_at_a_time(launch):
    """Threads with large local memory do not all run at once, because 16,384 of the test's threads would take 2 GB."""
    launch("large_locals", (64, 1024), np.zeros(1, np.int32)).raise_for_errors()


def test_copies_of_a_statement_are_one_cause(launch):
    """The unrolled loop of the test has eight instructions.

    The sanitizer reports only one finding for all pairs of these instructions."""
    findings = launch("unrolled", (1, 64), np.zeros(64, np.int32)).errors
    places = [(finding.source, finding.other) for finding in findings]
    assert {finding.kind for finding in findings} == {"race"}
    assert len(places) == len(set(places)) == 1
    assert sum(finding.count for finding in findings) > 2


def test_the_heap_has_an_end(launch):
    """The heap of a kernel has a limit of 8 MiB for all allocations together."""
    out = np.zeros(1, np.int32)
    launch("keeps", (1, 1), out).raise_for_errors()
    assert out[0] == 8


def test_printed_output_is_bounded(launch):
    report = launch("prints", (1, 32))
    assert len(report.output) < 5_000_000
    assert report.output.endswith("more than 4194304 characters: the rest is dropped\n")


def test_an_unknown_instruction_is_reported_with_its_line():
    source = 'extern "C" __global__ void looks(cudaTextureObject_t texture, float* out) {\n'
    source += "    out[0] = tex2D<float>(texture, 0.5f, 0.5f);\n}\n"
    with pytest.raises(simulate.UnsupportedInstruction, match=r"tex\.2d\.v4\.f32\.f32 \(.*looks.cu:2\)") as raised:
        simulate.Device().compile(source, "looks")
    assert raised.value.opcode == "tex.2d.v4.f32.f32"


def test_python_objects_are_not_numbers(launch):
    """The simulator refuses an array of Python objects, because a kernel would overwrite the pointers to the
    objects."""
    with pytest.raises(TypeError, match=r"a ndarray was passed \(DLPack only supports"):
        launch("keeps", (1, 1), np.array([None]))


@pytest.mark.parametrize(
    ("grid", "block", "cluster", "text"),
    [
        ((1, 65536), 1, None, r"grid=\(1, 65536, 1\) is too large; pass at most \(2147483647, 65535, 65535\)"),
        (1, (1, 1, 65), None, r"block=\(1, 1, 65\) is too large; pass at most \(1024, 1024, 64\)"),
        ((1, 65535), 1, (1, 2), r"grid times cluster=\(1, 131070, 1\)"),
    ],
)
def test_a_shape_that_no_launch_has(launch, grid, block, cluster, text):
    with pytest.raises(ValueError, match=text):
        launch("keeps", (grid, block, cluster), np.zeros(1, np.int32))


WARPS = r"""
__device__ __noinline__ void meet() { __syncthreads(); }
extern "C" __global__ void halves(int* o) {  // each half of a warp at a separate barrier
    if (threadIdx.x % 32 < 16) { o[threadIdx.x] = 1; __syncthreads(); } else { __syncthreads(); o[threadIdx.x] = 2; }
}
extern "C" __global__ void called(int* o) { if (threadIdx.x % 2) meet(); else meet(); o[threadIdx.x] = 1; }
extern "C" __global__ void half(int* o) {  // one half executes the first barrier, the other half the second
    if (threadIdx.x < 16) __syncthreads();
    o[threadIdx.x] = 1;
    __syncthreads();
}
extern "C" __global__ void votes(int* o) {
    if (threadIdx.x % 2) o[threadIdx.x] = __syncthreads_or(1); else o[threadIdx.x] = __syncthreads_or(0);
}
extern "C" __global__ void masks(int* o, unsigned mask, int which) {
    int t = threadIdx.x, v = 0;
    if (which == 0) v = __shfl_sync(mask, t, 0);
    if (which == 1) __syncwarp(mask);
    if (which == 2) v = __ballot_sync(mask, t & 1);
    if (which == 3) v = __match_any_sync(mask, t & 1);
    if (which == 4) v = __reduce_add_sync(mask, t);
    if (which == 5) asm volatile("{ .reg .pred p; elect.sync _|p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(v) : "r"(mask));
    o[t] = v;
}
// Correct cases: warps diverge but not threads of a warp, ended threads need not arrive, a barrier is not aligned, and
// masks contain the present threads.
extern "C" __global__ void right(int* o) {
    const int t = threadIdx.x;
    if (t == 70) return;
    if (t < 32) __syncthreads(); else __syncthreads();
    if (t % 2) asm volatile("barrier.sync 1;" ::: "memory"); else asm volatile("barrier.sync 1;" ::: "memory");
    if (t < 10) o[t] = __shfl_sync(0x3ff, t, 3); else if (t < 20) { __syncwarp(0xffc00); o[t] = __activemask(); }
    if (t >= 64 && t < 80) o[t] = __ballot_sync(__activemask(), 1);
    __syncthreads();
}
"""


@pytest.fixture(scope="module")
def warps():
    gpu = simulate.Device(sanitize=False)

    def run(name, threads, *arguments, **settings):
        o = np.zeros(128, np.int32)
        return gpu.launch(Config(1, threads), gpu.compile(WARPS, name), o, *arguments, **settings), o

    return run


@pytest.mark.parametrize("name", ["halves", "called", "half", "votes"])
@pytest.mark.parametrize("order", ["early", "random"])
def test_a_warp_that_parts_at_a_barrier(warps, name, order):
    report, _ = warps(name, 64, order=order)
    (finding,) = report.findings
    assert finding.kind == "barrier-divergence" and "execute different instructions for barrier 0" in finding.message
    assert finding.source and ".cu:" in finding.message


@pytest.mark.parametrize("which", range(6))
def test_a_mask_without_the_thread_that_names_it(warps, which):
    report, _ = warps("masks", 32, 0x0000FFFE, which)
    (finding,) = report.findings
    assert finding.kind == "barrier-divergence", finding
    assert "lane 0 of its warp names the mask 0x0000fffe, which does not contain that lane" in finding.message
    assert finding.threads == (0, *range(16, 32))


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_warps_that_part_rightly_are_not_accused(warps, order):
    for seed in range(5):
        report, o = warps("right", 96, order=order, seed=seed)
        assert report.findings == ()
        assert o[:10].tolist() == [3] * 10 and o[64] & 0xFFFF == 0xFFBF


@pytest.mark.parametrize("capability", [(8, 0), "sm_89"])
def test_a_device_before_tma(capability):
    with pytest.raises(ValueError, match=r"^compute_capability=.* has no TMA; pass \(9, 0\) or a later"):
        simulate.Device(capability)


def test_a_stride_that_no_map_holds():
    source = r"""
    extern "C" __global__ void k(void* map) {
        asm volatile("tensormap.replace.tile.global_stride.global.b1024.b64 [%0], 0, 100;" :: "l"(map) : "memory");
    }"""
    gpu = simulate.Device()
    map_ = np.zeros(256, np.uint8)
    map_[:128] = np.frombuffer(bytes(gpu.create_tensor_map(np.zeros((8, 32), np.float32), box_dim=(8, 32))), np.uint8)
    before = map_.copy()
    (finding,) = gpu.launch(simulate.Config(1, 1), gpu.compile(source, "k"), map_).errors
    assert (finding.kind, finding.source[0].line) == ("misaligned", 3)
    assert "global_stride 0 to 100 bytes, but the map can store only a multiple of 16, such as 96" in finding.message
    np.testing.assert_array_equal(map_, before)


ALLOCATES = """.version 8.8
.target sm_90a
.address_size 64
.func (.reg .u32 sum) squares(.reg .u32 n) {
    .reg .b32 i, value; .reg .b64 size, at, place; .reg .pred p;
    mul.wide.u32 size, n, 4;
    alloca.u64 at, size, 16;
    cvta.local.u64 at, at;
    mov.u32 i, 0;
fill: mad.wide.u32 place, i, 4, at;
    mul.lo.u32 value, i, i;
    st.u32 [place], value;
    add.u32 i, i, 1;
    setp.lt.u32 p, i, n;
    @p bra fill;
    mov.u32 sum, 0;
take: sub.u32 i, i, 1;
    mad.wide.u32 place, i, 4, at;
    ld.u32 value, [place];
    add.u32 sum, sum, value;
    setp.ne.u32 p, i, 0;
    @p bra take;
    ret;
}
.visible .entry k(.param .u64 out, .param .u32 most) {
    .reg .b32 t, n, sum, again; .reg .b64 to, saved, at; .reg .pred p;
    ld.param.u64 to, [out];
    ld.param.u32 n, [most];
    mov.u32 t, %tid.x;
    mad.wide.u32 to, t, 4, to;
    add.u32 n, n, t;
    mov.u32 again, 20;
repeat: stacksave.u64 saved;
    alloca.u64 at, 4096;
    st.local.u32 [at], t;
    call (sum), squares, (n);
    ld.local.u32 t, [at];
    stackrestore.u64 saved;
    sub.u32 again, again, 1;
    setp.ne.u32 p, again, 0;
    @p bra repeat;
    add.u32 sum, sum, t;
    st.global.u32 [to], sum;
    ret;
}
"""


def test_memory_of_a_size_that_threads_compute():
    """In the test, a function and its caller allocate stack memory in a loop, and the caller restores the stack after
    each iteration."""
    gpu, out = simulate.Device(), np.zeros(96, np.uint32)
    kernel = gpu.load(ALLOCATES, "k")
    assert gpu.launch(simulate.Config(1, 96), kernel, out, 5).findings == ()
    np.testing.assert_array_equal(out, [sum(i * i for i in range(5 + t)) + t for t in range(96)])
    (finding,) = gpu.launch(simulate.Config(1, 96), kernel, out, 2000).errors
    assert (finding.kind, finding.ptx_line, len(finding.threads)) == ("fault", 7, 47)
    assert finding.message.startswith("stack overflow: alloca requests 8380 bytes, more than the 8192 bytes that ")
