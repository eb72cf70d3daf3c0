"""A program with kernels that CuPy generates for elementwise functions, reductions, copies, indexing and scans."""

import cupy as cp
import numpy as np


def equal(found, expected):
    np.testing.assert_allclose(cp.asnumpy(found), expected, rtol=1e-6)


x = cp.arange(10, dtype="f")
numbers = np.arange(10, dtype="f")
squared_diff = cp.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_diff")
y = cp.arange(5, dtype=np.float32)
equal(squared_diff(x.reshape(2, 5), y), (numbers.reshape(2, 5) - numbers[:5]) ** 2)
l2norm_kernel = cp.ReductionKernel("T x", "T y", "x * x", "a + b", "y = sqrt(a)", "0", "l2norm")
equal(l2norm_kernel(x.reshape(2, 5), axis=1), np.sqrt((numbers.reshape(2, 5) ** 2).sum(axis=1)))


@cp.fuse(kernel_name="squared_diff")
def fused(x, y):
    return (x - y) * (x - y)


equal(fused(x, x + 1), np.ones(10))
equal(x.sum(), numbers.sum())
equal(x.reshape(2, 5).sum(axis=1), numbers.reshape(2, 5).sum(axis=1))
equal(x.argmax(), 9)
equal(cp.concatenate([x, x])[::2], np.concatenate([numbers, numbers])[::2])
z = cp.zeros((4, 4))
z[1:3, 1:3] = 1
equal(z, np.pad(np.ones((2, 2)), 1))
equal(x[x > 4], numbers[5:])
equal(cp.cumsum(x), np.cumsum(numbers))
