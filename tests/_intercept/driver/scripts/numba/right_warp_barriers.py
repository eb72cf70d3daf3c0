"""Right calls of __syncwarp() in branches. The mask contains only lanes that arrive, or each branch has a barrier for
all lanes."""

import numpy as np
from numba import cuda


@cuda.jit
def halved(values):
    i = cuda.threadIdx.x
    if i < 2:
        values[i] += values[i + 2]
        cuda.syncwarp(3)
    if i == 0:
        values[0] += values[1]


@cuda.jit
def in_branches(values):
    i = cuda.threadIdx.x
    if i < 2:
        values[i] += values[i + 2]
        cuda.syncwarp()
    else:
        if i > 3:
            values[i] += 1
        cuda.syncwarp()


for kernel, expected in ((halved, 4), (in_branches, 2)):
    values = cuda.to_device(np.ones(32))
    kernel[1, 32](values)
    assert values.copy_to_host()[0] == expected
