"""The wgmma header compiles, whole, to machine code for sm_90a, and its descriptors read what TMA loads leave."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from benchmarks import kernels
from cuda_tma import TensorSpec, emulate, params_of
from cuda_tma import smem as swizzle
from cuda_tma.enums import TensorMapSwizzle
from cuda_tma.include_path import include_path

from .ptx_interpreter import effects, source_of, trace
from .test_examples import constants
from .test_header import compile_source, cubin, ptx

HEADER = Path(include_path(), "cuda_tma", "wgmma.cuh")
COLUMNS = (64, 128, 192, 256)
SWIZZLES = (TensorMapSwizzle.SWIZZLE_32B, TensorMapSwizzle.SWIZZLE_64B, TensorMapSwizzle.SWIZZLE_128B)
MULTIPLICATIONS = [
    f"{{ float (&sums)[{n // 2}] = *reinterpret_cast<float (*)[{n // 2}]>(all); wgmma_fence();"
    f" wgmma<Input::{t}, Major::{a}, Major::{b}>(sums, x, y, flag); wgmma_commit(); wgmma_wait<0>(sums); }}"
    for n, t, a, b in product(COLUMNS, ("bf16", "f16"), ("K", "MN"), ("K", "MN"))
]
OTHER_STATEMENTS = [
    *(f"x = k_major<{mode.name}>(tile); y = mn_major<{mode.name}>(tile, 64).advance(32);" for mode in SWIZZLES),
    "x.bits = matrix_descriptor_bits<SWIZZLE_NONE>(0, 128, 256);",
    "wgmma_wait<1>();",
]


def kernel(statements: list[str]) -> str:
    return f"""
#include <cuda_tma/wgmma.cuh>
using namespace cuda_tma;
extern "C" __global__ void __launch_bounds__(384, 1) kernel(float* out, bool flag) {{
    __shared__ alignas(1024) char tile[1 << 13];
    float all[128];
    for (int i = 0; i < 128; ++i) all[i] = out[i];
    MatrixDescriptor x = k_major(tile), y = x;
    {" ".join(statements)}
    for (int i = 0; i < 128; ++i) out[i] = all[i] + (x.bits ^ y.bits);
}}
"""


@pytest.mark.parametrize("statements", [MULTIPLICATIONS, OTHER_STATEMENTS], ids=["wgmma", "the rest"])
def test_everything_compiles(statements):
    assert cubin(kernel(statements), "sm_90a").startswith(b"\x7fELF")


def test_nothing_is_left_out():
    """Each function of the header is named in a statement above."""
    found = re.findall(r"^ *(?:__host__ )?__device__ (?:inline |constexpr )*[\w ]+ (\w+)\(", HEADER.read_text(), re.M)
    used = set(re.findall(r"\w+", " ".join(MULTIPLICATIONS + OTHER_STATEMENTS)))
    assert len(set(found)) == 8
    assert set(found) <= used, f"not compiled by this test: {sorted(set(found) - used)}"


PARAMETERS = {
    "tile": "void*",
    **dict.fromkeys("xy", "MatrixDescriptor"),
    "k_rows": "unsigned",
    "out": "unsigned long long*",
}
PTX_OF = {
    "wgmma_fence();": "wgmma.fence.sync.aligned",
    "wgmma_commit();": "wgmma.commit_group.sync.aligned",
    "wgmma_wait<3>();": "wgmma.wait_group.sync.aligned 3",
    "float sums[64]; wgmma_wait<2>(sums);": "wgmma.wait_group.sync.aligned 2",
}


def multiplication(columns: int, call: str) -> str:
    """A call of wgmma() on sums of which each has its index for its value."""
    return f"float sums[{columns // 2}]; for (int i = 0; i < {columns // 2}; ++i) sums[i] = i; {call}"


def multiplied(columns: int, rest: str, name: str = "bf16") -> str:
    """Its instruction."""
    sums = ", ".join(f"0f{np.float32(i).view(np.uint32):08X}" for i in range(columns // 2))
    return f"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{name}.{name} {{{sums}}}, x, y, {rest}"


WGMMA = {
    multiplication(n, f"wgmma<Input::{t}, Major::{a}, Major::{b}>(sums, x, y, {accumulate});"): multiplied(
        n, f"{int(accumulate == 'true')}, 1, 1, {int(a == 'MN')}, {int(b == 'MN')}", t
    )
    for n, t, a, b, accumulate in product(COLUMNS, ("bf16", "f16"), ("K", "MN"), ("K", "MN"), ("true", "false"))
} | {multiplication(64, "wgmma(sums, x, y);"): multiplied(64, "1, 1, 1, 0, 0")}


@pytest.mark.parametrize("table", [PTX_OF, WGMMA], ids=["the rest", "wgmma"])
def test_function_is_its_instruction(table):
    """One function, one instruction: its name, all its operands in order, and nothing else."""
    assert effects("wgmma.cuh", PARAMETERS, table) == table


@pytest.mark.parametrize(("wait", "times"), [("wgmma_wait<0>(all);", 2), ("wgmma_wait<0>();", 1)])
def test_sums_are_read_after_the_wait(wait, times):
    """What was computed of each sum before a wait that names them is computed again after it."""
    triple = "for (int i = 0; i < 128; ++i) out[128 + i] = 3 * all[i];"
    assert len(re.findall(r"\bmul\.f32\b", ptx(kernel([triple, wait, triple])))) == 128 * times


@pytest.mark.parametrize("target", ["sm_90", "sm_100a", "sm_120a"])
def test_other_targets_are_refused(target):
    with pytest.raises(AssertionError, match="compile for sm_90a"):
        cubin(kernel([]), target)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("float few[16]; wgmma(few, x, y);", "N is 64, 128, 192 or 256"),
        ("matrix_descriptor_bits<SWIZZLE_128B_ATOM_32B>(0, 0, 0);", "no swizzle but NONE, 32B, 64B and 128B"),
        ("k_major<SWIZZLE_NONE>(tile);", "a row is as long as the box is wide"),
    ],
)
def test_misuse_is_named(statement, message):
    with pytest.raises(AssertionError, match=message):
        cubin(kernel([statement]), "sm_90a")


def descriptor(mode: int, address: int, leading_bytes: int, stride_bytes: int) -> int:
    """PTX ISA, "Matrix Descriptor Format": what the header's constexpr function must say."""
    layout = {0: 0, 1: 3, 2: 2, 3: 1}[int(mode)]
    return address >> 4 | leading_bytes >> 4 << 16 | stride_bytes >> 4 << 32 | layout << 62


