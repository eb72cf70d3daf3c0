"""Tests of the CUDA runtime with programs like those of nvcc, which register their kernels before main and call the
runtime."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests._intercept._programs import needs_compiler, run_program

DATA = Path(__file__).parents[2] / "data" / "fat_binaries"
pytestmark = needs_compiler
RUNTIME = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct { unsigned x, y, z; } dim3;
typedef struct { unsigned id, padding; union { unsigned cluster[3]; int number; char bytes[64]; } value; } attribute;
typedef struct { dim3 grid, block; size_t shared; void *stream; attribute *attributes; unsigned count; } config;
void **__cudaRegisterFatBinary(void *), __cudaUnregisterFatBinary(void **), __cudaRegisterFatBinaryEnd(void **);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
void __cudaRegisterVar(void **, void *, char *, const char *, int, size_t, int, int);
int cudaMalloc(void **, size_t);
int cudaFree(void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaGetLastError(void);
int cudaMemset(void *, int, size_t);
int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaPeekAtLastError(void);
int cudaMemcpyToSymbol(const void *, const void *, size_t, size_t, int), cudaDeviceSynchronize(void);
int cudaMemcpyFromSymbol(void *, const void *, size_t, size_t, int);
int cudaLaunchKernelExC(config *, const void *, void **);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *), cudaGetDeviceProperties(char *, int);
int __cudaPushCallConfiguration(dim3, dim3, size_t, void *);
int __cudaPopCallConfiguration(dim3 *, dim3 *, size_t *, void **);
int cudaGetDriverEntryPointByVersion(const char *, void **, unsigned, uint64_t, int *);
int cudaFuncGetAttributes(void *, const void *);
int cudaFuncSetAttribute(const void *, int, int), cudaEventCreate(void **), cudaEventRecord(void *, void *);
int cudaEventElapsedTime(float *, void *, void *), cudaStreamCreate(void **), cudaGetSymbolSize(size_t *, const void *);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMallocHost(void **, size_t);
int cudaPointerGetAttributes(void *, void *);
int cudaDeviceGetAttribute(int *, int, int), cudaGraphLaunch(void *, void *), cudaSetDevice(int);
int cudaGraphCreate(void **, int), cudaGraphAddMemsetNode(void **, void *, void *, size_t, void *);
int cudaGraphAddKernelNode(void **, void *, void *, size_t, void *);
int cudaGraphAddEmptyNode(void **, void *, void *, size_t);
int cudaGraphAddMemcpyNode1D(void **, void *, void *, size_t, void *, void *, size_t, int);
int cudaCreateTextureObject(void **, void *), cudaFreeAsync(void *, void *);
int cudaStreamBeginCapture(void *, int), cudaStreamEndCapture(void *, void **);
int cudaGraphInstantiate(void **, void *, uint64_t), cudaGraphExecDestroy(void *), cudaGraphDestroy(void *);
int cudaDeviceEnablePeerAccess(int, unsigned), cudaDeviceDisablePeerAccess(int);
int cudaStreamWaitEvent(void *, void *, unsigned), cudaStreamSynchronize(void *), cudaStreamIsCapturing(void *, int *);
int cudaMemsetAsync(void *, int, size_t, void *), cudaMallocAsync(void **, size_t, void *);
const char *cudaGetErrorString(int), *cudaGetErrorName(int);
#define EXPECT(call, expected)                                                                  \
    do {                                                                                        \
        int result = (call);                                                                    \
        if (result != (expected)) {                                                             \
            printf("line %d: %s is %d\n", __LINE__, #call, result);                             \
            exit(9);                                                                            \
        }                                                                                       \
    } while (0)
#define CHECK(call) EXPECT(call, 0)
static _Alignas(8) unsigned char image[] = {IMAGE};
static struct { int magic, version; const void *data; void *unused; } wrapper = {0x466243b1, 1, image, NULL};
static void **binary;
static void add_one(int *values) { (void)values; }
static int variable;
__attribute__((constructor)) static void before_main(void) {
    binary = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(binary, (void *)add_one, "add_one", "add_one", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(binary, &variable, "absent", "absent", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(binary);
}
static int values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static void show(void) {
    for (int i = 0; i < 8; ++i)
        printf("%d ", values[i]);
    fflush(stdout);
}
int main(void) {
    int *given = NULL;
    void *arguments[] = {&given};
    (void)arguments;
"""
LAUNCH = r"""
    CHECK(cudaMalloc((void **)&given, sizeof values));
    CHECK(cudaMemcpy(given, values, sizeof values, 1));
    CHECK(__cudaPushCallConfiguration((dim3){1, 1, 1}, (dim3){THREADS, 1, 1}, 0, NULL));
    dim3 grid, block;
    size_t shared;
    void *stream;
    CHECK(__cudaPopCallConfiguration(&grid, &block, &shared, &stream));
    EXPECT(cudaLaunchKernel((void *)add_one, grid, block, arguments, shared, stream), STATUS);
    EXPECT(cudaGetLastError(), STATUS);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyAsync(values, given, sizeof values, 2, NULL));
    CHECK(cudaFree(given));
    show();
    return 0;
}
"""

