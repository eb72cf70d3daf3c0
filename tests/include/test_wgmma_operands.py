"""Tests of the descriptors of wgmma operands in shared memory, which address the tiles of TMA loads.

The tests decode the descriptors by the rules of the PTX ISA without the header, and compare the addresses with the
emulator's loads.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from cuda_tma import TensorSpec, emulate, params_of
from cuda_tma import smem as shared
from cuda_tma.enums import TensorMapSwizzle
from tests.include._header import cubin, ptx
from tests.include._wgmma_operands import SWIZZLES, descriptor
from tests.support.ptx_interpreter import source_of, trace

PARAMETERS = {"tile": "void*", "k_rows": "unsigned", "out": "unsigned long long*"}


def stored(parameters: dict[str, str], statements: list[str], arguments: dict[str, int | str]) -> list[int]:
    """Return the values that statements store in `out`, for given values of the kernel's parameters."""
    lines = trace(ptx(source_of("tile.cuh>\n#include <cuda_tma/wgmma.cuh", parameters, statements)), arguments.values())
    return [int(line.split()[-1]) % 2**64 for line in lines if line.startswith("st.global")]


def test_descriptor_bits():
    """The test compares matrix descriptors for each swizzle, and for some addresses up to 227 KB."""
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
    """In a descriptor with a swizzle, the stride offset is the size of the swizzle's pattern. The leading offset is the
    size of a box of `rows` rows of K."""
    repeat, span = shared.pattern(mode).repeat_bytes, shared.pattern(mode).span_bytes
    expected = {
        f"out[0] = k_major<{mode.name}>(tile).bits;": descriptor(mode, 0x3400, 16, repeat),
        f"out[0] = mn_major<{mode.name}>(tile, k_rows).bits;": descriptor(mode, 0x3400, 48 * span, repeat),
    }
    arguments = PARAMETERS | {"tile": 0x3400, "k_rows": 48}
    assert stored(PARAMETERS, list(expected), arguments) == list(expected.values())


