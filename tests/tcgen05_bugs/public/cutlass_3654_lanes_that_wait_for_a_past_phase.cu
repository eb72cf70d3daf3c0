// source: NVIDIA/cutlass#3654, the Blackwell example 77
// bug: all lanes of a warp wait for a free stage, and one of them multiplies at once. Nothing orders the waits of the
//   others before the product and the release that it leads to: a lane may wait for a phase that is over.
// kind: barrier-use
// missed: not confirmed upstream; all pipelines of CuTe DSL wait so, and the lanes of a warp wait together here
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0;
    if (warp == 4) {
        for (int i = 0; i < 3; ++i) {
            WAIT(&s.empty[0], (i & 1) ^ 1);  // culprit
#ifdef FIXED
            __syncwarp();
#endif
            if (lane == 0) {
                MMA(t, s.a[0], s.b[0], 0);
                COMMIT(&s.full[0]);  // culprit
            }
        }
    } else {
        for (int i = 0; i < 3; ++i) {
            WAIT(&s.full[0], i & 1);
            LD(x, lanes(t));
            WAIT_LD();
            ARRIVE(&s.empty[0]);  // culprit
        }
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