def test_descriptor_bits():
    """For each swizzle and some addresses up to 227 KB, decided by the compiler."""
    checks = []
    for mode, address in product((TensorMapSwizzle.NONE, *SWIZZLES), (0, 1024, 0x12340, 227 * 1024)):
        name = mode.name if mode else "SWIZZLE_NONE"
        bits = descriptor(mode, address, 8192, 1024)
        checks.append(f"static_assert(matrix_descriptor_bits<{name}>({address}, 8192, 1024) == {bits:#x}ull);")
    source = f"#include <cuda_tma/wgmma.cuh>\nusing namespace cuda_tma;\n{' '.join(checks)}"
    cubin(source, "sm_90a")
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(source.replace("8192, 1024)", "8192, 512)", 1), "sm_90a")


@pytest.mark.parametrize("mode", SWIZZLES, ids=lambda mode: mode.name)
def test_constants_of_the_layouts(mode):
    """The stride offset is the repeat of the swizzle, and the leading one the size of a box of so many rows of K."""
    repeat, span = swizzle.pattern(mode).repeat_bytes, swizzle.pattern(mode).span_bytes
    expected = {
        f"out[0] = k_major<{mode.name}>(tile).bits;": descriptor(mode, 0x3400, 16, repeat),
        f"out[0] = mn_major<{mode.name}>(tile, k_rows).bits;": descriptor(mode, 0x3400, 48 * span, repeat),
    }
    arguments = PARAMETERS | {"tile": 0x3400, "k_rows": 48}
    lines = trace(ptx(source_of("wgmma.cuh", PARAMETERS, expected)), arguments.values())
    stored = [int(line.split()[-1]) % 2**64 for line in lines if line.startswith("st.global")]
    assert stored == list(expected.values())


