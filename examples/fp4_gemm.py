"""Compute C = scale * A @ B.T in fp4 with block scales (nvfp4) on compute capability 12, in 99 KB of shared memory.

A is (M, K) and B is (N, K) with elements of e2m1, two in a byte. Each 16 elements of a row have a scale of e4m3. C is
(M, N) in bfloat16, and accumulators are float32. K is a multiple of 32, N of 8, and M is free. Beyond the edges, loads
read zeros, and stores write nothing.

The scales are in memory as `torch._scaled_mm` takes them: a tile of 512 bytes contains 4 scales of each of 128 rows.
TMA loads these tiles unchanged. `cuda-tma layouts scales:ue4m3:128x4 tile:u8:128x4` compares a tile with plain rows. In
registers, four scales of a row are in one lane (layout `mma.scales`). The thread-id of an operand selects the lanes
with its scales, so one register contains the scales of four tiles of B.

One thread loads A, B and their scales into a ring of stages, 256 elements of K each. Eight warps multiply loaded
stages. Each of these warps has 16 rows and all 128 columns of a tile of C.

No GPU has run this example. The simulator computes its products as the PTX ISA documents them.
"""

from _example import start, torch
from cuda.core import LaunchConfig

import cuda_tma

SIZES = ((128, 128, 256), (1, 8, 32), (300, 392, 1120), (4096, 4096, 4096))  # Each case is (m, n, k).
TARGETS = ("sm_120a",)
SOURCE = r"""
#include <cuda_tma/epilogue.cuh>
#include <cuda_tma/mma.cuh>
#include <cuda_tma/pipeline.cuh>
using namespace cuda_tma;

constexpr int TILE = 128, TILE_K = 256;   // C is computed in tiles of 128 x 128
constexpr int STAGES = 2;                 // stages of the ring, 36 KB each
constexpr int CONSUMERS = 256;            // threads that multiply
constexpr int STEP = 64;                  // elements of K of an instruction, with four scales in each row

using Operand = Tile<U4_ALIGN8B, Box<TILE, TILE_K>, SWIZZLE_128B>;
using Scales = Tile<UINT8, Box<1, TILE_K / STEP, 2, 256>>;   // tiles of 2 x 256 bytes
using C = Tile<BFLOAT16, Box<16, 64>, SWIZZLE_128B>;
using OperandMap = TiledMap<Operand, OOB_FILL_NONE, L2_PROMOTION_128B>;

struct Shared {
    Operand a[STAGES], b[STAGES];
    Scales a_scales[STAGES], b_scales[STAGES];
    C c[CONSUMERS / 32][1];
    Pipeline<STAGES> ring;
};

// Returns the word with the four scales of a row of the tile, at one step.
__device__ unsigned scales_of(const Scales& scales, int step, int row) {
    const int byte = row % 32 * 16 + row / 32 * 4;
    return scales.as<unsigned>(0, step, byte / 256, byte % 256);
}

// Adds 16 x 64 of A by 64 x 8 of B. Each lane of a quad has scales of another tile of B, which `b_thread` selects.
// Lanes 0 and 1 of a quad have the scales of A.
__device__ void multiply(float* sums, const unsigned (&a)[4], unsigned b0, unsigned b1, unsigned a_scales,
                         unsigned b_scales, short b_thread) {
    asm("mma.sync.aligned.kind::mxf4nvf4.block_scale.scale_vec::4X.m16n8k64.row.col.f32.e2m1.e2m1.f32.ue4m3 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, {%11, %11}, {%12}, {%11, %13};"
        : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(a_scales), "h"(short(0)), "r"(b_scales),
          "h"(b_thread));
}

__device__ void multiply_stage(float (&sums)[TILE / 2], const Shared& shared, int stage) {
    const int lane = threadIdx.x % 32, first_row = threadIdx.x / 32 * 16;
    const auto a_rows = rows_of_a(shared.a[stage]), b_rows = rows_of_b(shared.b[stage]);
#pragma unroll 1
    for (int step = 0; step < TILE_K / STEP; ++step) {
        unsigned a[4];
        load_matrices(a, a_rows.at(first_row, step * STEP / 2));
        const unsigned a_scales = scales_of(shared.a_scales[stage], step, first_row + lane % 2 * 8 + lane / 4);
#pragma unroll
        for (int n = 0; n < TILE; n += 32) {
            const unsigned b_scales = scales_of(shared.b_scales[stage], step, n + lane % 4 * 8 + lane / 4);
#pragma unroll
            for (int i = 0; i < 4; i += 2) {
                unsigned b[4];
                load_matrices(b, b_rows.at(n + 8 * i, step * STEP / 2));
                multiply(sums + n / 2 + 4 * i, a, b[0], b[1], a_scales, b_scales, i);
                multiply(sums + n / 2 + 4 * i + 4, a, b[2], b[3], a_scales, b_scales, i + 1);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(CONSUMERS + 32, 1)
fp4_gemm(const __grid_constant__ OperandMap a, const __grid_constant__ OperandMap b,
         const __grid_constant__ TiledMap<Scales> a_scales, const __grid_constant__ TiledMap<Scales> b_scales,
         const __grid_constant__ TiledMap<C> c, float scale, int across, int tiles, int k_tiles) {
    Shared& shared = dynamic_shared<Shared>();
    if (threadIdx.x == 0) shared.ring.init(CONSUMERS);
    __syncthreads();
    Stage<STAGES> at;
    if (threadIdx.x == CONSUMERS) {
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            const int down = tile / across, right = tile % across;
            for (int k = 0; k < k_tiles; ++k, at.next()) {
                Barrier& full = shared.ring.acquire(at, shared.a[0], shared.b[0], shared.a_scales[0],
                                                    shared.b_scales[0]);
                load(shared.a[at.index], a, full, Coordinates{k * TILE_K, down * TILE});
                load(shared.b[at.index], b, full, Coordinates{k * TILE_K, right * TILE});
                load(shared.a_scales[at.index], a_scales, full, Coordinates{0, 0, k * (TILE_K / STEP), down});
                load(shared.b_scales[at.index], b_scales, full, Coordinates{0, 0, k * (TILE_K / STEP), right});
            }
        }
    } else if (threadIdx.x < CONSUMERS) {
        const int first_row = threadIdx.x / 128 * 64;   // of the warpgroup
        Epilogue<C, TILE / 64, Turn::none, 1> out(shared.c[threadIdx.x / 32]);
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
            float sums[TILE / 2] = {};
            for (int k = 0; k < k_tiles; ++k, at.next()) {
                shared.ring.wait(at);
                multiply_stage(sums, shared, at.index);
                shared.ring.release(at);
            }
            for (float& sum : sums) sum *= scale;
            out.take(sums, c, Coordinates{tile % across * TILE, tile / across * TILE + first_row});
        }
        out.finish();
    }
}
"""


