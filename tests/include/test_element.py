"""Tests of element.cuh, whose elements of narrow floating-point types have the same values as in ml_dtypes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cuda_tma import simulate
from tests.include._header import cubin

USING = "#include <cuda_tma/tile.cuh>\nusing namespace cuda_tma;\n"
FORMATS = {
    "Bf16": ml_dtypes.bfloat16,
    "F16": np.float16,
    "E4m3": ml_dtypes.float8_e4m3fn,
    "E5m2": ml_dtypes.float8_e5m2,
    "E2m3": ml_dtypes.float6_e2m3fn,
    "E3m2": ml_dtypes.float6_e3m2fn,
    "E2m1": ml_dtypes.float4_e2m1fn,
}


def run(source: str, *arguments, block: int = 128, grid: int = 1) -> None:
    gpu = simulate.Device()
    kernel = gpu.compile(USING + source, "kernel")
    gpu.launch(simulate.Config(grid=grid, block=block), kernel, *arguments).raise_for_errors()


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_converts_to_its_value(name):
    dtype = np.dtype(FORMATS[name])
    count = {"Bf16": 1 << 16, "F16": 1 << 16, "E4m3": 256, "E5m2": 256, "E2m1": 16}.get(name, 64)
    codes = np.arange(count, dtype=f"u{dtype.itemsize}")
    found = np.zeros(count, np.float32)
    run(
        f"""extern "C" __global__ void kernel(const {name}* in, float* out, int count) {{
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < count) out[i] = in[i];
        }}""",
        codes, found, np.int32(count), block=256, grid=-(-count // 256),
    )  # fmt: skip
    expected = codes.view(dtype).astype(np.float32)
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.array_equal(np.signbit(found[found == 0]), np.signbit(expected[expected == 0]))


@pytest.mark.parametrize("name", ["Bf16", "F16", "E4m3", "E5m2"])
def test_a_float_is_rounded_when_it_is_assigned(name):
    draw = np.random.default_rng(1)
    given = np.concatenate([draw.normal(0, 30, 500), [0.0, -0.0, 1e-9, 448.0, np.nan]]).astype(np.float32)
    dtype = np.dtype(FORMATS[name])
    codes, twice = np.zeros(len(given), f"u{dtype.itemsize}"), np.zeros(len(given), f"u{dtype.itemsize}")
    run(
        f"""extern "C" __global__ void kernel(const float* in, {name}* out, {name}* twice) {{
            out[threadIdx.x] = in[threadIdx.x];
            twice[threadIdx.x] = in[threadIdx.x];
            twice[threadIdx.x] *= 2;
        }}""",
        given, codes, twice, block=len(given),
    )  # fmt: skip
    rounded = given.astype(dtype).astype(np.float32)
    assert np.array_equal(codes.view(dtype).astype(np.float32), rounded, equal_nan=True)
    # The largest value of e4m3 is 448, so the test compares only the doubles of values below 200.
    small = np.abs(rounded) < 200
    doubled = (2 * rounded).astype(dtype).astype(np.float32)
    assert np.array_equal(twice.view(dtype).astype(np.float32)[small], doubled[small], equal_nan=True)


@pytest.mark.parametrize(("type_", "name", "one"), [("BFLOAT16", "Bf16", 0x3F80), ("FLOAT16", "F16", 0x3C00)])
def test_a_tile_gives_values(type_, name, one):
    """A tile of 16-bit floats returns 1.0 for the bits of 1.0. After the kernel has doubled the element in place, the
    bits are those of 2.0."""
    tensor = np.full((8, 64), one, np.uint16).view(FORMATS[name])
    values, bits = np.zeros(64, np.float32), np.zeros(64, np.uint16)
    run(
        f"""using Window = Tile<{type_}, Box<8, 64>, SWIZZLE_128B>;
        extern "C" __global__ void kernel(const __grid_constant__ TiledMap<Window> map, float* out,
                                          unsigned short* bits) {{
            __shared__ Window tile;
            __shared__ Barrier full;
            if (threadIdx.x == 0) {{
                full.init(1);
                fence_barrier_init();
                full.arrive_expect_tx(tile);
                load(tile, map, full, Coordinates{{0, 0}});
            }}
            __syncthreads();
            full.wait(0);
            out[threadIdx.x] = tile(3, threadIdx.x);
            tile(3, threadIdx.x) *= 2;
            bits[threadIdx.x] = tile(3, threadIdx.x).bits();
        }}""",
        tensor, values, bits, block=64,
    )  # fmt: skip
    assert values.tolist() == [1.0] * 64
    assert bits.view(FORMATS[name]).astype(np.float32).tolist() == [2.0] * 64


@pytest.mark.parametrize(
    ("type_", "name", "gap"),
    [("U4_ALIGN8B", "E2m1", 0), ("U4_ALIGN16B", "E2m1", 8), ("U6_ALIGN16B", "E2m3", 4), ("U6_ALIGN16B", "E3m2", 4)],
)
def test_a_packed_element_is_a_value(type_, name, gap):
    """The call as<E2m1>(row, column) returns the value of a packed element. The test's tile has 128 elements of 4 or 6
    bits."""
    width = 4 if name == "E2m1" else 6
    codes = np.random.default_rng(2).integers(0, 1 << width, 128, np.uint8)
    bits = (codes[:, None] >> np.arange(width) & 1).astype(np.uint8).reshape(8, -1)
    rows = np.packbits(bits, axis=1, bitorder="little")
    stored = np.ascontiguousarray(np.pad(rows, ((0, 0), (0, gap)), constant_values=0xAA)).reshape(-1)
    found, raw = np.zeros(128, np.float32), np.zeros(128, np.uint8)
    run(
        f"""extern "C" __global__ void kernel(const unsigned char* in, float* out, unsigned char* bits) {{
            __shared__ Tile<{type_}, Box<1, 128>> tile;
            if (threadIdx.x < sizeof(tile)) tile.storage[threadIdx.x] = in[threadIdx.x];
            __syncthreads();
            const auto& constant = tile;
            out[threadIdx.x] = tile.as<{name}>(0, threadIdx.x);
            bits[threadIdx.x] = constant.as<{name}>(0, threadIdx.x).bits();
        }}""",
        np.resize(stored, 128), found, raw,
    )  # fmt: skip
    assert raw.tolist() == codes.tolist()
    assert found.tolist() == codes.view(FORMATS[name]).astype(np.float32).tolist()


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("tile(0, 0);", "an element of 4 or 6 bits has no address"),
        ("tile.as<E2m3>(0, 0);", "E2m1 is for tiles of U4_ALIGN8B"),
        ("bytes.as<E2m1>(0, 0);", "an element of UINT8 holds"),
        ("unsigned short raw = floats(0, 0);", r"int\(float\(x\)\) is its value, x.bits\(\) its bits"),
        ("int whole = int(floats(0, 0));", "its bits"),
        ("E2m1 made = 1.0f;", "fp6 and fp4 elements are made of bits"),
    ],
)
def test_misuse_is_named(statement, message):
    source = f"""{USING} extern "C" __global__ void kernel() {{
    __shared__ Tile<U4_ALIGN8B, Box<1, 128>> tile;
    __shared__ Tile<UINT8, Box<1, 128>> bytes;
    __shared__ Tile<BFLOAT16, Box<1, 64>> floats;
    {statement} }}"""
    with pytest.raises(AssertionError, match=message):
        cubin(source, "sm_90a")


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103a", "sm_120a"])
def test_elements_compile_for_every_target(target):
    """The test compiles expressions that assign, compare and multiply elements, and that pass elements as float
    arguments."""
    uses = "".join(
        f"__global__ void use{name}({name}* x, float* y) {{ x[0] = x[1]; y[0] = fmaxf(x[2] * 2 + x[3], 1);"
        f" if (x[4] < x[5] || x[6] == 0.5f) y[1] = -x[7]; __shared__ {name} kept[4]; kept[0] = x[0]; x[8] = kept[0];"
        f" y[3] = 2 * x[1] / x[2] + 1u; const double z = x[3] - 0.1; y[4] = z; bool b = x[1]; y[5] = b ? x[2] : x[3];"
        f" y[6] = int(float(x[1])) + x[1].bits() + sqrtf(x[4]); if (x[5] != x[6] || !x[7]) y[7] = 1.0f * x[8];"
        f" {'' if name.startswith(('E2', 'E3')) else 'x[0] += 1; x[1] = x[2] - x[3]; x[4] /= 2; x[5] -= y[2];'} }}"
        for name in FORMATS
    )
    assert cubin("#include <cuda_tma/element.cuh>\nusing namespace cuda_tma;\n" + uses, target).startswith(b"\x7fELF")
