"""A Numba program with a ufunc, and with the block-wide sum from Numba's documentation."""

import numpy as np
from numba import cuda, vectorize
from numba.types import int32

n = 256
a = cuda.to_device(np.arange(n))
nelem = len(a)


@cuda.jit
def array_sum(data):
    tid = cuda.threadIdx.x
    size = len(data)
    if tid < size:
        i = cuda.grid(1)
        shr = cuda.shared.array(nelem, int32)
        shr[tid] = data[i]
        cuda.syncthreads()
        s = 1
        while s < cuda.blockDim.x:
            if tid % (2 * s) == 0:
                shr[tid] += shr[tid + s]
            s *= 2
            cuda.syncthreads()
        if tid == 0:
            data[tid] = shr[tid]


array_sum[1, nelem](a)
assert a[0] == sum(np.arange(n))


@vectorize(["float32(float32, float32)"], target="cuda")
def scaled(a, b):
    return 2 * a + b


x = np.arange(300, dtype=np.float32)
assert (scaled(x, x) == 3 * x).all()