def tiled(scales):
    """Return scales (rows, k / 16) as tiles of 128 rows x 4 scales, with zeros beyond the edges."""
    rows, columns = scales.shape
    padded = torch.nn.functional.pad(scales.view(torch.uint8), (0, -columns % 4, 0, -rows % 128))
    tiles = padded.reshape(-(-rows // 128), 4, 32, -(-columns // 4), 4).permute(0, 3, 2, 1, 4)
    return tiles.reshape(*tiles.shape[:2], 2, 256)


def numbers(packed, scales):
    """Return the numbers of an operand in float32."""
    of_code = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device=packed.device)
    codes = torch.stack([packed & 15, packed >> 4], dim=-1).flatten(1).int()
    return torch.where(codes < 8, of_code[codes % 8], -of_code[codes % 8]) * scales.float().repeat_interleave(16, dim=1)


def main():
    device = cuda_tma.Device()
    device.set_current()
    kernel = cuda_tma.compile(SOURCE, "fp4_gemm", constants={"threads": "CONSUMERS + 32"})
    parameters = cuda_tma.parameters_of(kernel)
    tile, tile_k = parameters["a"].map_type.tile_dim
    for m, n, k in SIZES:
        packed = [torch.randint(256, (rows, k // 2), dtype=torch.uint8, device="cuda") for rows in (m, n)]
        scales = [torch.rand(rows, k // 16, device="cuda").to(torch.float8_e4m3fn) for rows in (m, n)]
        c = torch.full((m, n), torch.nan, dtype=torch.bfloat16, device="cuda")
        across, tiles = -(-n // tile), -(-m // tile) * -(-n // tile)
        config = LaunchConfig(
            grid=min(tiles, device.properties.multiprocessor_count), block=parameters.constants["threads"]
        )
        arguments = *packed, *map(tiled, scales), c, 0.5, across, tiles, -(-k // tile_k)
        cuda_tma.launch(device.default_stream, config, kernel, *arguments)
        a, b = map(numbers, packed, scales)
        error, bound = (c.float() - 0.5 * a @ b.T).abs(), a.abs() @ b.abs().T * 2**-8
        assert (error <= bound).all(), f"{m} x {n} x {k}: off by up to {error.max()}"
        print(f"ok: {m} x {n} x {k}, every element")


if __name__ == "__main__":
    start(main, __doc__)
