"""A matrix product through shared memory, without the barrier between the stores and the loads."""

import numpy as np
from numba import cuda, float32

TPB = 8


@cuda.jit
def product(a, b, c):
    left = cuda.shared.array((TPB, TPB), float32)
    right = cuda.shared.array((TPB, TPB), float32)
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    left[y, x] = a[y, x]
    right[y, x] = b[y, x]
    total = float32(0)
    for k in range(TPB):
        total += left[y, k] * right[k, x]  # wrong
    c[y, x] = total


a, b = (np.random.default_rng(seed).random((TPB, TPB), np.float32) for seed in (0, 1))
c = cuda.device_array((TPB, TPB), np.float32)
product[1, (TPB, TPB)](cuda.to_device(a), cuda.to_device(b), c)