QUESTIONS = r"""
    char properties[2000], found[200], pointer[200];
    float milliseconds;
    void *first, *last, *stream, *entry, *host;
    int status = -1, number;
    CHECK(cudaSetDevice(0));
    EXPECT(cudaSetDevice(1), 101);
    EXPECT(cudaDeviceEnablePeerAccess(0, 0), 101);
    EXPECT(cudaDeviceDisablePeerAccess(0), 705);
    CHECK(cudaGetDeviceProperties(properties, 0));
    memcpy(&number, properties + 360, 4);
    EXPECT(number, 9); /* major */
    memcpy(&number, properties + 672, 4);
    EXPECT(number, 232448); /* sharedMemPerBlockOptin */
    CHECK(cudaDeviceGetAttribute(&number, 75, 0));
    EXPECT(number, 9);
    CHECK(cudaFuncGetAttributes(found, (void *)add_one));
    memcpy(&number, found + 24, 4);
    EXPECT(number, 1024); /* maxThreadsPerBlock */
    memcpy(&number, found + 32, 4);
    EXPECT(number, 90); /* ptxVersion */
    CHECK(cudaFuncSetAttribute((void *)add_one, 8, 200000));
    EXPECT(cudaFuncSetAttribute((void *)add_one, 8, 300000), 1);
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, 0, &status));
    EXPECT(status, 0);
    EXPECT(entry == NULL, 0);
    CHECK(cudaGetDriverEntryPointByVersion("cuNothing", &entry, 12000, 0, &status));
    EXPECT(status, 1);
    CHECK(cudaEventCreate(&first));
    CHECK(cudaEventCreate(&last));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventRecord(first, stream));
    CHECK(cudaEventRecord(last, stream));
    CHECK(cudaEventElapsedTime(&milliseconds, first, last));
    CHECK(cudaMallocHost(&host, 16));
    CHECK(cudaPointerGetAttributes(pointer, host));
    memcpy(&number, pointer, 4);
    EXPECT(number, 1);
    CHECK(cudaPointerGetAttributes(pointer, values));
    memcpy(&number, pointer, 4);
    EXPECT(number, 0);
    EXPECT(strcmp(cudaGetErrorString(2), "out of memory"), 0);
    EXPECT(strcmp(cudaGetErrorName(999), "cudaErrorUnknown"), 0);
    EXPECT(cudaCreateTextureObject(&entry, NULL), 801);
    puts("all");
    return 0;
}
"""


@pytest.fixture
def run(tmp_path):
    """Return a function that runs a C program with a fat binary."""

    def run(text: str, image: bytes | str = "add_one_size.fatbin"):
        data = (DATA / image).read_bytes() if isinstance(image, str) else image
        beginning = RUNTIME.replace("IMAGE", ", ".join(map(str, data)))
        return run_program(tmp_path, beginning + text, "cudart")

    return run


def launch(threads: int = 8, status: int = 0) -> str:
    return LAUNCH.replace("THREADS", str(threads)).replace("STATUS", str(status))


def test_a_launch_has_its_results(run):
    ran = run(launch())
    assert ran.status == 0 and ran.printed == "2 3 4 5 6 7 8 9 ", ran
    assert [(each["kernel"], each["grid"], each["block"]) for each in ran.launches] == [
        ("add_one", [1, 1, 1], [8, 1, 1])
    ]


def test_a_wrong_launch_is_found(run):
    ran = run(launch(threads=9))
    assert ran.status == 1 and set(ran.kinds) == {"out-of-bounds"}, ran


def test_a_kernel_without_ptx_is_skipped_by_its_name(run):
    ran = run(launch(status=209), "machine_code.fatbin")
    assert ran.status == 3 and ran.printed == "1 2 3 4 5 6 7 8 ", ran
    assert ("add_one", "the module of add_one contains no PTX for this compute capability") in ran.skipped
    assert any("Remedy: compile with -gencode arch=compute_90a,code=compute_90a" in why for _, why in ran.skipped)


def test_a_damaged_binary_ends_with_a_sentence(run):
    image = bytearray((DATA / "add_one_size.fatbin").read_bytes())
    # The first entry of the fat binary has a wrong size.
    image[26] = image[27] = 0xFF
    ran = run(launch(status=218), bytes(image))
    assert ran.status == 3 and ran.printed == "1 2 3 4 5 6 7 8 ", ran
    assert ("add_one", "the module of add_one contains PTX that cannot be read") in ran.skipped
    assert any("of a fat binary" in why for _, why in ran.skipped), ran.skipped


