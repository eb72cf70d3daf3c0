"""The device header compiles, whole, to machine code for every target it declares, with no GPU.

To cubin, not to PTX: NVRTC checks inline PTX only when it assembles it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import nvrtc

from cuda_tma import swizzle
from cuda_tma.enums import TensorMapSwizzle
from cuda_tma.include_path import include_path

HEADER = Path(include_path(), "cuda_tma", "tma.cuh")
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
COORDINATES = ("x", "x, y", "x, y, -4", "x, y, 0, 1", "x, y, 0, 1, 2u")
OFFSETS = {3: "1", 4: "1, y", 5: "1, 2, 3u"}
POLICIES = ("", ", evict_last()")
REDUCTIONS = ("add", "min", "max", "inc", "dec", "bit_and", "bit_or", "bit_xor")

MINIMAL = """
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, float* out) {
    __shared__ alignas(128) float tile[32][32];
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, map, full, Coordinates{32 * blockIdx.x, 32 * blockIdx.y});
    }
    __syncthreads();
    full.wait(0);
    out[threadIdx.x] = tile[threadIdx.x / 32][threadIdx.x % 32];
}
"""


def compile_source(source: str, target: str) -> tuple[object, str]:
    """The NVRTC program and its log; AssertionError with the log if the source is refused."""
    _, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None)
    options = [f"--gpu-architecture={target}", "--std=c++17", f"--include-path={HEADER.parents[1]}"]
    (result,) = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])
    log = b" " * nvrtc.nvrtcGetProgramLogSize(program)[1]
    nvrtc.nvrtcGetProgramLog(program, log)
    text = log.decode().strip("\0\n ")
    assert result == nvrtc.nvrtcResult.NVRTC_SUCCESS, text
    return program, text


def cubin(source: str, target: str) -> bytes:
    """The machine code of a source that the front end compiles without a warning.

    ptxas' advice that multicast is for sm_90a, sm_100a, ... is about speed, and not the header's to follow.
    """
    program, log = compile_source(source, target)
    assert "warning #" not in log, log
    code = b" " * nvrtc.nvrtcGetCUBINSize(program)[1]
    nvrtc.nvrtcGetCUBIN(program, code)
    return code


def ptx(source: str) -> str:
    program, _ = compile_source(source, "compute_90a")
    text = b" " * nvrtc.nvrtcGetPTXSize(program)[1]
    nvrtc.nvrtcGetPTX(program, text)
    return text.decode()


def tensor_statements() -> list[str]:
    """Every tensor copy, for every rank that it has, with and without a cache policy."""
    tiled = [
        "load(tile, map, full, Coordinates{{{at}}}{policy});",
        "load_multicast(tile, map, full, Coordinates{{{at}}}, 3{policy});",
        "store(map, Coordinates{{{at}}}, tile{policy});",
        "prefetch(map, Coordinates{{{at}}}{policy});",
        *(f"reduce<Reduction::{op}>(map, Coordinates{{{{{{at}}}}}}, tile{{policy}});" for op in REDUCTIONS),
    ]
    im2col = [
        "load_im2col(tile, map, full, Coordinates{{{at}}}, Offsets{{{offsets}}}{policy});",
        "load_im2col_multicast(tile, map, full, Coordinates{{{at}}}, Offsets{{{offsets}}}, 3{policy});",
        "store_im2col(map, Coordinates{{{at}}}, tile{policy});",
        "prefetch_im2col(map, Coordinates{{{at}}}, Offsets{{{offsets}}}{policy});",
    ]
    return [
        statement.format(at=at, offsets=OFFSETS.get(rank), policy=policy)
        for (rank, at), policy in product(enumerate(COORDINATES, 1), POLICIES)
        for statement in tiled + im2col * (rank in OFFSETS)
    ]


OTHER_STATEMENTS = [
    *(
        statement.format(policy=policy)
        for statement in (
            "load_bulk(tile, global, 1024, full{policy});",
            "store_bulk(global, tile, 1024{policy});",
        )
        for policy in ("", ", evict_first()", ", evict_normal()", ", evict_unchanged()")
    ),
    "full.init(2); fence_barrier_init(); full.expect_tx(16); full.arrive_expect_tx(16);",
    "full.arrive(); full.arrive_at(1);",
    "if (full.try_wait(1) && full.try_wait(0, 1000)) full.wait(1);",
    "full.invalidate();",
    "commit_group(); wait_group(); wait_group<3>(); wait_group_read(); wait_group_read<1>();",
    "fence_proxy_async();",
    "fence_tensor_map_release(); fence_tensor_map_acquire(map);",
    "prefetch_tensor_map(map); prefetch_tensor_map(as_tensor_map(twin));",
    "if (elect_one()) global[cluster_cta_rank()] = smem_address(tile) + full.address();",
    "cluster_sync(); griddepcontrol_wait(); griddepcontrol_launch_dependents();",
    *(
        f"global[swizzled<{mode.name}>(x, y)] = swizzle<{mode.name}>(x) + swizzle_span<{mode.name}>();"
        for mode in TensorMapSwizzle
        if mode
    ),
    "global[x] = swizzle<SWIZZLE_NONE>(x);",
]


def kernel(statements: list[str]) -> str:
    """A kernel that executes all statements; `Twin` stands for the driver's CUtensorMap."""
    return f"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
