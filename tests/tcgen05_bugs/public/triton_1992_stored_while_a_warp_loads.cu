// source: facebookexperimental/triton#1992, the compiler's side is #1993
// bug: eight warps load scores and store weights over half of them. Two warps have the same lanes, and the store of one
//   covers columns that the other loads; no barrier separates them.
// kind: tcgen05-order
// block: 256

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    const u32 half = t + warp / 4 * 8;
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], 0);
        COMMIT(&s.done);
    }
    WAIT(&s.done, 0);
    LD(x, lanes(half));  // culprit
    WAIT_LD();
#ifdef FIXED
    __syncthreads();
#endif
    ST(lanes(t + 8 - warp / 4 * 8), x);  // culprit
    WAIT_ST();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