def test_an_image_that_is_not_a_fat_binary_gives_a_sentence(run):
    image = bytearray((DATA / "add_one_size.fatbin").read_bytes())
    # The header of the fat binary has a wrong total size of the entries.
    image[12:16] = b"\xff" * 4
    ran = run(
        launch(status=200).replace("EXPECT", "EXPECT(cudaMemcpyToSymbol(&variable, values, 4, 0, 1), 200); EXPECT", 1),
        bytes(image),
    )
    assert ran.status == 3, ran
    damaged = "is no fat binary, or one whose header is damaged"
    assert ran.skipped == [(name, f"the module of {name} {damaged}") for name in ("absent", "add_one")]


def test_attributes_of_a_launch(run):
    """The test launches a kernel with a cluster size that does not divide the grid."""
    ran = run(
        r"""
    attribute cluster = {4, 0, {.cluster = {2, 1, 1}}};
    config config = {{4, 1, 1}, {8, 1, 1}, 0, NULL, &cluster, 1};
    CHECK(cudaMallocManaged((void **)&given, sizeof values, 1));
    memset(given, 0, sizeof values);
    CHECK(cudaLaunchKernelExC(&config, (void *)add_one, arguments));
    config.grid.x = 3;
    EXPECT(cudaLaunchKernelExC(&config, (void *)add_one, arguments), 1);
    return 0;
}
"""
    )
    assert ran.launches[0]["cluster"] == [2, 1, 1] and ran.launches[0]["grid"] == [2, 1, 1], ran


def test_queries_of_a_program_before_its_first_launch(run):
    ran = run(QUESTIONS)
    assert ran.printed == "all\n", ran
    assert any("cudaCreateTextureObject" in note for note in ran.notes)


def test_wrong_calls_end_with_an_error(run):
    ran = run(
        r"""
    size_t size;
    dim3 one = {1, 1, 1};
    EXPECT(cudaMalloc(NULL, 4), 1);
    EXPECT(cudaMalloc((void **)&given, 100ull << 30), 2);
    EXPECT(cudaPeekAtLastError(), 2);
    EXPECT(cudaMemcpy(NULL, values, 4, 1), 1);
    EXPECT(cudaMemcpy(NULL, NULL, 0, 4), 0);
    EXPECT(cudaMemcpy(values, values, 4, 9), 21);
    EXPECT(cudaFree((void *)values), 1);
    EXPECT(cudaLaunchKernel(NULL, one, one, arguments, 0, NULL), 98);
    EXPECT(cudaLaunchKernel((void *)add_one, one, one, NULL, 0, NULL), 1);
    EXPECT(cudaLaunchKernel((void *)add_one, one, (dim3){2048, 1, 1}, arguments, 0, NULL), 9);
    EXPECT(cudaLaunchKernel((void *)add_one, (dim3){0, 1, 1}, one, arguments, 0, NULL), 9);
    EXPECT(cudaLaunchKernelExC(NULL, (void *)add_one, arguments), 1);
    EXPECT(cudaMemcpyToSymbol(&variable, values, 4, 0, 1), 13);
    EXPECT(cudaMemcpyToSymbol(values, values, 4, 0, 1), 13);
    EXPECT(cudaGetSymbolSize(&size, NULL), 13);
    EXPECT(cudaFuncGetAttributes(NULL, (void *)add_one), 1);
    EXPECT(cudaGetDeviceProperties(NULL, 0), 1);
    EXPECT(cudaEventCreate(NULL), 1);
    EXPECT(cudaStreamCreate(NULL), 1);
    EXPECT(cudaGetDriverEntryPointByVersion(NULL, NULL, 12000, 0, NULL), 1);
    __cudaUnregisterFatBinary(NULL);
    __cudaUnregisterFatBinary(binary);
    EXPECT(cudaLaunchKernel((void *)0, one, one, arguments, 0, NULL), 98);
    puts("all");
    return 0;
}
"""
    )
    assert ran.printed.startswith("all\n"), ran
    # The fault is the call of cudaFree(values).
    assert [found["kind"] for each in ran.launches for found in each["findings"]] == ["fault"]


