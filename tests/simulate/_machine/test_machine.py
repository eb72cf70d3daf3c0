"""Tests of the simulated machine, with running and waiting threads, and with a report at the end of every launch."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from cuda_tma import simulate
from cuda_tma.simulate import Config

SOURCE = r"""
extern "C" __device__ int printf(const char*, ...);
extern "C" __device__ void __assertfail(const char*, const char*, unsigned, const char*, size_t);
#define assert(e) ((e) ? (void)0 : __assertfail(#e, "this.cu", 7, __func__, 1))

extern "C" __global__ void saxpy(float a, const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void sums(const int* x, int* out, int n) {
    __shared__ int s[96];
    const int t = threadIdx.x;
    s[t] = 0;
    for (int i = blockIdx.x * 96 + t; i < n; i += 96 * gridDim.x) s[t] += x[i];
    __syncthreads();
    for (int d = 48; d > 2; d /= 2) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = s[0] + s[1] + s[2];
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fib(threadIdx.x % 7); }

__device__ __noinline__ int plus(int x) { return x + 1; }
__device__ __noinline__ int twice(int x) { return 2 * x; }
extern "C" __global__ void pointers(int* out, int first) {
    int (*f)(int) = (threadIdx.x + first) % 2 ? plus : twice;
    out[threadIdx.x] = f(threadIdx.x);
}

extern "C" __global__ void counters(int* out, int n) {
    __shared__ int c;
    if (threadIdx.x == 0) c = 0;
    __syncthreads();
    for (int i = 0; i < int(threadIdx.x % 5); ++i) atomicAdd(&c, i);
    __syncthreads();
    out[threadIdx.x] = c;
    out[n + 1 + atomicAdd(out + n, 1)] = blockIdx.x;
}

extern "C" __global__ void prints() {
    if (threadIdx.x < 2) printf("%d of %s: %5.2f %lld %x %%\n", threadIdx.x, "two", 1.5 * threadIdx.x, 1ll << 40, 255u);
}

extern "C" __global__ void flag(volatile int* flag, int* out) {
    if (threadIdx.x == 0) {
        while (*flag == 0) {}
        out[0] = 1;
    }
    if (threadIdx.x == 1) *flag = 1;
}

extern "C" __global__ void flag_of_later_block(volatile int* flag, int* out) {
    if (blockIdx.x == 0) while (*flag == 0) {}
    if (blockIdx.x == gridDim.x - 1) *flag = 1;
    out[blockIdx.x] = 1;
}

extern "C" __global__ void table(int* out) {
    const int t = threadIdx.x;
    switch (out[t]) {
        case 0: out[t] = 5; break;
        case 1: out[t] = 7 * t; break;
        case 2: out[t] += 8; break;
        case 3: out[t] *= t; break;
        case 4: out[t] = t ^ 3; break;
        case 5: out[t] = 99; break;
        default: out[t] = -1;
    }
}

extern "C" __global__ void local(int* out, int step) {
    int a[40], s = 0;
    for (int i = 0; i < 40; ++i) a[i] = i * threadIdx.x;
    for (int i = 0; i < 40; ++i) s += a[i * step % 40] * i;
    out[threadIdx.x] = s;
}

extern "C" __global__ void votes(int* out) {
    const int t = threadIdx.x;
    if (t % 2) __syncwarp(); else __syncwarp();
    out[t] = __syncthreads_count(t % 3 == 0) + 1000 * __syncthreads_and(t < 1000) + 2000 * __syncthreads_or(t == 70);
}

struct Pair { char tag; double* to; };
extern "C" __global__ void structs(Pair pair, short s, double d, bool b) { pair.to[pair.tag] = s + d + b; }

extern "C" __global__ void cluster(int* out) {
    __shared__ int mine;
    unsigned rank, size, remote;
    asm volatile("mov.u32 %0, %%cluster_ctarank; mov.u32 %1, %%cluster_nctarank;" : "=r"(rank), "=r"(size));
    if (threadIdx.x == 0) mine = 10 * blockIdx.x;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    const unsigned here = __cvta_generic_to_shared(&mine);
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(here), "r"((rank + 1) % size));
    int theirs;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(theirs) : "r"(remote));
    if (threadIdx.x == 0) out[blockIdx.x] = theirs;
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