struct alignas(64) Twin {{ unsigned long long opaque[16]; }};
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, const __grid_constant__ Twin twin,
                                  unsigned* global, int x, unsigned y) {{
    __shared__ alignas(1024) char tile[1024];
    __shared__ Barrier full;
    {" ".join(statements)}
}}
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("statements", [tensor_statements(), OTHER_STATEMENTS], ids=["tensor copies", "the rest"])
def test_everything_compiles(target, statements):
    code = cubin(kernel(statements), target)
    assert code.startswith(b"\x7fELF")


def test_nothing_is_left_out():
    """Each function of the header is named in a statement above."""
    defined = set(re.findall(r"^ *__device__ (?:inline |constexpr )*[\w:&<> ]+?[ &](\w+)\(", HEADER.read_text(), re.M))
    used = set(re.findall(r"\w+", " ".join(tensor_statements() + OTHER_STATEMENTS)))
    assert len(defined) > 40
    assert defined <= used, f"not compiled by this test: {sorted(defined - used)}"


def test_bad_instruction_is_caught():
    """The net has no hole: an instruction that does not exist fails here, though as PTX it passes."""
    source = kernel(['load(tile, map, full, Coordinates{x}); asm volatile("cp.async.bulk.tensor.1d.nonsense;");'])
    assert "nonsense" in ptx(source)
    with pytest.raises(AssertionError, match="Ptx assembly aborted due to errors"):
        cubin(source, "sm_90a")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("load(tile, map, full, Coordinates{0, 0, 0, 0, 0, 0});", "a tensor map has 1 to 5 dimensions"),
        ("load_im2col(tile, map, full, Coordinates{0, 0, 0, 0}, Offsets{1});", "rank - 2 offsets"),
        ("store_im2col(map, Coordinates{0, 0}, tile);", "im2col: 3 to 5 dimensions"),
        ("as_tensor_map(tile);", "a tensor map is 128 bytes"),
        ("swizzled<SWIZZLE_NONE>(0, 0);", "a row is as long as the box is wide"),
    ],
)
def test_misuse_is_named(statement, message):
    with pytest.raises(AssertionError, match=message):
        cubin(kernel([statement]), "sm_90a")


def test_older_target_is_named():
    with pytest.raises(AssertionError, match=r"TMA needs compute capability 9\.0"):
        cubin(MINIMAL, "sm_80")


