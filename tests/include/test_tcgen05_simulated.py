"""Tests that products by tcgen05.cuh and tcgen05_scaled.cuh on the simulator are those of NumPy, without a finding."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from cuda_tma import simulate

# Each row of a matrix contains 128 bytes of K, which four instructions multiply. A has 128 rows, and B has 64.
HEAD = """
#include <cuda_tma/tcgen05_scaled.cuh>
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
namespace tc = tcgen05;
using Bytes = const unsigned char*;

struct Shared {
    alignas(1024) unsigned char a[128 * 128], b[128 * 128];
    alignas(128) unsigned char of_a[4][512], of_b[4][512];
    Barrier done;
    unsigned slot, phase;
};

template <DataType Type, int Columns, int Rows> using Whole = Tile<Type, Box<Rows, Columns>, SWIZZLE_128B>;

// Copies rows of 128 bytes into a tile.
template <typename Tile> __device__ Tile& filled(unsigned char* storage, Bytes rows) {
    static_assert(Tile::pitch_bytes() == 128 && Tile::boxes() == 1);
    for (int i = 16 * threadIdx.x; i < Tile::bytes(); i += 16 * blockDim.x)
        *reinterpret_cast<uint4*>(storage + swizzle<SWIZZLE_128B>(i)) = *reinterpret_cast<const uint4*>(rows + i);
    return reinterpret_cast<Tile&>(*storage);
}

__device__ void begin(Shared& s) {
    if (threadIdx.x == 0) { s.done.init(1); fence_barrier_init(); s.phase = 0; }
}

// Waits for products, and stores 64 columns of their sums.
__device__ __noinline__ void finish(Shared& s, tc::Address sums, float* out) {
    const unsigned phase = s.phase;
    s.done.wait(phase);
    tc::fence_after_thread_sync();
    float row[64];
    tc::ld(row, sums.of_warp());
    tc::wait_ld(row);
    for (int i = 0; i < 64; i += 4)
        *reinterpret_cast<float4*>(out + 64 * threadIdx.x + i) = float4{row[i], row[i + 1], row[i + 2], row[i + 3]};
    tc::fence_before_thread_sync();
    __syncthreads();
    if (threadIdx.x == 0) s.phase ^= 1;
    __syncthreads();
}

// Issues products in one thread.
template <int Ctas = 1, typename Issue>
__device__ void run(Shared& s, tc::Address sums, bool issues, float* out, Issue issue) {
    fence_proxy_async();
    tc::fence_before_thread_sync();
    if constexpr (Ctas == 2) cluster_sync();
    else __syncthreads();
    if (issues && threadIdx.x < 32 && elect_one()) {
        tc::fence_after_thread_sync();
        issue();
        if constexpr (Ctas == 2) tc::commit_multicast<2>(s.done, 3);
        else tc::commit(s.done);
    }
    __syncwarp();
    finish(s, sums, out);
}
"""
PLAIN = (
    HEAD
    + """
template <Input Left, Input Right, Sums Sum, int M, DataType TypeA, DataType TypeB, int Columns>
__device__ void multiply(Shared& s, tc::Address d, int number, Bytes a, Bytes b, float* out) {
    const auto& left = filled<Whole<TypeA, Columns, 128>>(s.a, a + 128 * 128 * number);
    const auto& right = filled<Whole<TypeB, Columns, 64>>(s.b, b + 64 * 128 * number);
    run(s, d, true, out + 128 * 64 * number, [&] {
#pragma unroll 1
        for (int k = 0; k < Columns; k += Columns / 4)
            tc::mma<M, 64, 1, Sum>(d, tc::k_major<Left>(left, 0, k), tc::k_major<Right>(right, 0, k), k > 0);
    });
}

