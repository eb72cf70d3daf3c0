// The bf16 GEMM of ThunderKittens for sm_90 on small matrices, compared with a plain computation.
#include <cmath>
#include <cstdio>

// The example's main() launches products of 4096 x 4096 x 4096. As a template, it is not compiled.
#define main unused; template <int> int benchmarks
#include "bf16_h100_gemm.cu"
#undef main

#ifndef TILES
#define TILES 2, 4, 8
#endif

int main() {
    using Kernel = matmul_template<TILES>;
    int const m = 256, n = 256, k = 192;
    bf16 *a, *b, *c;
    cudaMalloc(&a, m * k * 2);
    cudaMalloc(&b, k * n * 2);
    cudaMalloc(&c, m * n * 2);
    std::vector<bf16> left(m * k), right(k * n), found(m * n);
    unsigned state = 5;
    for (auto* each : {&left, &right})
        for (bf16& value : *each) {
            state = state * 1664525u + 1013904223u;
            value = __float2bfloat16(float(state >> 16) / 32768.0f - 1.0f);
        }
    cudaMemcpy(a, left.data(), m * k * 2, cudaMemcpyHostToDevice);
    cudaMemcpy(b, right.data(), k * n * 2, cudaMemcpyHostToDevice);
    cudaMemset(c, 0, m * n * 2);
    cudaFuncSetAttribute(kittens::prototype::lcf::kernel<Kernel>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                         kittens::MAX_SHARED_MEMORY - 1024);
    inner_run<Kernel>(a, b, c, m, n, k, Kernel::grid(m, n, k), kittens::prototype::detail::NUM_THREADS_v<Kernel>);
    cudaMemcpy(found.data(), c, m * n * 2, cudaMemcpyDeviceToHost);
    cudaFree(a), cudaFree(b), cudaFree(c);
    double worst = 0;
    for (int i = 0; i < m; ++i)
        for (int j = 0; j < n; ++j) {
            double sum = 0;
            for (int l = 0; l < k; ++l) sum += __bfloat162float(left[i * k + l]) * __bfloat162float(right[l * n + j]);
            worst = std::max(worst, std::abs(sum - __bfloat162float(found[i * n + j])));
        }
    std::printf("%s, at most %.5f from the computation in double\n", worst < 0.1 ? "Passed" : "Failed", worst);
    return worst < 0.1 ? 0 : 1;
}
