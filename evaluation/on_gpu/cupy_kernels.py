"""Launch CuPy kernels in several sizes, for ``run_trial.py``: raw, elementwise and reduction kernels, and CuPy's own
kernels.
"""

import sys

import cupy
import numpy as np

SIZES = (1, 17, 64, 100, 255, 1000, 1024, 1500, 2048, 3333)
SOURCE = r"""
extern "C" __global__ void reversed(const float* in, float* out, int n) {
    __shared__ float tile[256];
    int first = blockIdx.x * 256, at = first + threadIdx.x, last = min(n - first, 256);
    if (at < n) tile[threadIdx.x] = in[at];
    __syncthreads();
    if (at < n) out[at] = tile[last - 1 - threadIdx.x];
}
extern "C" __global__ void summed(const int* in, int* out, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, value = at < n ? in[at] : 0;
    for (int offset = 16; offset; offset >>= 1) value += __shfl_down_sync(0xffffffffu, value, offset);
    if (threadIdx.x % 32 == 0) atomicAdd(out, value);
}
extern "C" __global__ void waves(const float* in, float* out, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) out[at] = sinf(in[at]) * expf(-in[at]) + sqrtf(in[at]) / (1.0f + in[at]);
}
extern "C" __global__ void doubled(double* values, int n) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n) values[at] = values[at] * 2.0 + 1.0;
}
"""
module = cupy.RawModule(code=SOURCE)
square = cupy.ElementwiseKernel("float32 x, float32 y", "float32 z", "z = (x - y) * (x - y)", "squared_difference")
norm = cupy.ReductionKernel("float32 x", "float32 y", "x * x", "a + b", "y = sqrt(a)", "0", "norm2")


def run_raw(n):
    grid, block = (-(-n // 256),), (256,)
    x = cupy.asarray(np.random.default_rng(n).random(n, np.float32))
    out = cupy.zeros_like(x)
    module.get_function("reversed")(grid, block, (x, out, np.int32(n)))
    module.get_function("waves")(grid, block, (x, out, np.int32(n)))
    integers = cupy.arange(n, dtype=np.int32)
    total = cupy.zeros(1, np.int32)
    module.get_function("summed")(grid, block, (integers, total, np.int32(n)))
    assert int(total[0]) == n * (n - 1) // 2
    values = cupy.arange(n, dtype=np.float64)
    module.get_function("doubled")(grid, block, (values, np.int32(n)))
    assert float(values[-1]) == 2.0 * (n - 1) + 1


def run_own(n):
    x = cupy.asarray(np.random.default_rng(n).random(n, np.float32))
    y = cupy.arange(n, dtype=np.float32)
    np.testing.assert_allclose(square(x, y).get(), (x.get() - y.get()) ** 2, rtol=1e-6)
    np.testing.assert_allclose(float(norm(x)), np.linalg.norm(x.get()), rtol=1e-5)
    np.testing.assert_allclose((x * 2 + y).get(), x.get() * 2 + y.get(), rtol=1e-6)
    np.testing.assert_allclose(cupy.exp(x).get(), np.exp(x.get()), rtol=1e-6)
    assert int(cupy.where(y > 5, 1, 0).sum()) == max(n - 6, 0)
    assert int(cupy.argmax(y)) == n - 1


def attempt(run, *arguments):
    """Run a group of launches. An error of CuPy itself does not end the trial."""
    try:
        run(*arguments)
    except Exception as error:
        print(f"failed: {run.__name__}{arguments}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)


if __name__ == "__main__":
    for size in SIZES:
        attempt(run_raw, size)
        attempt(run_own, size)
