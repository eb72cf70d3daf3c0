"""A kernel that copies the content of shared memory to the output after one TMA load, and NumPy's expected content."""

import ctypes

import numpy as np
from cuda.core import LaunchConfig

import cuda_tma

from . import modules

FILL = 0xA5
MAX_WINDOW_BYTES = 40 * 1024
# The bytes after the tile show that the load writes only the tile.
GUARD_BYTES = 64

READ_WINDOW = r"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;

// Copies shared memory to out after the load that start(tile, full) begins. Returns whether its phase completed.
template <typename Start>
__device__ bool read_window(unsigned char* out, unsigned window_bytes, unsigned tx_bytes, Start start) {
    extern __shared__ unsigned char raw[];
    __shared__ Barrier full;
    __shared__ int completed;
    unsigned char* tile = raw + (1024 - smem_address(raw) % 1024) % 1024;
    for (unsigned i = threadIdx.x; i < window_bytes; i += blockDim.x) tile[i] = 0xA5;
    fence_proxy_async();  // orders the fill above before the engine's writes
    __syncthreads();
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tx_bytes);
        start(tile, full);
        completed = 0;
        for (int i = 0; i < 100000 && !completed; i++) completed = full.try_wait(0);
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < window_bytes; i += blockDim.x) out[i] = tile[i];
    return completed;
}
"""
SOURCE = (
    READ_WINDOW
    + r"""
struct Position { int at[5]; };

template <int Rank>
__device__ void start_load(void* tile, const TensorMap& map, Barrier& full, const Position& p) {
    if constexpr (Rank == 1) load(tile, map, full, Coordinates{p.at[0]});
    if constexpr (Rank == 2) load(tile, map, full, Coordinates{p.at[0], p.at[1]});
    if constexpr (Rank == 3) load(tile, map, full, Coordinates{p.at[0], p.at[1], p.at[2]});
    if constexpr (Rank == 4) load(tile, map, full, Coordinates{p.at[0], p.at[1], p.at[2], p.at[3]});
    if constexpr (Rank == 5) load(tile, map, full, Coordinates{p.at[0], p.at[1], p.at[2], p.at[3], p.at[4]});
}

// out: the window of shared memory, then one byte that is 1 if the phase completed.
template <int Rank>
__global__ void read_tile(const __grid_constant__ TensorMap map, Position position, unsigned char* out,
                          unsigned window_bytes, unsigned tx_bytes) {
    auto start = [&](unsigned char* tile, Barrier& full) { start_load<Rank>(tile, map, full, position); };
    bool completed = read_window(out, window_bytes, tx_bytes, start);
    if (threadIdx.x == 0) out[window_bytes] = completed;
}
"""
)


class Position(ctypes.Structure):
    _fields_ = (("at", ctypes.c_int * 5),)


class TileReader:
    """A reader of tiles in shared memory. Each read is one launch of a kernel."""

    def __init__(self, device, stream):
        import torch

        names = [f"read_tile<{rank}>" for rank in range(1, 6)]
        module = modules.compiled(SOURCE, device.arch, names)
        self.kernels = [module.get_kernel(name) for name in names]
        self.stream = stream
        self.config = LaunchConfig(grid=1, block=128, shmem_size=MAX_WINDOW_BYTES + GUARD_BYTES + 1024)
        self.out = torch.empty(MAX_WINDOW_BYTES + GUARD_BYTES + 1, dtype=torch.uint8, device="cuda")

    def read(self, descriptor, coordinates, window_bytes=None):
        """Return the window of shared memory after one load at `coordinates` (tensor order), as uint8."""
        window_bytes = window_bytes or descriptor.smem_bytes + GUARD_BYTES
        position = Position((ctypes.c_int * 5)(*coordinates[::-1]))
        kernel = self.kernels[len(coordinates) - 1]
        cuda_tma.launch(
            self.stream, self.config, kernel, descriptor, position, self.out, window_bytes, descriptor.tx_bytes
        )
        self.stream.sync()
        out = self.out[: window_bytes + 1].cpu().numpy()
        assert out[-1] == 1, f"the barrier did not complete with tx_bytes={descriptor.tx_bytes}: {descriptor!r}"
        return out[:-1]


def expected_window(elements, box_dim, element_strides, coordinates, swizzle, fill_element, window_bytes, convert=None):
    """Return the expected content of the window after a load, computed only from the tensor's elements.

    Parameters
    ----------
    elements : ndarray of unsigned integers
        The tensor, with its elements as unsigned integers of their size; all arguments are in tensor order.
    swizzle : str
        Short name.
    fill_element : int
        The value of an element outside the tensor.
    convert : callable, optional
        The TMA unit's conversion of a loaded element.
    """
    steps = (*element_strides[:-1], 1)
    indices = [
        coordinate + step * np.arange(-(-extent // step))
        for coordinate, extent, step in zip(coordinates, box_dim, steps, strict=True)
    ]
    inside = [(index >= 0) & (index < size) for index, size in zip(indices, elements.shape, strict=True)]
    tile = elements[np.ix_(*[np.where(ok, index, 0) for ok, index in zip(inside, indices, strict=True)])]
    tile = convert(tile) if convert else tile
    tile = np.where(np.all(np.meshgrid(*inside, indexing="ij"), axis=0), tile, elements.dtype.type(fill_element))
    rows = np.ascontiguousarray(tile).view(np.uint8).reshape(-1, tile.shape[-1] * elements.itemsize)
    span = {"NONE": rows.shape[1], "32B": 32, "64B": 64, "128B": 128}[swizzle]
    offset = np.arange(rows.shape[0])[:, None] * span + np.arange(rows.shape[1])
    if swizzle != "NONE":
        # The swizzle combines the chunk with the masked number of the 128-byte line by XOR.
        chunks_of_span = span // 16 - 1
        offset ^= ((offset >> 7) & chunks_of_span) << 4
    window = np.full(window_bytes, FILL, np.uint8)
    window[offset] = rows
    return window


def first_difference(got, wanted):
    """Return the index of the first byte that differs in two arrays, or None."""
    differing = np.flatnonzero(got != wanted)
    return int(differing[0]) if differing.size else None