def test_instructions():
    """Every rank, mode and hint is the instruction that it says: the PTX holds exactly the documented set."""
    load = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes{cast}"
    forms = {
        **{load.replace("{cast}", cast): ("tile", "im2col") for cast in ("", ".multicast::cluster")},
        "cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group": ("tile", "im2col_no_offs"),
        "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode}": ("tile", "im2col"),
        **{
            f"cp.reduce.async.bulk.tensor.{{rank}}d.global.shared::cta.{op.removeprefix('bit_')}.{{mode}}.bulk_group": (
                "tile",
            )
            for op in REDUCTIONS
        },
    }
    documented = {
        form.format(rank=rank, mode=mode) + hint
        for (form, modes), rank, hint in product(forms.items(), range(1, 6), ("", ".L2::cache_hint"))
        for mode in modes
        if mode == "tile" or rank >= 3
    }
    written = re.findall(r"^\s*(cp\.\S+tensor\S+)", ptx(kernel(tensor_statements())), re.M)
    assert set(written) == documented
    assert len(written) == len(tensor_statements())


PTX_OF = {
    "prefetch(map, Coordinates{0}, evict_first());": "createpolicy.fractional.L2::evict_first.b64",
    "prefetch(map, Coordinates{0}, evict_last());": "createpolicy.fractional.L2::evict_last.b64",
    "prefetch(map, Coordinates{0}, evict_normal());": "createpolicy.fractional.L2::evict_normal.b64",
    "prefetch(map, Coordinates{0}, evict_unchanged());": "createpolicy.fractional.L2::evict_unchanged.b64",
    "full.init(1);": "mbarrier.init.shared::cta.b64",
    "full.invalidate();": "mbarrier.inval.shared::cta.b64",
    "full.expect_tx(16);": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64",
    "full.arrive_expect_tx(16);": "mbarrier.arrive.expect_tx.shared::cta.b64",
    "full.arrive();": "mbarrier.arrive.shared::cta.b64",
    "full.arrive_at(1);": "mbarrier.arrive.release.cluster.shared::cluster.b64",
    "full.try_wait(1);": "mbarrier.try_wait.parity.shared::cta.b64",
    "full.wait(1);": "mbarrier.try_wait.parity.shared::cta.b64",
    "load_bulk(tile, global, 16, full);": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
    "store_bulk(global, tile, 16);": "cp.async.bulk.global.shared::cta.bulk_group",
    "commit_group();": "cp.async.bulk.commit_group;",
    "wait_group<2>();": "cp.async.bulk.wait_group 2;",
    "wait_group_read<2>();": "cp.async.bulk.wait_group.read 2;",
    "fence_proxy_async();": "fence.proxy.async.shared::cta;",
    "fence_barrier_init();": "fence.mbarrier_init.release.cluster;",
    "fence_tensor_map_release();": "fence.proxy.tensormap::generic.release.gpu;",
    "fence_tensor_map_acquire(map);": "fence.proxy.tensormap::generic.acquire.gpu",
    "prefetch_tensor_map(map);": "prefetch.tensormap",
    "global[0] = elect_one();": "elect.sync",
    "global[0] = cluster_cta_rank();": "%cluster_ctarank;",
    "cluster_sync();": "barrier.cluster.arrive.release.aligned;",
    "griddepcontrol_wait();": "griddepcontrol.wait;",
    "griddepcontrol_launch_dependents();": "griddepcontrol.launch_dependents;",
}


@pytest.mark.parametrize(("statement", "instruction"), PTX_OF.items())
def test_function_is_its_instruction(statement, instruction):
    """One function, one instruction: it is there, and gone without the call."""
    assert instruction in ptx(kernel([statement]))
    assert instruction not in ptx(kernel([]))


