// One forward kernel of FlashAttention-3 on small tensors, compared with a plain computation: program [ROWS]
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_bf16.h>

#include "flash_fwd_launch_template.h"

#ifndef CAUSAL
#define CAUSAL false
#endif
#ifndef CLUSTER
#define CLUSTER 1
#endif
#ifndef HEAD
#define HEAD 64
#endif

void prepare_varlen_num_blocks(Flash_fwd_params&, cudaStream_t, bool, int, int, bool) {}

float number(unsigned& state) {
    state = state * 1664525u + 1013904223u;
    return __bfloat162float(__float2bfloat16(float(state >> 16) / 32768.0f - 1.0f));
}

int main(int count, char** words) {
    int const n = count > 1 ? std::atoi(words[1]) : 256, heads = 2, d = HEAD, total = n * heads * d;
    std::vector<std::vector<float>> values(3, std::vector<float>(total));
    std::vector<__nv_bfloat16*> given(4);
    unsigned state = 7;
    for (int i = 0; i < 4; ++i) {
        std::vector<__nv_bfloat16> host(total);
        for (int j = 0; i < 3 && j < total; ++j) host[j] = __float2bfloat16(values[i][j] = number(state));
        cudaMalloc(&given[i], total * 2);
        cudaMemcpy(given[i], host.data(), total * 2, cudaMemcpyHostToDevice);
    }
    float* sums;
    int* semaphore;
    cudaMalloc(&sums, heads * n * 4);
    cudaMalloc(&semaphore, 4);
    cudaMemset(semaphore, 0, 4);
    Flash_fwd_params params = {};
    params.is_bf16 = true;
    params.q_ptr = given[0], params.k_ptr = given[1], params.v_ptr = given[2], params.o_ptr = given[3];
    params.q_row_stride = params.k_row_stride = params.v_row_stride = params.o_row_stride = heads * d;
    params.q_head_stride = params.k_head_stride = params.v_head_stride = params.o_head_stride = d;
    params.q_batch_stride = params.k_batch_stride = params.v_batch_stride = params.o_batch_stride = total;
    params.v_dim_stride = 1;
    params.softmax_lse_ptr = sums;
    params.b = params.b_k = 1, params.h = params.h_k = heads, params.d = params.d_rounded = params.dv = d;
    params.dv_rounded = d, params.seqlen_q = params.seqlen_k = n, params.num_splits = 1;
    params.seqlen_q_rounded = params.seqlen_k_rounded = (n + 127) / 128 * 128;
    params.scale_softmax = 1.0f / std::sqrt(float(d));
    params.is_causal = CAUSAL;
    params.window_size_left = n - 1, params.window_size_right = CAUSAL ? 0 : n - 1;
    params.tile_count_semaphore = semaphore;
    params.p_dropout = params.rp_dropout = 1.0f;
    params.arch = 90, params.num_sm = 132;
    run_flash_fwd<90, HEAD, HEAD, CLUSTER, cutlass::bfloat16_t, cutlass::bfloat16_t, CAUSAL, false, false, false, false,
                  false, false, false, false, false>(params, nullptr);
    std::vector<__nv_bfloat16> found(total);
    cudaMemcpy(found.data(), given[3], total * 2, cudaMemcpyDeviceToHost);
    for (auto* each : given) cudaFree(each);
    cudaFree(sums), cudaFree(semaphore);
    double worst = 0;
    for (int h = 0; h < heads; ++h)
        for (int i = 0; i < n; ++i) {
            std::vector<double> scores(CAUSAL ? i + 1 : n), out(d);
            double sum = 0;
            for (size_t j = 0; j < scores.size(); ++j) {
                double dot = 0;
                for (int c = 0; c < d; ++c)
                    dot += values[0][(i * heads + h) * d + c] * values[1][(j * heads + h) * d + c];
                sum += scores[j] = std::exp(dot * params.scale_softmax);
            }
            for (size_t j = 0; j < scores.size(); ++j)
                for (int c = 0; c < d; ++c) out[c] += scores[j] / sum * values[2][(j * heads + h) * d + c];
            for (int c = 0; c < d; ++c)
                worst = std::max(worst, std::abs(out[c] - __bfloat162float(found[(i * heads + h) * d + c])));
        }
    std::printf("%s, at most %.5f from the computation in double\n", worst < 0.01 ? "Passed" : "Failed", worst);
    return worst < 0.01 ? 0 : 1;
}
