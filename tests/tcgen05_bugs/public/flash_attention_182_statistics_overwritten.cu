// source: vllm-project/flash-attention#182
// bug: a warp loads statistics from tensor memory and releases them without tcgen05.wait::ld; another warp of the
//   same lanes stores the next ones.
// kind: tcgen05-order
// block: 256

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0;
    if (warp < 4) ST(lanes(t), 1u);
    WAIT_ST();
    __syncthreads();
    if (warp < 4) {
        LD(x, lanes(t));  // culprit
#ifdef FIXED
        WAIT_LD();
#endif
        ARRIVE(&s.empty[0]);  // culprit
        WAIT_LD();
    } else {
        WAIT(&s.empty[0], 0);
        ST(lanes(t), 2u);  // culprit
        WAIT_ST();
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