extern "C" __global__ void k(Bytes a, Bytes b, float* out) {
    __shared__ Shared s;
    begin(s);
    const TensorMemory<64> memory(s.slot);
    const tc::Address d = memory.column(0);
    multiply<Input::bf16, Input::bf16, Sums::f32, 128, BFLOAT16, BFLOAT16, 64>(s, d, 0, a, b, out);
    multiply<Input::f16, Input::f16, Sums::f16, 128, FLOAT16, FLOAT16, 64>(s, d, 1, a, b, out);
    multiply<Input::tf32, Input::tf32, Sums::none, 128, TFLOAT32, TFLOAT32, 32>(s, d, 2, a, b, out);
    multiply<Input::s8, Input::u8, Sums::none, 128, UINT8, UINT8, 128>(s, d, 3, a, b, out);
    multiply<Input::e4m3, Input::e5m2, Sums::none, 128, UINT8, UINT8, 128>(s, d, 4, a, b, out);
    multiply<Input::e2m1, Input::e2m3, Sums::none, 128, U4_ALIGN16B, U6_ALIGN16B, 128>(s, d, 5, a, b, out);
    multiply<Input::bf16, Input::bf16, Sums::f32, 64, BFLOAT16, BFLOAT16, 64>(s, d, 6, a, b, out);
}
"""
)
# Other operands of bf16: two boxes with M or N innermost, core matrices without a swizzle, and A in tensor memory.
OPERANDS = (
    HEAD
    + """
extern "C" __global__ void k(Bytes a, Bytes b, const unsigned* in_lanes, float* out) {
    __shared__ Shared s;
    begin(s);
    const TensorMemory<128> memory(s.slot);
    const tc::Address d = memory.column(0);
    using Wide = Tile<BFLOAT16, Box<64, 128>, SWIZZLE_128B>;
    auto& left = reinterpret_cast<Wide&>(s.a);
#pragma unroll 1
    for (int k = 0; k < 64; ++k)
        left.as<unsigned short>(k, threadIdx.x) = reinterpret_cast<const unsigned short*>(a)[64 * threadIdx.x + k];
    const auto& right = filled<Whole<BFLOAT16, 64, 64>>(s.b, b);
    run(s, d, true, out, [&] {
        for (int k = 0; k < 64; k += 16) tc::mma<128, 64>(d, tc::mn_major(left, k), tc::k_major(right, 0, k), k > 0);
    });
    for (int i = threadIdx.x; i < 64 * 8; i += 128)
        reinterpret_cast<uint4*>(s.a)[i % 8 * 64 + i / 8] = reinterpret_cast<const uint4*>(b)[i];
    for (int i = 0; i < 32; i += 16) {
        unsigned part[16];
        for (int j = 0; j < 16; ++j) part[j] = in_lanes[32 * threadIdx.x + i + j];
        tc::st(memory.column(64 + i).of_warp(), part);
    }
    tc::wait_st();
    run(s, d, true, out + 128 * 64, [&] {
        for (int k = 0; k < 4; ++k) {
            const tc::MatrixInLanes<Input::bf16> rows{memory.column(64 + 8 * k)};
            tc::mma<128, 64>(d, rows, -tc::k_major<Input::bf16, SWIZZLE_NONE>(s.a + 2048 * k, 1024, 128), k > 0);
        }
    });
}
"""
)
PAIR = (
    HEAD
    + """
extern "C" __global__ void __cluster_dims__(2) k(Bytes a, Bytes b, float* out) {
    __shared__ Shared s;
    begin(s);
    const TensorMemory<64, 2> memory(s.slot);
    const tc::Address d = memory.column(0);
    const unsigned rank = cluster_cta_rank();
    const auto& left = filled<Whole<BFLOAT16, 64, 128>>(s.a, a + 128 * 128 * rank);
    const auto& right = filled<Whole<BFLOAT16, 64, 32>>(s.b, b + 32 * 128 * rank);
    run<2>(s, d, rank == 0, out + 128 * 64 * rank, [&] {
        for (int k = 0; k < 64; k += 16)
            tc::mma<256, 64, 2>(d, tc::k_major(left, 0, k), tc::k_major(right, 0, k), k > 0);
    });
    __syncwarp();
    cluster_sync();
}
"""
)
SCALED = (
    HEAD
    + """
