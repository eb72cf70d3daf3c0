"""A program with raw kernels and raw modules from CuPy's documentation."""

import cupy as cp
import numpy as np

add_kernel = cp.RawKernel(
    r"""
extern "C" __global__
void my_add(const float* x1, const float* x2, float* y) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    y[tid] = x1[tid] + x2[tid];
}
""",
    "my_add",
)
x1 = cp.arange(25, dtype=cp.float32).reshape(5, 5)
x2 = cp.arange(25, dtype=cp.float32).reshape(5, 5)
y = cp.zeros((5, 5), dtype=cp.float32)
# The arguments of the call are the grid, the block and the kernel's arguments.
add_kernel((5,), (5,), (x1, x2, y))
assert (cp.asnumpy(y) == 2 * np.arange(25).reshape(5, 5)).all()

complex_kernel = cp.RawKernel(
    r"""
#include <cupy/complex.cuh>
extern "C" __global__
void my_func(const complex<float>* x1, const complex<float>* x2,
             complex<float>* y, float a) {
    int tid = blockDim.x * blockIdx.x + threadIdx.x;
    y[tid] = x1[tid] + a * x2[tid];
}
""",
    "my_func",
)
x1 = cp.arange(25, dtype=cp.complex64).reshape(5, 5)
x2 = 1j * cp.arange(25, dtype=cp.complex64).reshape(5, 5)
y = cp.zeros((5, 5), dtype=cp.complex64)
# The arguments of the call are the grid, the block and the kernel's arguments.
complex_kernel((5,), (5,), (x1, x2, y, cp.float32(2.0)))
assert (cp.asnumpy(y) == np.arange(25).reshape(5, 5) * (1 + 2j)).all()

loaded_from_source = r"""
extern "C"{

__global__ void test_sum(const float* x1, const float* x2, float* y, \
                         unsigned int N)
{
    unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid < N)
    {
        y[tid] = x1[tid] + x2[tid];
    }
}

__global__ void test_multiply(const float* x1, const float* x2, float* y, \
                              unsigned int N)
{
    unsigned int tid = blockDim.x * blockIdx.x + threadIdx.x;
    if (tid < N)
    {
        y[tid] = x1[tid] * x2[tid];
    }
}

}"""
module = cp.RawModule(code=loaded_from_source)
ker_sum = module.get_function("test_sum")
ker_times = module.get_function("test_multiply")
N = 10
x1 = cp.arange(N**2, dtype=cp.float32).reshape(N, N)
x2 = cp.ones((N, N), dtype=cp.float32)
y = cp.zeros((N, N), dtype=cp.float32)
# The kernel ker_sum computes y = x1 + x2.
ker_sum((N,), (N,), (x1, x2, y, N**2))
assert cp.allclose(y, x1 + x2)
# The kernel ker_times computes y = x1 * x2.
ker_times((N,), (N,), (x1, x2, y, N**2))
assert cp.allclose(y, x1 * x2)

code = r"""
template<typename T>
__global__ void fx3(T* arr, int N) {
    unsigned int tid = blockIdx.x * blockDim.x + threadIdx.x;
    if (tid < N) {
        arr[tid] = arr[tid] * 3;
    }
}
"""
name_exp = ["fx3<float>", "fx3<double>"]
mod = cp.RawModule(code=code, options=("-std=c++11",), name_expressions=name_exp)
# CuPy compiles the kernel in the call of get_function().
ker_float = mod.get_function(name_exp[0])
N = 10
a = cp.arange(N, dtype=cp.float32)
ker_float((1,), (N,), (a, N))
assert (cp.asnumpy(a) == 3 * np.arange(N)).all()
ker_double = mod.get_function(name_exp[1])
a = cp.arange(N, dtype=cp.float64)
ker_double((1,), (N,), (a, N))
assert (cp.asnumpy(a) == 3 * np.arange(N)).all()

global_code = r"""
extern "C" {
__device__ int some_array[5];
__global__ void write(int n) { some_array[threadIdx.x] = n + threadIdx.x; }
}
"""
module = cp.RawModule(code=global_code)
memptr = module.get_global("some_array")
module.get_function("write")((1,), (5,), (7,))
assert (cp.asnumpy(cp.ndarray(5, cp.int32, memptr)) == np.arange(7, 12)).all()
