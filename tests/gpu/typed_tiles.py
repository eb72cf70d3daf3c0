"""A test of loads, contents and stores of typed tiles on a GPU, element by element.

The tiles run in a separate process, because a tile with a wrong byte count would hang: run `python -m
tests.gpu.typed_tiles`. The last printed line contains the number of tiles.
"""

import itertools

import torch
from cuda.core import LaunchConfig

import cuda_tma
from cuda_tma import simulate

SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

__device__ void wait_or_trap(Barrier& full, unsigned parity) {
    for (int i = 0; !full.try_wait(parity, 1000000); ++i) if (i > 10000) __trap();
}

// The element with an index, in the order of the tensor.
template <typename TileType>
__device__ auto& element(TileType& tile, int i) {
    constexpr int W = TileType::width(), H = TileType::rank() > 1 ? TileType::extent(TileType::rank() - 2) : 1;
    if constexpr (TileType::rank() == 1) return tile(i);
    else if constexpr (TileType::rank() == 2) return tile(i / W, i % W);
    else return tile(i / (W * H), i / W % H, i % W);
}
template <int Rank>
__device__ Coordinates<Rank> at(int x, int y, int z) {
    if constexpr (Rank == 1) return Coordinates{x};
    else if constexpr (Rank == 2) return Coordinates{x, y};
    else return Coordinates{x, y, z};
}

// Writes the tile at a place to `out`, element by element; changes it, and stores it to the same place of `target`.
template <typename TileType, bool Stores>
__global__ void through(const __grid_constant__ TiledMap<TileType> source,
                        const __grid_constant__ TiledMap<TileType> target, typename TileType::Element* out, int x,
                        int y, int z) {
    TileType& tile = dynamic_shared<TileType>();
    __shared__ Barrier full;
    constexpr int COUNT = TileType::row_count() * TileType::width();
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, source, full, at<TileType::rank()>(x, y, z));
    }
    __syncthreads();
    wait_or_trap(full, 0);
    for (int i = threadIdx.x; i < COUNT; i += blockDim.x) out[i] = element(tile, i);
    if constexpr (Stores) {
        __syncthreads();
        for (int i = threadIdx.x; i < COUNT; i += blockDim.x) element(tile, i) = out[COUNT - 1 - i];
        fence_proxy_async();
        __syncthreads();
        if (threadIdx.x != 0) return;
        store(target, at<TileType::rank()>(x, y, z), tile);
        commit_group();
        wait_group_read();
    }
}

