"""A Numba program with a grid-wide barrier from the CUDA device runtime, and with a linked C++ function."""

import numpy as np
from numba import cuda, int32

DOUBLED = cuda.CUSource('extern "C" __device__ int doubled(int* result, int x) { *result = 2 * x; return 0; }')
doubled = cuda.declare_device("doubled", "int32(int32)", link=DOUBLED)


@cuda.jit((int32[:, ::1],))
def rows(values):
    column = cuda.grid(1)
    grid = cuda.cg.this_grid()
    for row in range(1, values.shape[0]):
        values[row, column] = values[row - 1, values.shape[1] - column - 1] + doubled(1)
        grid.sync()


values = np.zeros((8, 64), np.int32)
rows[4, 16](values)
assert (values == np.arange(0, 16, 2)[:, None]).all()
