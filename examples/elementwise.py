"""Add two matrices of any shape, with ordinary accesses by a thread-value layout, and again with TMA, in comparison
with torch.

A CTA adds one tile. The layout assigns each thread a block of 4 rows, with 16 bytes in each row, so that a warp
accesses 512 contiguous bytes of a row. `cases` asserts that this layout is CuTe's `make_layout_tv((4,32):(32,1),
(4,4):(4,1))` for float. The identity tensor of the tile contains the coordinates of each element; the coordinates are
the mask of the tails.

`add_tma` leaves the tails to TMA, which loads zeros beyond an edge, and stores nothing beyond the edge. TMA needs rows
of a multiple of 16 bytes, so `cases` pads the rows of its tensors. `add` does not have this limit: if the rows are not
a multiple of 16 bytes, `add` accesses single elements. Both kernels read each byte once, so TMA saves no work in this
example.
"""

from functools import partial

from _example import dtype_of, short_name, start_cases, torch
from cuda.core import LaunchConfig

import cuda_tma

SMALL = (((1001, 517), "FLOAT32"), ((1001, 517), "FLOAT16"), ((1001, 517), "INT32"), ((100, 520), "FLOAT16"))
LARGE = (((16384, 16384), "FLOAT32"), ((16384, 32768), "FLOAT16"), ((16384, 16384), "INT32"))  # 1 GiB each
TARGETS = ("sm_90a", "sm_100a", "sm_120a")
SOURCE = r"""
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;

constexpr int THREADS_M = 4, THREADS_N = 32, THREADS = THREADS_M * THREADS_N;   // (4,32):(32,1)
constexpr int VALUES_M = 4;   // (VALUES_M,VALUES_N):(VALUES_N,1)

template <DataType Type>
struct alignas(16) Values {   // the values of a thread in one row
    using Element = typename ElementOf<Type>::Type;
    static constexpr int N = 16 / sizeof(Element);
    Element values[N];
    __device__ void add(const Values& other) {
        for (int i = 0; i < N; ++i) values[i] = values[i] + other.values[i];
    }
};

constexpr int TILE_M = THREADS_M * VALUES_M;
template <DataType Type> constexpr int TILE_N = THREADS_N * Values<Type>::N;
template <DataType Type> using Window = Tile<Type, Box<TILE_M, TILE_N<Type>>>;   // 8 KB

// The thread-value layout ((32,4),(N,4)):((N*TILE_M,4),(TILE_M,1)) maps a thread and a value to an element of the tile.
template <DataType Type>
__device__ int element_of(int thread, int row) {
    return thread % THREADS_N * Values<Type>::N * TILE_M + thread / THREADS_N * VALUES_M + row;
}

// The identity tensor maps an element of the tile, in column-major order, to its coordinates.
struct Coordinate { int row, column; };
__device__ Coordinate identity(int element) { return {element % TILE_M, element / TILE_M}; }

// The part of a row of the matrix that a thread adds. `Whole`: rows are a multiple of 16 bytes, so that 16 bytes of a
// row are all inside the matrix, or all outside.
template <DataType Type, bool Whole>
struct Part {
    using Element = typename ElementOf<Type>::Type;
    long long first;   // the index of its first element
    int left;          // the number of elements from there to the end of the row; at most 0: all are outside

    __device__ Part(int i, int rows, int columns) {
        const Coordinate at = identity(element_of<Type>(threadIdx.x, i));   // the tile, sliced by the thread
        const int row = blockIdx.y * TILE_M + at.row;   // the matrix, sliced by the CTA
        const int column = blockIdx.x * TILE_N<Type> + at.column;
        first = 1LL * row * columns + column;
        left = row < rows ? columns - column : 0;
    }
    __device__ Values<Type> load(const Element* matrix) const {
        Values<Type> found{};
        if (Whole && left > 0) reinterpret_cast<uint4&>(found) = *reinterpret_cast<const uint4*>(matrix + first);
        for (int n = 0; !Whole && n < found.N; ++n)
            if (n < left) found.values[n] = matrix[first + n];
        return found;
    }
    __device__ void store(Element* matrix, const Values<Type>& sums) const {
        if (Whole && left > 0) *reinterpret_cast<uint4*>(matrix + first) = reinterpret_cast<const uint4&>(sums);
        for (int n = 0; !Whole && n < sums.N; ++n)
            if (n < left) matrix[first + n] = sums.values[n];
    }
};

template <DataType Type, bool Whole>
__global__ void __launch_bounds__(THREADS)
add(const typename ElementOf<Type>::Type* a, const typename ElementOf<Type>::Type* b,
    typename ElementOf<Type>::Type* c, int rows, int columns) {
    Values<Type> x[VALUES_M], y[VALUES_M];
    for (int i = 0; i < VALUES_M; ++i) {   // all loads before the first sum, so that their latencies overlap
        const Part<Type, Whole> part{i, rows, columns};
        x[i] = part.load(a), y[i] = part.load(b);
    }
    for (int i = 0; i < VALUES_M; ++i) {
        x[i].add(y[i]);
        Part<Type, Whole>{i, rows, columns}.store(c, x[i]);
    }
}

template <DataType Type>
__global__ void __launch_bounds__(THREADS)
add_tma(const __grid_constant__ TiledMap<Window<Type>> a, const __grid_constant__ TiledMap<Window<Type>> b,
        const __grid_constant__ TiledMap<Window<Type>> c) {
    __shared__ Window<Type> x, y;
    __shared__ Barrier full;
    const Coordinates tile{int(blockIdx.x) * TILE_N<Type>, int(blockIdx.y) * TILE_M};
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();   // makes the barrier visible to the TMA unit
        full.arrive_expect_tx(x.tx_bytes() + y.tx_bytes());
        load(x, a, full, tile);
        load(y, b, full, tile);
    }
    __syncthreads();   // no thread waits on a barrier that is not yet initialized
    full.wait(0);
    for (int i = 0; i < VALUES_M; ++i) {
        const Coordinate at = identity(element_of<Type>(threadIdx.x, i));
        x.template as<Values<Type>>(at.row, at.column).add(y.template as<Values<Type>>(at.row, at.column));
    }
    fence_proxy_async();   // makes this thread's sums visible to the TMA unit
    __syncthreads();
    if (threadIdx.x != 0) return;
    store(c, tile, x);
    commit_group();
    wait_group_read();   // shared memory ends with its CTA: wait until the store has read it
}
"""
CONSTANTS = {"threads": "THREADS", "rows": "THREADS_M", "columns": "THREADS_N", "values": "VALUES_M"}