template <tc::ScaleType Scale, int PerStep, Input Left, Input Right, DataType TypeA, DataType TypeB, int Columns>
__device__ void multiply(Shared& s, tc::Address d, int number, Bytes a, Bytes b, Bytes of_a, Bytes of_b, float* out) {
    const auto& left = filled<Whole<TypeA, Columns, 128>>(s.a, a + 128 * 128 * number);
    const auto& right = filled<Whole<TypeB, Columns, 64>>(s.b, b + 64 * 128 * number);
    reinterpret_cast<uint4*>(s.of_a)[threadIdx.x] = reinterpret_cast<const uint4*>(of_a + 2048 * number)[threadIdx.x];
    reinterpret_cast<uint4*>(s.of_b)[threadIdx.x] = reinterpret_cast<const uint4*>(of_b + 2048 * number)[threadIdx.x];
    run(s, d, true, out + 128 * 64 * number, [&] {
        for (int cell = 0; cell < PerStep; ++cell) {
            tc::cp_scales(d.column(64 + 4 * cell), s.of_a[cell]);
            tc::cp_scales(d.column(80 + 4 * cell), s.of_b[cell]);
        }
#pragma unroll 1
        for (int i = 0; i < 4; ++i) {
            const int k = Columns / 4 * i, cell = PerStep * i / 4, rest = PerStep * i % 4;
            const tc::Scales<Scale> sa{d.column(64 + 4 * cell)}, sb{d.column(80 + 4 * cell)};
            tc::mma_block_scale<128, 64>(d, tc::k_major<Left>(left, 0, k), tc::k_major<Right>(right, 0, k),
                                         sa.skip(rest), sb.skip(rest), k > 0);
        }
    });
}