def read_k_major(smem: np.ndarray, mode: int, start: int, rows: int) -> np.ndarray:
    """Return the (rows, 16) elements that one instruction reads from a K-major matrix (PTX ISA, "Strides")."""
    row, element = np.indices((rows, 16))
    span, repeat = shared.pattern(mode).span_bytes, shared.pattern(mode).repeat_bytes
    linear = start + row // 8 * repeat + row % 8 * span + 2 * element
    return smem.view(np.uint16)[shared.swizzle_offset(mode, linear) // 2]


def read_mn_major(smem: np.ndarray, mode: int, start: int, k_rows: int, columns: int) -> np.ndarray:
    """Return the (columns, 16) elements of an MN-major matrix. In the matrix, K changes from row to row, and a box
    contains one swizzle span of M or N."""
    column, k = np.indices((columns, 16))
    span, repeat = shared.pattern(mode).span_bytes, shared.pattern(mode).repeat_bytes
    linear = start + 2 * column // span * k_rows * span + k // 8 * repeat + k % 8 * span + 2 * column % span
    return smem.view(np.uint16)[shared.swizzle_offset(mode, linear) // 2]


def load(matrix: np.ndarray, mode: int, box: tuple[int, int], at: tuple[int, int]) -> np.ndarray:
    """Return shared memory after the emulator has loaded the box of a (rows, columns) matrix."""
    params = params_of(TensorSpec(matrix.shape, "uint16"), box_dim=box[::-1], swizzle=mode)
    return emulate.load(params, matrix.reshape(-1).view(np.uint8), at).smem


@pytest.mark.parametrize("mode", SWIZZLES, ids=lambda mode: mode.name)
def test_descriptors_read_loaded_tiles(mode):
    """With the start addresses of advance(), the instructions read all groups of 16 elements of K in tiles that TMA
    loaded."""
    matrix = np.arange(128 * 256, dtype=np.uint16).reshape(128, 256)
    span = shared.pattern(mode).span_bytes
    elements = span // 2
    tile = load(matrix, mode, (elements, 64), (128, 32))
    for k in range(0, elements, 16):
        assert (read_k_major(tile, mode, 2 * k, 64) == matrix[32:96, 128 + k : 144 + k]).all()

    boxes = [load(matrix, mode, (elements, 64), (64 + column, 32)) for column in range(0, 128, elements)]
    tile = np.concatenate(boxes)
    for k in range(0, 64, 16):
        expected = matrix[32 + k : 48 + k, 64:192].T
        assert (read_mn_major(tile, mode, k * span, 64, 128) == expected).all()


def test_descriptors_advance():
    """The argument of advance() is in bytes. The start address in a descriptor is in units of 16 bytes."""
    source = "#include <cuda_tma/wgmma.cuh>\nstatic_assert(cuda_tma::MatrixDescriptor{0x40}.advance(32).bits == 0x42);"
    cubin(source, "sm_90a")


def test_constants_without_a_swizzle():
    """The leading offset is the distance of core matrices along K, and the stride offset along M or N (PTX ISA,
    "Strides")."""
    expected = {
        "out[0] = k_major<SWIZZLE_NONE>(tile, 768, 128).bits;": descriptor(0, 0x3400, 768, 128),
        "out[0] = mn_major<SWIZZLE_NONE>(tile, 128, 768).bits;": descriptor(0, 0x3400, 128, 768),
    }
    assert stored(PARAMETERS, list(expected), PARAMETERS | {"tile": 0x3400, "k_rows": 48}) == list(expected.values())


def read_core_matrices(
    smem: np.ndarray, start: int, rows: int, k_bytes: int, mn_bytes: int, transposed: bool
) -> np.ndarray:
    """Return the (rows, 16) elements that one instruction reads without a swizzle, from core matrices of 8 x 16
    bytes."""
    row, k = np.indices((rows, 16))
    # A core matrix has 8 rows of K and 8 elements of M or N.
    if transposed:
        linear = k // 8 * k_bytes + k % 8 * 16 + row // 8 * mn_bytes + row % 8 * 2
    else:
        linear = k // 8 * k_bytes + k % 8 * 2 + row // 8 * mn_bytes + row % 8 * 16
    return smem.view(np.uint16)[(start + linear) // 2]


def test_boxes_of_16_bytes_are_core_matrices():
    """Loads without a swizzle write the core matrices in sequence, as the header documents for k_major and mn_major."""
    matrix = np.arange(128 * 256, dtype=np.uint16).reshape(128, 256)
    columns = range(64, 128, 8)
    tile = np.concatenate([load(matrix, 0, (8, 48), (column, 32)) for column in columns])
    box_bytes = 48 * 16
    for step in range(4):
        found = read_core_matrices(tile, 2 * step * box_bytes, 48, box_bytes, 128, transposed=False)
        assert (found == matrix[32:80, 64 + 16 * step : 80 + 16 * step]).all()
    for step in range(3):
        found = read_core_matrices(tile, 2 * step * 128, 64, 128, box_bytes, transposed=True)
        assert (found == matrix[32 + 16 * step : 48 + 16 * step, 64:128].T).all()


TYPED = {
    # The tile has two boxes of 64 columns. The matrix begins at row 8 and at element 16 of the second box.
    ("Tile<BFLOAT16, Box<64, 128>, SWIZZLE_128B>", "k_major(*tile, 8, 80)"): (
        "bf16",
        3,
        8 * 128 + 64 * 128 + 32,
        16,
        1024,
    ),
    ("Tile<FLOAT16, Box<64, 16>, SWIZZLE_32B>", "k_major(*tile)"): ("f16", 1, 0, 16, 256),
    ("Tile<TFLOAT32, Box<32, 32>, SWIZZLE_128B>", "k_major(*tile, 0, 8)"): ("tf32", 3, 32, 16, 1024),
    ("Tile<FLOAT32, Box<32, 16>, SWIZZLE_64B>", "k_major<Input::tf32>(*tile, 16)"): ("tf32", 2, 16 * 64, 16, 512),
    ("Tile<UINT8, Box<64, 256>, SWIZZLE_128B>", "k_major<Input::e5m2>(*tile, 0, 160)"): (
        "e5m2",
        3,
        64 * 128 + 32,
        16,
        1024,
    ),
    # The tile has three dimensions, and all dimensions except the innermost count as rows.
    ("Tile<BFLOAT16, Box<2, 32, 64>, SWIZZLE_128B>", "k_major(*tile, 40)"): ("bf16", 3, 40 * 128, 16, 1024),
    # The innermost dimension is M or N, and each box has 32 columns. The matrix begins at row 16 of K in the third box.
    ("Tile<FLOAT16, Box<32, 128>, SWIZZLE_64B>", "mn_major(*tile, 16, 64)"): ("f16", 2, 2 * 2048 + 1024, 2048, 512),
}


@pytest.mark.parametrize(("tile", "call"), TYPED)
def test_typed_tiles_have_their_types(tile, call):
    """The type Tile determines the data type, the swizzle, the offsets, and the box that contains an element of K."""
    element, mode, offset, leading, stride = TYPED[tile, call]
    major = "MN" if call.startswith("mn") else "K"
    checks = f"using X = decltype({call}); static_assert(X::type == Input::{element} && X::major == Major::{major});"
    parameters = {"tile": f"{tile}*", "out": "unsigned long long*"}
    found = stored(parameters, [f"{checks} out[0] = {call}.descriptor.bits;"], {"tile": 0x3400, "out": "out"})
    assert found == [descriptor(mode, 0x3400 + offset, leading, stride)]


@pytest.mark.parametrize(
    ("tile", "call", "message"),
    [
        ("Tile<UINT8, Box<8, 64>, SWIZZLE_64B>", "k_major(tile)", "say what is multiplied: k_major<Input::e4m3>"),
        ("Tile<FLOAT32, Box<8, 16>, SWIZZLE_64B>", "k_major(tile)", "say what is multiplied: k_major<Input::e4m3>"),
        ("Tile<BFLOAT16, Box<8, 32>, SWIZZLE_64B>", "k_major<Input::s8>(tile)", "the tile has other elements"),
        ("Tile<BFLOAT16, Box<8, 32>>", "k_major(tile)", "without a swizzle: k_major<SWIZZLE_NONE>"),
        ("Tile<BFLOAT16, Box<8, 32>>", "mn_major(tile)", "without a swizzle: mn_major<SWIZZLE_NONE>"),
        (
            "Tile<TFLOAT32, Box<8, 32>, SWIZZLE_128B>",
            "mn_major(tile)",
            "only bf16 and f16 are read with M or N innermost",
        ),
    ],
)
def test_misused_tiles_are_named(tile, call, message):
    source = (
        "#include <cuda_tma/tile.cuh>\n#include <cuda_tma/wgmma.cuh>\nusing namespace cuda_tma;\n"
        f'extern "C" __global__ void kernel() {{ __shared__ {tile} tile; {call}; }}'
    )
    with pytest.raises(AssertionError, match=message):
        ptx(source)