def test_operands_keep_their_order():
    """Coordinates{a, b, c} reaches the instruction as {a, b, c}; barrier, offsets, mask and policy follow."""
    source = """
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(int a, int b, int c, unsigned short s, unsigned short m, CachePolicy policy,
                                  const TensorMap* map, void* tile, Barrier* full) {
    load_im2col_multicast(tile, *map, *full, Coordinates{a, b, c}, Offsets{s}, m, policy);
}"""
    text = ptx(source)
    parameter = {
        register: int(index) for register, index in re.findall(r"ld\.param\.\w+\s+(%\w+), \[kernel_param_(\d)\]", text)
    }
    # The addresses are converted on the way: follow what each instruction with one operand copies.
    for target, origin in re.findall(r"(?:cvt|cvta|mov)\.\S+\s+(%\w+), (%\w+);", text) * 2:
        if origin in parameter:
            parameter[target] = parameter[origin]
    operands = re.findall(r"%\w+", re.search(r"cp\.async\.bulk\.tensor\.3d.*", text).group())
    assert [parameter[operand] for operand in operands] == [7, 6, 0, 1, 2, 8, 3, 4, 5]


def test_nothing_but_machine_code_is_emitted():
    """The header adds no global variable to a module: only the kernel's own shared memory is declared."""
    assert re.findall(r"^\.(?:visible )?(?:global|const)", ptx(MINIMAL), re.M) == []


def test_swizzled_is_the_function_of_swizzle_py():
    """For each mode, every 8-byte chunk of two repeats of the pattern, decided by the compiler."""
    statements = []
    for mode in TensorMapSwizzle:
        name = "SWIZZLE_NONE" if mode == 0 else mode.name
        where = swizzle.swizzle_offset(mode, np.arange(0, 2048, 8)).tolist()
        statements.append(
            f"constexpr unsigned {name}_expected[] = {{{', '.join(map(str, where))}}};"
            f"for (unsigned i = 0; i < 256; ++i) if (swizzle<{name}>(8 * i) != {name}_expected[i]) return false;"
        )
        if mode:
            span = swizzle.pattern(mode).span_bytes
            statements.append(f"if (swizzle_span<{name}>() != {span}) return false;")
            statements.append(f"if (swizzled<{name}>(5, 8) != {name}_expected[(5 * {span} + 8) / 8]) return false;")
    check = f"__device__ constexpr bool agrees() {{ {' '.join(statements)} return true; }}"
    source = f"#include <cuda_tma/tma.cuh>\nusing namespace cuda_tma;\n{check}\nstatic_assert(agrees());"
    cubin(source, "sm_90a")
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(source.replace("(5, 8)", "(5, 16)", 1), "sm_90a")


def test_tensor_map_is_the_drivers():
    """Size and alignment of CUtensorMap as cuda.h of CUDA 13 declares it; a barrier is one 64-bit word."""
    cubin(
        "#include <cuda_tma/tma.cuh>\n"
        "static_assert(sizeof(cuda_tma::TensorMap) == 128 && alignof(cuda_tma::TensorMap) == 128);\n"
        "static_assert(sizeof(cuda_tma::Barrier) == 8 && alignof(cuda_tma::Barrier) == 8);",
        "sm_90a",
    )


def test_compile_time(capsys):
    """The header costs little: the best of three, so that a busy machine does not decide."""
    bare = 'extern "C" __global__ void kernel(float* out) { out[threadIdx.x] = 1; }'
    with_header, without = (min(_seconds(source) for _ in range(3)) for source in (MINIMAL, bare))
    with capsys.disabled():
        print(f"\nNVRTC, sm_90a: {with_header * 1e3:.0f} ms with the header, {without * 1e3:.0f} ms a kernel without")
    assert with_header < 0.5