extern "C" __global__ void k(Bytes a, Bytes b, Bytes of_a, Bytes of_b, float* out) {
    __shared__ Shared s;
    begin(s);
    const TensorMemory<128> memory(s.slot);
    const tc::Address d = memory.column(0);
    constexpr Input FP4 = Input::e2m1;
    constexpr auto UE8M0 = tc::ScaleType::ue8m0, UE4M3 = tc::ScaleType::ue4m3;
    multiply<UE8M0, 1, Input::e4m3, Input::e5m2, UINT8, UINT8, 128>(s, d, 0, a, b, of_a, of_b, out);
    multiply<UE8M0, 1, FP4, Input::e3m2, U4_ALIGN16B, U6_ALIGN16B, 128>(s, d, 1, a, b, of_a, of_b, out);
    multiply<UE8M0, 2, FP4, FP4, U4_ALIGN8B, U4_ALIGN8B, 256>(s, d, 2, a, b, of_a, of_b, out);
    multiply<UE4M3, 4, FP4, FP4, U4_ALIGN8B, U4_ALIGN8B, 256>(s, d, 3, a, b, of_a, of_b, out);
}
"""
)
DTYPES = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "tf32": np.float32,
    "s8": np.int8,
    "u8": np.uint8,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
BITS = {"e2m3": 6, "e3m2": 6, "e2m1": 4}


def launched(source: str, *arguments: np.ndarray, ctas: int = 1) -> None:
    device = simulate.Device((10, 0), schedules=1, sanitize=True)
    report = device.launch(simulate.Config(1, 128, ctas), device.compile(source, "k"), *arguments)
    assert report.findings == (), report


def matrix(rows: int, type_: str, packed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return small numbers in rows of 128 bytes, both as bytes and as float64."""
    k = 256 if packed else 128 // np.dtype(DTYPES[type_]).itemsize
    numbers = np.random.default_rng(rows + k).integers(0 if type_ == "u8" else -3, 4, (rows, k))
    codes = numbers.astype(DTYPES[type_]).view(np.uint8).reshape(rows, -1)
    if type_ not in BITS:
        return codes, numbers.astype(np.float64)
    bits = np.unpackbits(codes[..., None], axis=-1, count=BITS[type_], bitorder="little").reshape(rows, k // 16, -1)
    pieces = np.packbits(bits, axis=-1, bitorder="little")
    width = 8 if packed else 16
    return np.pad(pieces, ((0, 0), (0, 0), (0, width - pieces.shape[-1]))).reshape(rows, -1), numbers.astype(np.float64)


def joined(matrices: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    return np.stack([bytes_ for bytes_, _ in matrices])


def test_products():
    types = [("bf16", "bf16"), ("f16", "f16"), ("tf32", "tf32"), ("s8", "u8"), ("e4m3", "e5m2"), ("e2m1", "e2m3")]
    types.append(types[0])
    a, b = ([matrix(rows, pair[i]) for pair in types] for i, rows in ((0, 128), (1, 64)))
    out = np.full((len(types), 128, 64), np.nan, np.float32)
    launched(PLAIN, joined(a), joined(b), out)
    for i, (kind, _) in enumerate(types):
        expected = a[i][1] @ b[i][1].T
        found = out[i]
        if i == 6:  # For M = 64, the sums are in the first 16 lanes of each quarter.
            found, expected = found.reshape(4, 32, 64)[:, :16].reshape(64, 64), expected[:64]
        if kind == "f16":
            found = (found.view(np.uint32) & 0xFFFF).astype(np.uint16).view(np.float16)
        elif kind == "s8":
            found = found.view(np.int32)
        assert np.array_equal(found, expected), kind


def test_operands():
    (a, numbers), (b, others) = matrix(128, "bf16"), matrix(64, "bf16")
    out = np.full((2, 128, 64), np.nan, np.float32)
    launched(OPERANDS, a, b, a.view(np.uint32), out)
    assert np.array_equal(out, np.stack([numbers @ others.T, -numbers @ others.T]))


def test_a_pair_of_ctas():
    (a, numbers), (b, others) = matrix(256, "bf16"), matrix(64, "bf16")
    out = np.full((256, 64), np.nan, np.float32)
    launched(PAIR, a, b, out, ctas=2)
    assert np.array_equal(out, numbers @ others.T)


def scales(rows: int, count: int, is_ue4m3: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the scales of rows, as the 2048 bytes of cp_scales() and as numbers [rows, count]."""
    powers = np.random.default_rng(rows + count).integers(-2, 3, (128, count))
    codes = (
        (2.0**powers).astype(ml_dtypes.float8_e4m3fn).view(np.uint8) if is_ue4m3 else (powers + 127).astype(np.uint8)
    )
    cells = np.zeros((4, 32, 4, 4), np.uint8)
    cells[: count // 4] = codes.reshape(4, 32, count // 4, 4).transpose(2, 1, 0, 3)
    return cells.ravel(), 2.0 ** powers[:rows]


def test_block_scales():
    # Each row contains the types, whether two elements share a byte, and the number of scales along K.
    rows = [
        ("e4m3", "e5m2", False, 4),
        ("e2m1", "e3m2", False, 4),
        ("e2m1", "e2m1", True, 8),
        ("e2m1", "e2m1", True, 16),
    ]
    a = [matrix(128, left, packed) for left, _, packed, _ in rows]
    b = [matrix(64, right, packed) for _, right, packed, _ in rows]
    of_a, of_b = ([scales(m, count, count == 16) for *_, count in rows] for m in (128, 64))
    out = np.full((len(rows), 128, 64), np.nan, np.float32)
    launched(SCALED, joined(a), joined(b), joined(of_a), joined(of_b), out)
    for i, (*_, count) in enumerate(rows):
        left, right = (
            numbers * np.repeat(factors, numbers.shape[1] // count, 1)
            for (_, numbers), (_, factors) in ((a[i], of_a[i]), (b[i], of_b[i]))
        )
        assert np.array_equal(out[i], left @ right.T), rows[i]
