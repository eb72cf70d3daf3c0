// source: vllm-project/flash-attention#182, of the class of flashinfer-ai/flashinfer#5334
// bug: the accumulator is loaded and released without tcgen05.wait::ld, before the registers are used; the next
//   product overwrites it.
// kind: tcgen05-order
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0;
    if (warp == 4) {
        for (int i = 0; i < 2; ++i) {
            if (i) WAIT(&s.empty[0], 0);
            if (lane == 0) {
                MMA(t, s.a[0], s.b[0], 0);  // culprit
                COMMIT(&s.full[0]);
            }
            __syncwarp();
        }
        WAIT(&s.full[0], 1);
    } else {
        WAIT(&s.full[0], 0);
        LD(x, lanes(t));  // culprit
#ifdef FIXED
        WAIT_LD();
#endif
        ARRIVE(&s.empty[0]);  // culprit
        WAIT_LD();
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
