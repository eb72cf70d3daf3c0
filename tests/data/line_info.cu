// Statements that a front end of PTX must parse, compiled by nvcc 13.0, -ptx -arch=sm_90a -lineinfo, next to this file.
#include <cassert>
#include <cstdio>
#include <cuda_fp16.h>

struct Pair { int number; double half; };

__constant__ float table[4] = {1.f, 2.5f, -0.f};
__device__ int counter = 7, grid[2][3] = {{1}, {4, 5}};
__device__ int* where = &counter;

__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__device__ __noinline__ int twice(int n) { return 2 * n; }
__device__ int (*functions[2])(int) = {factorial, twice};
__device__ __noinline__ Pair pair_of(int n) { return {n, n * .5}; }
__device__ inline __half2 inner(__half2 a, __half2 b) { return __hfma2(a, b, a); }
__device__ inline __half2 outer(const __half2* a) { return inner(a[0], a[1]); }

extern "C" __global__ void __launch_bounds__(256, 2) everything(Pair pair, int* out, float* f, __half2* h, char n) {
    extern __shared__ double dynamic[];
    __shared__ alignas(1024) int fixed[128];
    int local[32];
    for (int i = 0; i < 32; i++) local[i] = out[i] * n;
    fixed[threadIdx.x] = local[(n + threadIdx.x) & 31];
    __syncthreads();
    switch (n) {
        case 0: out[0] = 1; break;
        case 1: out[1] = factorial(n); break;
        case 2: out[2] = fixed[5]; break;
        case 3: f[3] = sinf(f[3]); break;
        case 4: out[4] = local[n]; break;
        case 5: out[9] = grid[n & 1][2] + *where; break;
        default: out[5] = 6;
    }
    out[threadIdx.x] = functions[n & 1](n) + pair_of(n).number + pair.number;
    f[threadIdx.x] = table[n & 3] * f[1] / f[2];
    h[threadIdx.x] = outer(h);
    dynamic[threadIdx.x] = pair_of(n).half;
    if (__shfl_xor_sync(~0u, n, 1) == 3) printf("%d %f\n", n, f[1]);
    assert(n > 3);
    asm volatile("{ .reg .pred p; .reg .b32 a<2>;\n again: setp.ne.b32 p, %0, 0; mov.b32 a1, -1; @!p bra again; }" ::"r"(counter));
    asm volatile("{ .reg .pred p;\n again: setp.ne.b32 p, %0, 1; @p bra again; }" ::"r"(out[7]));
}
