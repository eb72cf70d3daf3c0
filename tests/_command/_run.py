"""Shared by the tests of ``run`` and their neighbors."""

from __future__ import annotations

import pytest

from cuda_tma._command import cli

SOURCE = """
#include <cuda_tma/tile.cuh>
using namespace cuda_tma;
using Window = Tile<FLOAT32, Box<8, 16>>;
extern "C" __device__ int printf(const char*, ...);
extern "C" __global__ void scale(const __grid_constant__ TiledMap<Window> from, float* to, float by, int n) {
    __shared__ Window tile;
    __shared__ Barrier full;
    if (threadIdx.x == 0) {
        full.init(1);
        fence_barrier_init();
        full.arrive_expect_tx(tile);
        load(tile, from, full, Coordinates{0, 0});
        printf("%d rows\\n", ROWS);
    }
    __syncthreads();
    full.wait(0);
    for (int i = threadIdx.x; i < n; i += blockDim.x) to[i] = by * tile(i / 16, i % 16);
}
"""


@pytest.fixture
def run(tmp_path, capsys):
    source = tmp_path / "scale.cu"
    source.write_text(SOURCE)

    def run(*arguments):
        common = ["run", str(source), "--kernel", "scale", "--grid", "1", "--block", "32", "-D", "ROWS=8"]
        return cli.main([*common, *map(str, arguments)]), *capsys.readouterr()

    return run