def read_k_major(smem: np.ndarray, mode: int, start: int, rows: int) -> np.ndarray:
    """The (rows, 16) elements that one instruction reads: PTX ISA, "Strides", for a K-major matrix."""
    row, element = np.indices((rows, 16))
    span, repeat = swizzle.pattern(mode).span_bytes, swizzle.pattern(mode).repeat_bytes
    linear = start + row // 8 * repeat + row % 8 * span + 2 * element
    return smem.view(np.uint16)[swizzle.swizzle_offset(mode, linear) // 2]


def read_mn_major(smem: np.ndarray, mode: int, start: int, k_rows: int, columns: int) -> np.ndarray:
    """The (columns, 16) elements of an MN-major matrix: K goes from row to row, a span of M or N from box to box."""
    column, k = np.indices((columns, 16))
    span, repeat = swizzle.pattern(mode).span_bytes, swizzle.pattern(mode).repeat_bytes
    linear = start + 2 * column // span * k_rows * span + k // 8 * repeat + k % 8 * span + 2 * column % span
    return smem.view(np.uint16)[swizzle.swizzle_offset(mode, linear) // 2]


def load(matrix: np.ndarray, mode: int, box: tuple[int, int], at: tuple[int, int]) -> np.ndarray:
    """What a load of the box of a (rows, columns) matrix leaves in shared memory, as the emulator has it."""
    params = params_of(TensorSpec(matrix.shape, "uint16"), box_dim=box[::-1], swizzle=mode)
    return emulate.load(params, matrix.reshape(-1).view(np.uint8), at).smem


@pytest.mark.parametrize("mode", SWIZZLES, ids=lambda mode: mode.name)
def test_descriptors_read_what_a_load_leaves(mode):
    """The start addresses, as advance() is to make them, reach each 16 elements of K of tiles that TMA loaded."""
    matrix = np.arange(128 * 256, dtype=np.uint16).reshape(128, 256)
    span = swizzle.pattern(mode).span_bytes
    elements = span // 2
    tile = load(matrix, mode, (elements, 64), (128, 32))
    for k in range(0, elements, 16):
        assert (read_k_major(tile, mode, 2 * k, 64) == matrix[32:96, 128 + k : 144 + k]).all()

    boxes = [load(matrix, mode, (elements, 64), (64 + column, 32)) for column in range(0, 128, elements)]
    tile = np.concatenate(boxes)
    for k in range(0, 64, 16):
        expected = matrix[32 + k : 48 + k, 64:192].T
        assert (read_mn_major(tile, mode, k * span, 64, 128) == expected).all()


@pytest.mark.parametrize(("between", "serialized"), [("", False), ("sums[3] += 1;", True)], ids=["asynchronous", "not"])
def test_multiplications_stay_asynchronous(between, serialized):
    """Two groups are in flight, and ptxas adds no waits of its own; it says so (C7511) where it has to."""
    step = "wgmma_fence(); wgmma(sums, x, y); wgmma(sums, x.advance(32), y.advance(32)); wgmma_commit();"
    waits = "wgmma_wait<1>(); wgmma_wait<0>(sums);"
    statements = [
        f"float sums[64] = {{}}; {step} {between} {step} {waits}",
        "for (int i = 0; i < 64; ++i) all[i] += sums[i];",
    ]
    _, log = compile_source(kernel(statements), "sm_90a")
    assert ("serialized" in log) == serialized


def test_descriptors_advance():
    """By bytes, of which the start address counts every 16th."""
    cubin(kernel(["static_assert(MatrixDescriptor{0x40}.advance(32).bits == 0x42);"]), "sm_90a")


EXAMPLES = Path(__file__).parent.parent / "examples"
# What an example's host part knows of the tile and the shared memory, and what that is in its kernel.
KERNEL_HAS = {
    "gemm": {
        **{name: name for name in ("TILE_M", "TILE_N", "TILE_K", "CLUSTER", "PART")},
        "THREADS": "(CONSUMERS + 1) * 128",
        "SMEM_BYTES": "sizeof(Shared)",
    },
    "conv_im2col": {"PIXELS": "PIXELS", "SMEM_BYTES": "sizeof(Shared)"},
    "grouped_gemm": {"ROWS": "64 * CONSUMERS", "TOKENS": "64 * BOXES", "CTAS": "CTAS", "SMEM_BYTES": "sizeof(Shared)"},
}


@pytest.mark.parametrize("example", KERNEL_HAS)
def test_an_example_compiles_as_meant(example):
    """Its kernel draws no remark from ptxas: nothing serialized, spilled, or ignored (setmaxnreg)."""
    _, log = compile_source(str(constants(EXAMPLES / f"{example}.py")["SOURCE"]), "sm_90a")
    assert log == ""


@pytest.mark.parametrize(("example", "kernel_has"), KERNEL_HAS.items(), ids=KERNEL_HAS)
def test_an_examples_host_and_kernel_agree(example, kernel_has):
    pytest.importorskip("torch")
    host = vars(kernels.example(example))
    checks = [f"static_assert({value} == {host[name]});" for name, value in kernel_has.items()]
    cubin(host["SOURCE"] + "".join(checks), "sm_90a")
