// source: PTX ISA 9.0, "tcgen05 Memory Consistency Model"
// bug: the accumulator is loaded without a wait for the mbarrier of the commit.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], 0);  // culprit
        COMMIT(&s.done);
    }
    __syncthreads();
#ifdef FIXED
    WAIT(&s.done, 0);
#endif
    LD(x, lanes(t));  // culprit
    WAIT_LD();
    WAIT(&s.done, 0);
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