// Rows of a tile, each group of eight by its own load.
template <typename TileType, typename Part>
__global__ void in_parts(const __grid_constant__ TiledMap<Part> source, typename TileType::Element* out) {
    TileType& tile = dynamic_shared<TileType>();
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        for (int row = 0; row < TileType::extent(0); row += 8)
            load(tile.template rows<8>(row), source, full, Coordinates{0, row});
    }
    __syncthreads();
    wait_or_trap(full, 0);
    for (int i = threadIdx.x; i < TileType::row_count() * TileType::width(); i += blockDim.x) out[i] = element(tile, i);
}
"""
# For each dtype of a tensor, the table contains boxes, and the data types that keep the bits.
DTYPES = {
    torch.uint8: ("UINT8", ("256", "16, 64", "5, 128", "2, 3, 100", "16, 256")),
    torch.bfloat16: ("BFLOAT16", ("64", "64, 64", "16, 96", "3, 4, 128", "8, 256")),
    torch.float32: ("FLOAT32", ("32", "64, 32", "7, 40", "2, 2, 64", "16, 128")),
    torch.float64: ("FLOAT64", ("16", "9, 16", "8, 24", "4, 2, 32")),
}
SWIZZLES = {"SWIZZLE_NONE": 1 << 20, "SWIZZLE_32B": 32, "SWIZZLE_64B": 64, "SWIZZLE_128B": 128}
# The tensor is wider than most boxes in every direction, and its rows are multiples of 16 bytes.
SHAPE = (11, 70, 304)


def tiles():
    """Yield a tuple for each tile: its C++ type, its extents, its dtype, and a bool that is true if a typed store is
    possible."""
    for dtype, (data_type, boxes) in DTYPES.items():
        for box, (swizzle, span) in itertools.product(boxes, SWIZZLES.items()):
            extents = tuple(map(int, box.split(", ")))
            row_bytes = extents[-1] * dtype.itemsize
            if row_bytes % 16 == 0:
                yield (
                    f"Tile<{data_type}, Box<{box}>, {swizzle}>",
                    extents,
                    dtype,
                    row_bytes <= span or not row_bytes % span,
                )


def bits(tensor):
    """Return the bits of the elements, so that a comparison finds equal NaNs."""
    return tensor.contiguous().view(torch.uint8)


def window(tensor, extents, corner):
    """Return the expected content of a tile with these extents at a corner: the tensor's elements, and zeros
    outside."""
    inside = tensor[tuple(slice(start, start + extent) for start, extent in zip(corner, extents, strict=True))]
    whole = tensor.new_zeros(extents)
    whole[tuple(slice(0, extent) for extent in inside.shape)] = inside
    return whole, inside


def through(stream, name, extents, dtype, stores):
    """Load one tile inside the tensor and one tile across the edge, reverse the elements, and store the tiles."""
    shape = SHAPE[-len(extents) :]
    count = torch.Size(shape).numel() * dtype.itemsize
    source = torch.randint(256, (count,), device="cuda", dtype=torch.uint8).view(dtype).reshape(shape)
    kernel = cuda_tma.compile(SOURCE, f"through<{name}, {str(stores).lower()}>")
    unit = 16 // dtype.itemsize
    for corner in ((1, 3, unit), (SHAPE[0] - 1, SHAPE[1] - 2, SHAPE[2] - unit)):
        corner = corner[-len(extents) :]
        out, target = source.new_zeros(extents), torch.zeros_like(source)
        config = LaunchConfig(grid=1, block=128)
        place = (*corner[::-1], 0, 0)[:3]
        cuda_tma.launch(stream, config, kernel, source, target, out, *place)
        whole, inside = window(source, extents, corner)
        assert torch.equal(bits(out), bits(whole)), f"{name} at {corner}: loaded"
        if stores:
            turned = whole.flatten().flip(0).reshape(extents)
            expected = torch.zeros_like(source)
            region = tuple(slice(start, start + extent) for start, extent in zip(corner, inside.shape, strict=True))
            expected[region] = turned[tuple(slice(0, extent) for extent in inside.shape)]
            assert torch.equal(bits(target), bits(expected)), f"{name} at {corner}: stored"


def in_parts(stream, width, swizzle):
    tile, part = (f"Tile<BFLOAT16, Box<{rows}, {width}>, {swizzle}>" for rows in (32, 8))
    kernel = cuda_tma.compile(SOURCE, f"in_parts<{tile}, {part}>")
    source = torch.randn(32, width, device="cuda").bfloat16()
    out = torch.zeros_like(source)
    cuda_tma.launch(stream, LaunchConfig(grid=1, block=128), kernel, source, out)
    assert torch.equal(out, source), f"{tile} in parts"


def main():
    device = cuda_tma.Device()
    device.set_current()
    torch.manual_seed(1)
    every = list(tiles())
    parts = list(itertools.product((32, 64, 128), SWIZZLES))
    with simulate.watch(launches_of_each=1, sanitize=False) as launches:
        for one in every:
            through(device.default_stream, *one)
        for width, swizzle in parts:
            in_parts(device.default_stream, width, swizzle)
    same = [launch for launch in launches if launch.report and not launch.report.findings and not launch.differences]
    print(f"ok: {len(every)} tiles, {len(parts)} in parts; on the simulator the first of each, {len(same)} the same")


if __name__ == "__main__":
    main()
