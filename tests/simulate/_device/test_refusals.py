"""Tests of launches and kernels that the simulator refuses because a GPU, the driver or the assembler refuses them."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import CompileError, simulate
from cuda_tma.rules._configurations import Directives, directives_in
from cuda_tma.simulate import Config

COUNT = 'extern "C" __global__ void {} count(int* ctas) {{ atomicAdd(ctas, 1); }}'
PTX = """.version 8.7
.target sm_90a
.address_size 64
.entry k(.param .u64 out, .param .f32 by) {} {{
 .reg .b64 %rd<2>;
 .reg .f32 %f<2>;
 ld.param.u64 %rd1, [out];
 ld.param.f32 %f1, [by];
 st.global.f32 [%rd1], %f1;
 ret;
}}
"""
COPIED = """#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<8, 8>>;
extern "C" __global__ void copied(TiledMap<Window> map, float* out) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) { full.init(1); fence_barrier_init(); full.arrive_expect_tx(tile); }
    if (threadIdx.x == 0) load(tile, map, full, Coordinates{0, 0});
    __syncthreads();
    full.wait(0);
    out[threadIdx.x] = tile(0, threadIdx.x);
}
"""


@pytest.fixture(scope="module")
def gpu():
    return simulate.Device()


@pytest.mark.parametrize(
    ("attribute", "config", "ctas"),
    [
        ("__block_size__((64, 1, 1), (2, 1, 1))", Config(3, 64), 6),
        ("__block_size__((64, 1, 1))", Config(3, 64), 3),
        ("__cluster_dims__(2, 1, 1)", Config(4, 64), 4),
        ("__cluster_dims__(2, 1, 1)", Config(2, 64, cluster=2), 4),
    ],
)
def test_a_grid_follows_the_directives(gpu, attribute, config, ctas):
    """With the directive .blocksareclusters, the grid of a launch counts clusters (PTX ISA, ".blocksareclusters")."""
    counted = np.zeros(1, np.int32)
    gpu.launch(config, gpu.compile(COUNT.format(attribute), "count"), counted).raise_for_errors()
    assert counted[0] == ctas * 64


@pytest.mark.parametrize(
    ("directives", "block", "words"),
    [
        (
            ".reqntid 64",
            32,
            r"block=\(32, 1, 1\) was passed, but kernel k was compiled only for blocks of \(64, 1, 1\)",
        ),
        (".reqntid 32, 2", 64, r"compiled only for blocks of \(32, 2, 1\)"),
        (".maxntid 8, 4", 33, r"has 33 threads, but kernel k was compiled for at most 32"),
    ],
)
def test_directives_of_ptx_apply(gpu, directives, block, words):
    """The rules for directives such as .maxntid are in the section "Performance-Tuning Directives" of the PTX ISA."""
    kernel = gpu.load(PTX.format(directives), "k")
    with pytest.raises(ValueError, match=words):
        gpu.launch(Config(1, block), kernel, np.zeros(1, np.float32), 1.0)


@pytest.mark.parametrize(("directives", "block"), [(".reqntid 64", 64), (".maxntid 8, 4", 32), ("", 1024)])
def test_launches_that_directives_allow_run(gpu, directives, block):
    """The product of the extents in ``.maxntid`` limits a block, but no single extent does."""
    out = np.zeros(1, np.float32)
    assert gpu.launch(Config(1, block), gpu.load(PTX.format(directives), "k"), out, 2.5).errors == ()
    assert out[0] == 2.5


def test_a_kernel_without_cluster_sizes_needs_them_at_the_launch(gpu):
    """A kernel with .explicitcluster needs a cluster size at the launch (PTX ISA, ".explicitcluster")."""
    kernel = gpu.load(PTX.format(".explicitcluster"), "k")
    with pytest.raises(ValueError, match=r"\.explicitcluster\): pass cluster"):
        gpu.launch(Config(1, 32), kernel, np.zeros(1, np.float32), 1.0)


def test_directives_in_the_text_of_a_compiler():
    text = "\n.entry other(\n.param .u64 a\n)\n.maxntid 9, 1, 1\n{\n}\n.visible .entry k(\n.param .u64 a[2]\n)\n"
    text += ".blocksareclusters\n.reqntid 64, 2, 1\n.reqnctapercluster 2, 1, 1\n.maxclusterrank 4\n{\n}\n"
    wanted = Directives((64, 2, 1), (2, 1, 1), most_ctas_of_cluster=4, counts_clusters=True)
    assert directives_in(text, "k") == wanted
    assert directives_in(text, "none") == Directives()


def test_ptx_gives_the_type_of_a_float(gpu):
    """The PTX contains the type of a float parameter. Without the type, a launch on a GPU would pass an int, whose bits
    represent another number."""
    kernel = gpu.load(PTX.format(""), "k")
    assert [each.type for each in kernel.parameters] == [None, "float"]
    with pytest.raises(TypeError, match=r"argument 1 of kernel k: .* the int 2 was passed; pass 2\.0"):
        gpu.launch(Config(1, 1), kernel, np.zeros(1, np.float32), 2)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"multiprocessor_count": 0}, ValueError, "multiprocessor_count=0; pass 1 or more"),
        ({"multiprocessor_count": -1}, ValueError, "multiprocessor_count=-1; pass 1 or more"),
        ({"multiprocessor_count": 1.5}, TypeError, "multiprocessor_count is 1.5; pass an integer"),
        ({"multiprocessor_count": "8"}, TypeError, "multiprocessor_count is '8'; pass an integer"),
        ({"schedules": 0}, ValueError, "schedules=0; pass 1 to 1000"),
        ({"schedules": 1001}, ValueError, "schedules=1001; pass 1 to 1000"),
        ({"schedules": 2.5}, TypeError, "schedules is 2.5; pass an integer"),
        ({"schedules": None}, TypeError, "schedules is None; pass an integer"),
        ({"strict": "no"}, TypeError, "strict is 'no'; pass True or False"),
        ({"sanitize": 0}, TypeError, "sanitize is 0; pass True or False"),
        ({"suppressions": "race:f.cu:1:why"}, TypeError, r"suppressions is 'race:f.cu:1:why'; pass a sequence"),
        ({"suppressions": [5]}, TypeError, "suppressions has 5; pass a Suppression, or text"),
        ({"suppressions": 5}, TypeError, "suppressions is 5; pass a sequence"),
        ({"suppressions": ["race:f.cu:1"]}, ValueError, "has no reason; add the reason why the finding is acceptable"),
        ({"compute_capability": (8, 9)}, ValueError, "has no TMA"),
    ],
)
def test_settings_of_a_device_are_checked(settings, error, words):
    with pytest.raises(error, match=words):
        simulate.Device(**settings)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"seed": 1.5}, TypeError, "seed is 1.5; pass an integer"),
        ({"seed": -1}, ValueError, "seed=-1; pass 0 or more"),
        ({"max_steps": "9"}, TypeError, "max_steps is '9'; pass an integer"),
        ({"max_steps": 0}, ValueError, "max_steps=0; pass 1 or more"),
        ({"order": 1}, ValueError, "order=1; pass one of 'early'"),
        ({"order": ["early"]}, ValueError, "order=.*; pass one of 'early'"),
    ],
)
def test_settings_of_a_launch_are_checked(gpu, settings, error, words):
    kernel, out = gpu.load(PTX.format(""), "k"), np.zeros(1, np.float32)
    for launch in (
        lambda: gpu.launch(Config(1, 1), kernel, out, 1.0, **settings),
        lambda: gpu.launch_all([(Config(1, 1), kernel, out, 1.0)], **settings),
    ):
        with pytest.raises(error, match=words):
            launch()


def test_settings_of_numpy_are_taken():
    gpu = simulate.Device(multiprocessor_count=np.int64(2), schedules=np.int8(3), strict=np.bool_(True))
    assert (gpu.multiprocessor_count, gpu.schedules, gpu.strict) == (2, 3, True)


def test_a_suppression_may_be_text(gpu):
    """The text of a suppression has the same form as in the pytest mark."""
    text = "out-of-bounds:PTX line 9:the array is a stand-in"
    gpu = simulate.Device(suppressions=[text])
    assert gpu.suppressions == (simulate.Suppression.parse(text),)
    report = gpu.launch(Config(1, 1), gpu.load(PTX.format(""), "k"), np.zeros(0, np.float32), 1.0)
    assert [each.kind for each in report.suppressed] == ["out-of-bounds"]


@pytest.mark.parametrize("is_dependent", [False, True])
def test_an_invalid_kernel_in_a_sequence_is_refused(gpu, is_dependent):
    kernel, out = gpu.load(PTX.format(""), "k"), np.zeros(1, np.float32)
    second = Config(1, 1, programmatic_stream_serialization=is_dependent)
    with pytest.raises(TypeError, match="kernel is a str; pass the result of"):
        gpu.launch_all([(Config(1, 1), kernel, out, 1.0), (second, "k", out, 1.0)])
    with pytest.raises(TypeError, match="config is a tuple; launch takes"):
        gpu.launch_all([((1, 1), kernel, out, 1.0)])


def test_invalid_kernel_is_refused(gpu):
    with pytest.raises(TypeError, match="kernel is a str; pass the result of Device.compile or Device.load"):
        gpu.launch(Config(1, 1), "k")
    with pytest.raises(TypeError, match="config is a Kernel; launch takes a cuda.core.LaunchConfig or a mapping"):
        gpu.launch(gpu.load(PTX.format(""), "k"), Config(1, 1))


def test_a_map_without_grid_constant_is_refused_in_the_words_of_a_compiler(gpu, nvrtc):
    """The header cuda_tma/refuse.cuh places an unknown instruction at a wrong use, which a compiler reports."""
    words = (
        r"^kernel 'copied' does not compile for compute_90a: copied.cu\(8\): this TensorMap is a copy in local memory: "
        "declare the parameter as const __grid_constant__ TensorMap and pass it on by reference"
    )
    with pytest.raises(CompileError, match=words) as refused:
        gpu.compile(COPIED, "copied")
    assert refused.value.line == 8
    ptx = nvrtc(COPIED)
    with pytest.raises(CompileError, match=r"copied.cu\(8\): this TensorMap is a copy in local memory"):
        gpu.load(ptx, "copied")


def test_a_map_with_grid_constant_runs(gpu):
    source = COPIED.replace("TiledMap<Window> map", "const __grid_constant__ TiledMap<Window> map")
    given = np.ones((16, 16), np.float32)
    out = np.zeros(8, np.float32)
    assert gpu.launch(Config(1, 8), gpu.compile(source, "copied"), given, out).errors == ()
    assert out.tolist() == [1.0] * 8


@pytest.fixture
def nvrtc():
    """Compile C++ to PTX directly with NVRTC, without the simulator's compilation."""
    from cuda_tma._compile.nvrtc import request, run

    return lambda source: run(request(source, "copied", target="compute_90a")).ptx
