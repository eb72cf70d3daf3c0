"""fp8 tiles: a float8 tensor, which cuda.core cannot view, in swizzled 64 x 128 tiles.

TMA copies without looking inside an element, so an 8-bit float travels as UINT8. SWIZZLE_128B permutes the 16-byte
chunks of each 128-byte row, such that a column of chunks is spread over all banks; swizzled() finds them again.
"""

from _example import start, torch
from cuda.core import LaunchConfig, Program, ProgramOptions

import cuda_tma

TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

extern "C" __global__ void copy_tiles(const __grid_constant__ TensorMap map, unsigned char* out, int row_bytes) {
    __shared__ alignas(1024) unsigned char tile[64 * 128];   // 1024: where the swizzle pattern starts
    __shared__ Barrier full;
    const int column = 128 * blockIdx.x, row = 64 * blockIdx.y;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(sizeof(tile));
        load(tile, map, full, Coordinates{column, row}, evict_first());   // each byte is read once
    }
    __syncthreads();
    full.wait(0);
    for (int chunk = threadIdx.x; chunk < 64 * 8; chunk += blockDim.x) {
        const int r = chunk / 8, byte = chunk % 8 * 16;
        const uint4 bytes = *reinterpret_cast<const uint4*>(&tile[swizzled<SWIZZLE_128B>(r, byte)]);
        *reinterpret_cast<uint4*>(&out[(row + r) * row_bytes + column + byte]) = bytes;
    }
}
"""


def main():
    device = cuda_tma.Device()
    device.set_current()
    options = ProgramOptions(std="c++17", arch=f"sm_{device.arch}a", include_path=cuda_tma.include_path())
    kernel = Program(SOURCE, "c++", options).compile("cubin").get_kernel("copy_tiles")
    config = LaunchConfig(grid=(512 // 128, 256 // 64), block=128)

    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        weights = torch.randn(256, 512, device="cuda").to(dtype)
        out = torch.zeros(256, 512, dtype=torch.uint8, device="cuda")
        descriptor = device.create_tensor_map(weights, box_dim=(64, 128), swizzle="128B")
        cuda_tma.launch(device.default_stream, config, kernel, descriptor, out, 512)
        assert torch.equal(out, weights.view(torch.uint8))
        print(f"ok: {descriptor}")


if __name__ == "__main__":
    start(main, __doc__)