def check_layout(constants, tile_dim):
    """Compare the kernel's tile and its thread-value layout with those of CuTe, if ``tensor-layouts`` is installed."""
    try:
        from tensor_layouts import Layout
    except ImportError:
        return
    from cuda_tma.layouts import make_layout_tv, make_ordered_layout

    m, n = constants["values"], tile_dim[1] // constants["columns"]
    threads = make_ordered_layout((constants["rows"], constants["columns"]), order=(1, 0))
    tiler, layout = make_layout_tv(threads, make_ordered_layout((m, n), order=(1, 0)))
    assert tiler == tile_dim
    expected = ((n * tile_dim[0], m), (tile_dim[0], 1))
    assert layout == Layout(((constants["columns"], constants["rows"]), (n, m)), expected)


def operands(shape, dtype):
    """Return two random matrices and a matrix for the sum, all with rows that are padded to a multiple of 16 bytes."""
    rows, columns = shape
    padded = -(-columns * dtype.itemsize // 16) * 16 // dtype.itemsize
    inputs = (torch.randint(-1000, 1000, (rows, padded), device="cuda").to(dtype) for _ in range(2))
    return [matrix[:, :columns] for matrix in (*inputs, torch.full((rows, padded), -1, device="cuda").to(dtype))]


def cases(sizes):
    """Yield cases as `_example` describes. The code after `yield` checks the results of the last runs."""
    device = cuda_tma.Device()
    device.set_current()
    for shape, name in sizes:
        with_tma = cuda_tma.compile(SOURCE, f"add_tma<{name}>", constants=CONSTANTS)
        parameters = cuda_tma.parameters_of(with_tma)
        map_type, constants = parameters["a"].map_type, parameters.constants
        check_layout(constants, map_type.tile_dim)
        dtype, (rows, columns) = dtype_of(map_type), shape
        padded = operands(shape, dtype)
        a, b, c = (matrix.contiguous() for matrix in padded)
        other = torch.full_like(c, -1)
        whole = columns * dtype.itemsize % 16 == 0
        plain = cuda_tma.compile(SOURCE, f"add<{name}, {'true' if whole else 'false'}>")

        tiles = [-(-extent // of_tile) for extent, of_tile in zip(shape, map_type.tile_dim, strict=True)]
        config = LaunchConfig(grid=(tiles[1], tiles[0]), block=constants["threads"])
        add = partial(cuda_tma.prepare(plain, config, a, b, c, rows, columns), device.default_stream)
        rivals = {
            "torch.add": partial(torch.add, a, b, out=other),
            "ours, with TMA": partial(cuda_tma.prepare(with_tma, config, *padded), device.default_stream),
        }
        yield f"{rows} x {columns} {short_name(dtype)}", add, rivals, 0, 3 * a.nbytes
        assert torch.equal(c, a + b) and torch.equal(other, c) and torch.equal(padded[2], c)


if __name__ == "__main__":
    start_cases(cases, SMALL, LARGE, __doc__)