def _seconds(source: str) -> float:
    start = time.perf_counter()
    cubin(source, "sm_90a")
    return time.perf_counter() - start


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not on PATH")
def test_nvcc(tmp_path):
    """nvcc compiles the same kernels, and its host pass parses the header too."""
    source = tmp_path / "kernel.cu"
    source.write_text(kernel(tensor_statements() + OTHER_STATEMENTS))
    command = ["nvcc", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-Werror", "all-warnings"]
    done = subprocess.run(
        [*command, f"-I{HEADER.parents[1]}", "-c", source, "-o", tmp_path / "kernel.o"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


PIPELINE = """
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, float* out, int tiles) {{
    __shared__ alignas(128) float tile[{stages}][64];
    __shared__ Pipeline<{stages}> pipeline;
    Stage<{stages}> at;
    {statements}
}}
"""
PIPELINE_STATEMENTS = """
    if (threadIdx.x == 0) pipeline.init(64);
    __syncthreads();
    if (threadIdx.x == 64) {
        for (int i = 0; i < tiles; ++i, at.next())
            load(tile[at.index], map, pipeline.acquire(at, sizeof(tile[0])), Coordinates{64 * i});
    } else {
        for (int i = 0; i < tiles; ++i, at.next()) {
            pipeline.wait(at);
            out[64 * i + threadIdx.x] = tile[at.index][threadIdx.x];
            pipeline.release(at);
        }
    }
"""


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("stages", [1, 2, 3, 4, 8])
def test_pipeline_compiles(stages, target):
    assert cubin(PIPELINE.format(stages=stages, statements=PIPELINE_STATEMENTS), target).startswith(b"\x7fELF")


def test_pipeline_is_compiled_whole():
    """Each member function of pipeline.cuh is called above: a template that is not instantiated is not compiled."""
    text = HEADER.with_name("pipeline.cuh").read_text()
    defined = set(re.findall(r"^ *__device__ (?:constexpr )?[\w:&<> ]+?[ &](\w+)\(", text, re.M))
    assert defined == {"next", "init", "acquire", "wait", "release"}
    assert defined <= set(re.findall(r"\w+", PIPELINE_STATEMENTS))


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_stage_walks_the_ring(stages):
    """Turn i is in place i % stages, and its parity is that of the round i // stages, decided by the compiler."""
    walk = """
__device__ constexpr bool agrees() {{
    Stage<{stages}> at;
    for (int i = 0; i < 4 * {stages} + 1; ++i, at.next())
        if (at.index != i % {stages} || at.parity != i / {stages} % {rounds}) return false;
    return true;
}}
static_assert(agrees());"""
    source = "#include <cuda_tma/pipeline.cuh>\nusing namespace cuda_tma;\n" + walk
    cubin(source.format(stages=stages, rounds=2), "sm_90a")
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(source.format(stages=stages, rounds=3), "sm_90a")


@pytest.mark.parametrize(
    ("statement", "instructions"),
    [
        ("pipeline.init(64);", ["mbarrier.init", "mbarrier.init", "fence.mbarrier_init"]),
        ("pipeline.acquire(at, 256);", ["mbarrier.try_wait", "mbarrier.arrive.expect_tx"]),
        ("pipeline.wait(at);", ["mbarrier.try_wait"]),
        ("pipeline.release(at);", ["mbarrier.arrive"]),
    ],
)
def test_pipeline_is_its_instructions(statement, instructions):
    """Each function is these instructions in this order: the producer waits before it announces bytes."""
    text = ptx(PIPELINE.format(stages=1, statements=statement))
    names = r"mbarrier\.arrive\.expect_tx|mbarrier\.(?:init|try_wait|arrive)\b|fence\.mbarrier_init"
    assert re.findall(rf"\b({names})(?=[.;])", text) == instructions


@pytest.mark.parametrize(("statement", "parity"), [("pipeline.acquire(at, 256);", 1), ("pipeline.wait(at);", 0)])
def test_pipeline_starts_empty(statement, parity):
    """In the first round the producer waits for the phase before the first, and consumers wait for the first."""
    text = ptx(PIPELINE.format(stages=2, statements=statement))
    (register,) = re.findall(r"try_wait\.parity\S* p, \[%\w+\], (%\w+);", text)
    assert re.findall(rf"mov\.[bu]32\s+{register}, (\d+);", text) == [str(parity)]