extern "C" __global__ void named(int* out) {   // the second warp waits for the first
    __shared__ int box;
    if (threadIdx.x < 32) { box = 3; asm volatile("bar.arrive 1, 64;" ::: "memory"); }
    else { asm volatile("bar.sync 1, 64;" ::: "memory"); out[threadIdx.x - 32] = box; }
}

__device__ int counter = 41;
__constant__ int fixed[3] = {5, 6, 7};
__device__ const int* pointer = &counter;
extern "C" __global__ void variables(int* out) { out[0] = ++counter; out[1] = fixed[out[2]]; out[2] = *pointer; }

// ---- what goes wrong ----

extern "C" __global__ void endless(int* out) { while (*(volatile int*)out == 0) {} }
extern "C" __global__ void wild(int* out) { out[1 << 28] = 1; }
extern "C" __global__ void behind(int* out, int n) { out[n + threadIdx.x] = 1; }
extern "C" __global__ void odd(char* out) { *(int*)(out + 2) = 1; }
extern "C" __global__ void traps() { if (threadIdx.x == 5) __trap(); }
extern "C" __global__ void asserts(int n) { assert(threadIdx.x < n); }
extern "C" __global__ void shared_end(int* out) { extern __shared__ int s[]; out[0] = s[*out]; }
__device__ __noinline__ int deep(int n, int last) {
    volatile int a[256];
    a[n % 256] = n;
    return n == last ? 0 : (deep(n + 1, last) ^ a[n % 3]) * 3 + n;
}
extern "C" __global__ void overflows(int* out) { out[0] = deep(0, 1 << 20); }
extern "C" __global__ void half_barrier() {
    if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 2, 64;");
}
extern "C" __global__ void uninitialized() {
    __shared__ unsigned long long full;
    asm volatile("mbarrier.arrive.shared.b64 _, [%0];" :: "r"((unsigned)__cvta_generic_to_shared(&full)));
}
extern "C" __global__ void initialized_twice() {   // by the first thread of each warp
    __shared__ unsigned long long full;
    if (threadIdx.x % 32 == 0)
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"((unsigned)__cvta_generic_to_shared(&full)));
}
extern "C" __global__ void never(unsigned bytes) {
    __shared__ unsigned long long full;
    const unsigned at = __cvta_generic_to_shared(&full);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 2;" :: "r"(at));
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" :: "r"(at), "r"(bytes));
    }
    __syncthreads();
    for (unsigned done = 0; !done;)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(at) : "memory");
}
extern "C" __global__ void no_such_cta() {
    unsigned remote;
    asm volatile("mapa.shared::cluster.u32 %0, %1, 7;" : "=r"(remote) : "r"(1024));
    if (threadIdx.x == 0) asm volatile("st.shared::cluster.u32 [%0], 1;" :: "r"(remote) : "memory");
}
"""


@pytest.fixture(scope="module")
def gpu() -> simulate.Device:
    return simulate.Device(multiprocessor_count=2)


@pytest.fixture(scope="module")
def ptx(gpu) -> str:
    return gpu.compile(SOURCE, "saxpy").ptx


@pytest.fixture
def run(gpu, ptx):
    def run(name, config, *arguments, **settings):
        report = gpu.launch(config, gpu.load(ptx, name), *arguments, **settings)
        report.raise_for_errors()
        return report

    return run


def ints(count, start=0):
    return np.arange(start, start + count, dtype=np.int32)


# ---- results ----


def test_saxpy_over_more_blocks_than_run_at_once(run):
    x, y = ints(100_001).astype(np.float32), np.full(100_001, 0.5, np.float32)
    report = run("saxpy", Config(391, 256), 2.0, x, y, x.size)
    assert np.array_equal(y, 2 * x + 0.5)
    assert report.thread_instructions > 391 * 256 * 10


def test_a_tree_of_sums_with_barriers(run):
    x, out = ints(10_000), np.zeros(7, np.int32)
    run("sums", Config(7, 96), x, out, x.size)
    assert out.sum() == x.sum() and np.all(out > 0)


def test_recursion_and_local_variables(run):
    out = np.zeros(40, np.int32)
    run("recursion", Config(1, 40), out)
    assert out.tolist() == [[0, 1, 1, 2, 3, 5, 8][i % 7] for i in range(40)]
    run("local", Config(1, 40), out, 3)
    assert out.tolist() == [t * sum(i * 3 % 40 * i for i in range(40)) for t in range(40)]


def test_functions_by_address(run):
    out = np.zeros(5, np.int32)
    run("pointers", Config(1, 5), out, 0)
    assert out.tolist() == [0, 2, 4, 4, 8]


def test_atomics_take_turns(run):
    out = np.zeros(1000, np.int32)
    run("counters", Config(3, 100), out, 100)
    assert set(out[:100]) == {200} and out[100] == 300
    assert np.array_equal(np.sort(out[101:401]), np.repeat([0, 1, 2], 100))


def test_printf(run):
    assert run("prints", Config(2, 32)).output == 2 * (
        "0 of two:  0.00 1099511627776 ff %\n1 of two:  1.50 1099511627776 ff %\n"
    )


def test_a_spinning_thread_does_not_starve_the_thread_that_sets_the_flag(run):
    out = np.zeros(1, np.int32)
    run("flag", Config(1, 32), np.zeros(1, np.int32), out, max_steps=50_000)
    assert out[0] == 1


def test_a_block_may_wait_for_a_later_block(run):
    """A block may wait for a later block, which begins in the slot of a block that has ended."""
    out = np.zeros(20, np.int32)
    run("flag_of_later_block", Config(20, 1024), np.zeros(1, np.int32), out, max_steps=100_000)
    assert out.all()


def test_branches_by_table(run):
    out = ints(16) % 8
    run("table", Config(1, 16), out)
    assert out.tolist() == [5, 7, 10, 9, 7, 99, -1, -1, 5, 63, 10, 33, 15, 99, -1, -1]


def test_barriers_count_and_vote(run):
    out = np.zeros(71, np.int32)
    run("votes", Config(1, 71), out)
    assert set(out) == {24 + 1000 + 2000}


def test_named_barriers(run):
    out = np.zeros(32, np.int32)
    run("named", Config(1, 64), out)
    assert set(out) == {3}


def test_structs_and_numbers_at_their_offsets(run, gpu):
    to = np.zeros(4)
    pair = np.array([(2, gpu.address(to))], np.dtype([("tag", "i1"), ("to", "u8")], align=True)).tobytes()
    run("structs", Config(1, 1), pair, -3, 0.25, True)
    assert to.tolist() == [0, 0, -1.75, 0]


def test_shared_memory_of_another_cta(run):
    out = np.zeros(8, np.int32)
    run("cluster", Config(grid=2, block=64, cluster=4), out)
    assert out.tolist() == [10, 20, 30, 0, 50, 60, 70, 40]


def test_variables_of_a_module_last_as_long_as_the_kernel(gpu, ptx):
    kernel = gpu.load(ptx, "variables")
    for expected in (42, 43):
        out = np.array([0, 0, 1], np.int32)
        gpu.launch(Config(1, 1), kernel, out).raise_for_errors()
        assert out.tolist() == [expected, 6, expected]


# ---- memory ----


def test_views_of_an_array_are_one_memory(gpu, run):
    whole = ints(10)
    assert gpu.address(whole[3:]) == gpu.address(whole) + 12
    assert gpu.address(whole) % 512 == 0
    run("saxpy", Config(1, 4), 1.0, whole.view(np.float32)[0:], whole.view(np.float32)[5:], 4)
    assert whole[:5].tolist() == [0, 1, 2, 3, 4]


def test_a_freed_array_is_not_memory(gpu, ptx):
    address = gpu.address(ints(4).copy())
    gc.collect()
    (finding,) = gpu.launch(Config(1, 1), gpu.load(ptx, "behind"), address, 0).findings
    assert finding.kind == "out-of-bounds"


def test_read_only_memory_is_not_written(gpu, ptx):
    out = ints(4)
    out.flags.writeable = False
    (finding,) = gpu.launch(Config(1, 1), gpu.load(ptx, "behind"), out, 0).findings
    assert finding.kind == "out-of-bounds" and "read-only" in finding.message
    assert out.tolist() == [0, 1, 2, 3]


# ---- errors of kernels ----

DEFECTS = {
    "endless": ((1, 32), (np.zeros(1, np.int32),), "no-progress", "a loop does not end"),
    "wild": ((1, 1), (np.zeros(1, np.int32),), "out-of-bounds", "a write of 4 bytes at 0x"),
    "behind": (
        (1, 32),
        (np.zeros(8, np.int32), 8),
        "out-of-bounds",
        "4 bytes beyond the end of the array of shape",
    ),
    "odd": ((1, 1), (np.zeros(8, np.uint8),), "misaligned", "not a multiple of 4"),
    "traps": ((1, 32), (), "fault", "trap"),
    "asserts": ((1, 8), (5,), "fault", "this.cu:7: asserts: assertion `threadIdx.x < n` failed"),
    "shared_end": (
        (1, 1),
        (np.full(1, 1 << 18, np.int32),),
        "out-of-bounds",
        "shared memory, of which the CTA has 0",
    ),
    "overflows": ((1, 1), (np.zeros(1, np.int32),), "fault", "stack overflow"),
    "half_barrier": ((1, 64), (), "deadlock", "barrier 1 of the CTA: 32 of 64 threads are missing"),
    "uninitialized": ((1, 1), (), "barrier-use", "no mbarrier has been initialized at `full` in block (0, 0, 0)"),
    "initialized_twice": (
        (1, 64),
        (),
        "barrier-use",
        "mbarrier.init initializes `full` in block (0, 0, 0), which is already an mbarrier",
    ),
    "never": ((1, 4), (768,), "deadlock", "`full`, parity 0: 1 of its 2 arrivals is missing, 768 bytes are missing"),
    "no_such_cta": ((1, 1), (), "cluster", "names CTA 7 of the cluster, which has 1"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_a_finding(gpu, ptx, name):
    config, arguments, kind, text = DEFECTS[name]
    report = gpu.launch(Config(*config), gpu.load(ptx, name), *arguments, max_steps=20_000)
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == (kind, "error")
    assert text in finding.message
    assert finding.source
    with pytest.raises(simulate.SimulationError, match=rf"(?s)saxpy.cu:\d+: error: .*\[{kind}\]"):
        report.raise_for_errors()


def test_a_finding_names_place_and_thread(gpu, ptx):
    (finding,) = gpu.launch(Config(3, 32), gpu.load(ptx, "traps")).findings
    line = 1 + SOURCE[: SOURCE.index("void traps()")].count("\n")
    assert (finding.source[0].line, finding.threads, finding.blocks) == (line, (5,), ((0, 0, 0), (1, 0, 0), (2, 0, 0)))


# ---- refusals ----


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((1.0, 0, 0), "kernel saxpy takes 4 arguments, and 3 were given"),
        ((1.0, 0, 0, 1 << 40), "argument 3 of kernel saxpy: 1099511627776 does not fit the parameter's 4 bytes"),
        ((b"123", 0, 0, 0), "argument 0 of kernel saxpy: .* a bytes was passed; bytes are for a struct"),
        ((1.0, "text", 0, 0), "argument 1 of kernel saxpy: .* a str was passed"),
        ((1, 0, 0, 1), r"argument 0 of kernel saxpy: .* the int 1 was passed; pass 1\.0"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(gpu, ptx, arguments, text):
    with pytest.raises((TypeError, OverflowError), match=text):
        gpu.launch(Config(1, 1), gpu.load(ptx, "saxpy"), *arguments)
