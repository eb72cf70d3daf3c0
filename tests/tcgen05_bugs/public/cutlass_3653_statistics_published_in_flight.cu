// source: NVIDIA/cutlass#3653, the Blackwell example 77
// bug: a softmax warp stores statistics to tensor memory and arrives without tcgen05.wait::st; a correction warp loads
//   them after its wait.
// kind: tcgen05-order
// block: 256

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 128, 128), x = 0;
    for (int i = 0; i < 2; ++i) {
        if (warp < 4) {
            if (i) WAIT(&s.empty[0], 0);
            ST(lanes(t), i + threadIdx.x);  // culprit
#ifdef FIXED
            WAIT_ST();
#endif
            ARRIVE(&s.full[0]);  // culprit
        } else {
            WAIT(&s.full[0], i);
            LD(x, lanes(t));  // culprit
            WAIT_LD();
            ARRIVE(&s.empty[0]);
        }
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
