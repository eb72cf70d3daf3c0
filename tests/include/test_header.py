"""Tests that the whole device header compiles to machine code for every declared target, without a GPU.

The tests compile to cubin, because NVRTC checks inline PTX only when it assembles the PTX.
"""

from __future__ import annotations

import re
import string
import time
from itertools import product

import numpy as np
import pytest
from cuda.pathfinder import find_nvidia_header_directory

from benchmarks.nvrtc import LOAD as MINIMAL
from cuda_tma import smem as smem
from cuda_tma.enums import TensorMapSwizzle
from tests.include._header import (
    BULK_TYPES,
    FOLDER,
    HEADER,
    OTHER_STATEMENTS,
    TARGETS,
    compile_source,
    cubin,
    defined_in,
    included_by,
    kernel,
    nvcc,
    ptx,
    tensor_statements,
    words,
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("statements", [tensor_statements(), OTHER_STATEMENTS], ids=["tensor copies", "the rest"])
def test_everything_compiles(target, statements):
    code = cubin(kernel(statements), target)
    assert code.startswith(b"\x7fELF")


def test_nothing_is_left_out():
    """The compiled statements call each function of tma.cuh and of the headers that tma.cuh includes, except refuse.cuh
    and watchdog.cuh."""
    included = {HEADER.name} | included_by(HEADER.name) - {"refuse.cuh", "watchdog.cuh"}
    defined = set().union(*map(defined_in, included))
    assert len(defined) > 50
    used = words(tensor_statements() + OTHER_STATEMENTS)
    assert defined <= used, f"not compiled by this test: {sorted(defined - used)}"


def test_every_header_has_its_tests():
    """For each header of the package, a test compiles the functions of the header."""
    included = included_by(HEADER.name)
    elsewhere = {
        "dynamic_shared.cuh",
        "element.cuh",
        "elected.cuh",
        *(f"{name}.cuh" for name in ("epilogue", "mainloop", "operand", "output", "roles", "schedule")),
        "input.cuh",
        *(f"{name}.cuh" for name in ("kernel", "signature")),
        "mma.cuh",
        "pin.cuh",
        "pipeline.cuh",
        "cluster_launch.cuh",
        "multimem.cuh",
        "scope.cuh",
        "store_async.cuh",
        "tensor_map_replace.cuh",
        "sm100.cuh",
        "target.cuh",
        *(f"{name}.cuh" for name in ("tcgen05", "tcgen05_scaled", "tensor_memory")),
        "tile.cuh",
        "warpgroup.cuh",
        "wgmma.cuh",
        *(f"wgmma_{kind}.cuh" for kind in ("f16", "fp8", "s8", "tf32", "macros", "macros_end")),
    }
    assert {path.name for path in FOLDER.iterdir()} == included | elsewhere | {HEADER.name}


def test_each_header_compiles_by_itself():
    """Each header compiles if it is the first header, the only header, or included twice."""
    for path in FOLDER.glob("*.cuh"):
        if "macros" not in path.name:
            include = f"#include <cuda_tma/{path.name}>\n"
            cubin(f"{include}{include}#if defined(CUDA_TMA_ASM) || defined(CUDA_TMA_RANK)\n#error\n#endif", "sm_90a")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_all_headers_compile_together(target):
    """All headers of the package compile in one translation unit, in any order, for any target."""
    names = sorted(path.name for path in FOLDER.glob("*.cuh") if "macros" not in path.name)
    includes = "".join(f"#include <cuda_tma/{name}>\n" for name in (*names[::-1], *names))
    assert cubin(includes + kernel(OTHER_STATEMENTS), target).startswith(b"\x7fELF")


def test_macros_of_a_kernel_do_not_get_into_headers():
    """Macros with short names, as in ``compile(defines={"N": 64})``, do not affect the headers. The name T is excluded,
    because NVRTC's own header uses it."""
    words = "BM BN BK MN ROWS COLUMNS STAGES SIZE TYPE WARPS TILE BOX RANK MODE ROW COUNT BLOCK GROUP DEPTH WIDTH"
    macros = {*string.ascii_uppercase, *words.split()} - {"T"}
    defines = "".join(f"#define {macro} (9 +)\n" for macro in sorted(macros))
    names = sorted(path.name for path in FOLDER.glob("*.cuh") if "macros" not in path.name)
    includes = "".join(f"#include <cuda_tma/{name}>\n" for name in names)
    assert ptx(defines + includes + "__global__ void kernel() {}").count(".entry") == 1


def test_bad_instruction_is_caught():
    """The test finds an instruction that does not exist, although NVRTC accepts the instruction in PTX."""
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
        ("store_im2col(map, Coordinates{0}, tile);", "im2col: 3 to 5 dimensions"),
        ("reduce_im2col<Reduction::add>(map, Coordinates{0, 0}, tile);", "im2col: 3 to 5 dimensions"),
        ("reduce_bulk<Reduction::add, BulkType::s64>(global, tile, 16);", "no such reduction: add has u32 s32 u64 f16"),
        (
            "send_reduce_bulk<Reduction::add, BulkType::f32>(tile, 1, tile, 16, full);",
            "no such reduction: add has u32 s32",
        ),
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


@pytest.mark.parametrize("header", sorted(FOLDER.glob("*.cuh")), ids=lambda header: header.stem)
def test_older_language_is_named(header):
    """For any header, a compilation as C++14 gives an error that names the required C++ standard."""
    source = f"#include <cuda_tma/{header.name}>\n"
    with pytest.raises(AssertionError, match=r"the headers are C\+\+17; compile with -std=c\+\+17 or later"):
        compile_source(source + "#include <cuda_tma/tma.cuh>\n", "sm_90a", std="c++14")


def test_bulk_reductions_are_all_there_are():
    """ptxas accepts exactly the pairs of operation and type in the table of bulk.cuh."""
    types = {name for names in BULK_TYPES.values() for name in names.split()}
    absent = [(op, name) for op, name in product(BULK_TYPES, sorted(types)) if name not in BULK_TYPES[op].split()]
    instruction = "cp.reduce.async.bulk.global.shared::cta.bulk_group.{}.{} [%0], [%1], 16;"
    texts = [instruction.format(op.removeprefix("bit_"), name) for op, name in absent]
    with pytest.raises(AssertionError, match="Ptx assembly aborted due to errors") as refused:
        cubin(kernel([f'asm("{text}" ::"l"(global), "r"(x));' for text in texts]), "sm_90a")
    assert len(set(re.findall(r"line (\d+); error", str(refused.value)))) == len(absent)
    calls = [f"reduce_bulk<Reduction::{op}, BulkType::{name}>(global, tile, 16);" for op, name in absent]
    with pytest.raises(AssertionError) as refused:
        cubin(kernel(calls), "sm_90a")
    assert str(refused.value).count('static assertion failed with "reduce_bulk') == len(absent)


def test_nothing_but_machine_code_is_emitted():
    """The device header adds no global variable to a module. The module declares only the kernel's own shared
    memory."""
    assert re.findall(r"^\.(?:visible )?(?:global|const)", ptx(MINIMAL), re.M) == []


def test_swizzled_is_the_function_of_swizzle_py():
    """For each swizzle mode, the compiler evaluates the header's swizzle functions at every 8-byte chunk of two
    periods."""
    statements = []
    for mode in TensorMapSwizzle:
        name = "SWIZZLE_NONE" if mode == 0 else mode.name
        where = smem.swizzle_offset(mode, np.arange(0, 2048, 8)).tolist()
        statements.append(
            f"constexpr unsigned {name}_expected[] = {{{', '.join(map(str, where))}}};"
            f"for (unsigned i = 0; i < 256; ++i) if (swizzle<{name}>(8 * i) != {name}_expected[i]) return false;"
        )
        if mode:
            span = smem.pattern(mode).span_bytes
            statements.append(f"if (swizzle_span<{name}>() != {span}) return false;")
            statements.append(f"if (swizzled<{name}>(5, 8) != {name}_expected[(5 * {span} + 8) / 8]) return false;")
        alignment = smem.pattern(mode).alignment_bytes
        statements.append(f"if (swizzle_alignment<{name}>() != {alignment}) return false;")
    check = f"__device__ constexpr bool agrees() {{ {' '.join(statements)} return true; }}"
    source = f"#include <cuda_tma/tma.cuh>\nusing namespace cuda_tma;\n{check}\nstatic_assert(agrees());"
    cubin(source, "sm_90a")
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(source.replace("(5, 8)", "(5, 16)", 1), "sm_90a")


def test_tensor_map_is_the_drivers():
    """TensorMap has the size and alignment of CUtensorMap in cuda.h of CUDA 13. A barrier is one 64-bit integer."""
    cubin(
        "#include <cuda_tma/tma.cuh>\n"
        "static_assert(sizeof(cuda_tma::TensorMap) == 128 && alignof(cuda_tma::TensorMap) == 128);\n"
        "static_assert(sizeof(cuda_tma::Barrier) == 8 && alignof(cuda_tma::Barrier) == 8);",
        "sm_90a",
    )


def test_compile_time(capsys):
    """The device header increases the compile time only slightly. The test uses the minimum of three times, because
    other programs may run."""
    bare = 'extern "C" __global__ void kernel(float* out) { out[threadIdx.x] = 1; }'
    with_header, without = (min(_seconds(source) for _ in range(3)) for source in (MINIMAL, bare))
    with capsys.disabled():
        print(f"\nNVRTC, sm_90a: {with_header * 1e3:.0f} ms with the header, {without * 1e3:.0f} ms a kernel without")
    # A kernel without the header takes 0.04 s on an idle machine.
    assert with_header < max(0.15, 4 * without)


def _seconds(source: str) -> float:
    start = time.process_time()
    cubin(source, "sm_90a")
    return time.process_time() - start


def test_with_cccl():
    """One translation unit may include the device header and the headers of CCCL, in any order."""
    try:
        cccl = find_nvidia_header_directory("cccl")
    # The type of the exception depends on the missing library.
    except Exception:
        cccl = None
    if not cccl:
        pytest.skip("no CCCL headers here")
    theirs = "#include <cuda/ptx>\n#include <cuda/barrier>\n"
    use = 'extern "C" __global__ void theirs(cuda::barrier<cuda::thread_scope_block>* b) { b->arrive_and_wait(); }\n'
    for source in (theirs + MINIMAL, MINIMAL.replace("using namespace", theirs + "using namespace")):
        cubin(source + use, "sm_90a", cccl)
    traits = "#include <cuda_tma/store_async.cuh>\n#include <cuda/std/type_traits>\nusing namespace cuda::std;\n"
    cubin(f"{traits}using namespace cuda_tma;\nstatic_assert(is_same<int, int>::value);", "sm_90a", cccl)


def test_nvcc(tmp_path):
    """nvcc compiles the kernels that NVRTC compiles, and the host pass of nvcc also parses the device header."""
    done = nvcc(kernel(tensor_statements() + OTHER_STATEMENTS), "sm_90a", tmp_path)
    assert done.returncode == 0, done.stderr
