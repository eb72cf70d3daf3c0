// source: NVIDIA/TensorRT-LLM#18338
// bug: all threads read the bracket that the leader published, and the leader writes the next one without a barrier
//   between: threads leave the loop in different rounds.
// kind: race, barrier-divergence

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __shared__ u32 high;
    if (threadIdx.x == 0) high = in[0] & 7;
    __syncthreads();
    u32 x = 0;
    for (int round = 0; round < 2; ++round) {
        x += high;  // culprit
#ifdef FIXED
        __syncthreads();
#endif
        if (threadIdx.x == 0) high = x / 2;  // culprit
        __syncthreads();
    }
    if (threadIdx.x == 0) s.base = x;
    out[threadIdx.x] = x + warp + lane;
}