def test_a_captured_graph_runs_when_it_is_launched(run):
    """In the test, a second stream joins the capture of a graph by an event. The graph also sets and reads memory."""
    ran = run(
        r"""
    void *first, *second, *event, *graph, *executable;
    int status;
    dim3 one = {1, 1, 1}, eight = {8, 1, 1};
    CHECK(cudaStreamCreate(&first));
    CHECK(cudaStreamCreate(&second));
    CHECK(cudaEventCreate(&event));
    CHECK(cudaMalloc((void **)&given, sizeof values));
    CHECK(cudaStreamBeginCapture(first, 0));
    EXPECT(cudaStreamBeginCapture(NULL, 0), 900);
    EXPECT((cudaStreamIsCapturing(first, &status), status), 1);
    CHECK(cudaMemsetAsync(given, 0, sizeof values, first));
    CHECK(cudaEventRecord(event, first));
    CHECK(cudaStreamWaitEvent(second, event, 0));
    CHECK(cudaLaunchKernel((void *)add_one, one, eight, arguments, 0, second));
    CHECK(cudaLaunchKernel((void *)add_one, one, eight, arguments, 0, second));
    CHECK(cudaMemcpyAsync(values, given, sizeof values, 2, second));
    CHECK(cudaEventRecord(event, second));
    CHECK(cudaStreamWaitEvent(first, event, 0));
    EXPECT(cudaStreamSynchronize(first), 900);
    CHECK(cudaMallocAsync((void **)&event, 4, first) + cudaFreeAsync(event, first));
    CHECK(cudaStreamEndCapture(first, &graph));
    EXPECT(cudaStreamEndCapture(first, &graph), 903);
    show();
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphDestroy(graph));
    for (int i = 0; i < 2; ++i)
        CHECK(cudaGraphLaunch(executable, first));
    CHECK(cudaStreamSynchronize(second));
    show();
    CHECK(cudaGraphExecDestroy(executable));
    EXPECT(cudaGraphExecDestroy(executable), 1);
    EXPECT(cudaGraphLaunch(executable, first), 1);
    return 0;
}
"""
    )
    assert ran.status == 0 and ran.printed == "1 2 3 4 5 6 7 8 " + "2 " * 8 and len(ran.launches) == 4, ran


PARTS = r"""
    static const char kernel[] = HEADER ".extern .func (.param .b32 r) next(.param .b32 g);\n"
        ".visible .entry add_one(.param .u64 values) {\n.reg .b64 %rd<4>; .reg .b32 %r<4>;\n"
        "ld.param.u64 %rd1, [values];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 4;\n"
        "add.s64 %rd3, %rd1, %rd2;\nld.global.u32 %r2, [%rd3];\n{ .param .b32 p; st.param.b32 [p], %r2;\n"
        ".param .b32 q; call.uni (q), next, (p);\nld.param.b32 %r3, [q]; }\nst.global.u32 [%rd3], %r3;\nret;\n}\n";
    static const char function[] = HEADER ".visible .func (.param .b32 r) next(.param .b32 g) {\n.reg .b32 %r<3>;\n"
        "ld.param.u32 %r1, [g];\nadd.u32 %r2, %r1, 100;\nst.param.b32 [r], %r2;\nret;\n}\n";
    static const void *parts[] = {kernel, function, NULL};
    wrapper.version = 2;
    wrapper.unused = parts;
"""


def test_device_code_of_several_files_is_linked(run):
    header = '".version 8.0\\n.target sm_90\\n.address_size 64\\n"'
    ran = run(PARTS.replace("HEADER", header) + launch(), "machine_code.fatbin")
    assert ran.status == 0 and ran.printed == "101 102 103 104 105 106 107 108 ", ran


def test_a_graph_runs_the_nodes_that_a_program_adds(run):
    ran = run(
        r"""
    struct { const void *symbol; dim3 grid, block; unsigned shared; void **values, **extra; } kernel;
    struct { void *target; size_t pitch; unsigned value, bytes; size_t width, height; } fill;
    void *graph, *executable, *node;
    CHECK(cudaMalloc((void **)&given, sizeof values));
    CHECK(cudaGraphCreate(&graph, 0));
    fill.target = given, fill.pitch = 0, fill.value = 6, fill.bytes = 4, fill.width = 8, fill.height = 1;
    CHECK(cudaGraphAddMemsetNode(&node, graph, NULL, 0, &fill));
    kernel.symbol = (void *)add_one, kernel.grid = (dim3){1, 1, 1}, kernel.block = (dim3){8, 1, 1};
    kernel.shared = 0, kernel.values = arguments, kernel.extra = NULL;
    CHECK(cudaGraphAddKernelNode(&node, graph, &node, 1, &kernel));
    kernel.block.x = 5000;
    EXPECT(cudaGraphAddKernelNode(&node, graph, &node, 1, &kernel), 9);
    EXPECT(cudaGraphAddKernelNode(&node, NULL, &node, 1, &kernel), 1);
    CHECK(cudaGraphAddEmptyNode(&node, graph, &node, 1));
    CHECK(cudaGraphAddMemcpyNode1D(&node, graph, &node, 1, values, given, sizeof values, 2));
    show();
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, NULL));
    show();
    return 0;
}
"""
    )
    assert ran.status == 0 and ran.printed == "1 2 3 4 5 6 7 8 " + "7 " * 8 and len(ran.launches) == 1, ran
