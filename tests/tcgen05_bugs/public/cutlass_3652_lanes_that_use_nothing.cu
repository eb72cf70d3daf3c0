// source: NVIDIA/cutlass#3652
// bug: half of the lanes never use the registers that they load, and all arrive without tcgen05.wait::ld; another
//   warp then frees the columns.
// kind: tcgen05-order, tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64, 1, 128), x = 0;
    ST(lanes(t), 1u);
    WAIT_ST();
    __syncthreads();
    LD(x, lanes(t));  // culprit
#ifdef FIXED
    WAIT_LD();
#endif
    ARRIVE(&s.empty[0]);  // culprit
    if (warp == 0) {
        WAIT(&s.empty[0], 0);
        DEALLOC(t, 64);  // culprit
    }
    if (lane >= 16) x = 0;
    __syncthreads();
    if (warp == 0) ALLOC(&s.base, 64);
    __syncthreads();
    t = s.base;
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
