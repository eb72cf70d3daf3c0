// source: tile-ai/tilelang#3087
// bug: the wait for a product uses the parity of a ring of two, and its barrier has one slot: it returns at once, and
//   the tile is written while the product reads it.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    for (int k = 0; k < 4; ++k) {
        for (int i = threadIdx.x; i < 2048; i += 128) s.a[0][i] = 0x3c00;  // culprit
        FENCE_PROXY();
        __syncthreads();
        if (threadIdx.x == 0) {
            MMA(t, s.a[0], s.b[0], k);  // culprit
            COMMIT(&s.full[0]);
        }
#ifdef FIXED
        WAIT(&s.full[0], k & 1);
#else
        WAIT(&s.full[0], (k / 2 & 1) ^ (k & 1 ? 0 : 1));
#endif
    }
#ifndef FIXED
    WAIT(&s.full[0], 1);
#endif
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
