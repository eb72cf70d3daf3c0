// source: PTX ISA 9.0, "tcgen05.dealloc"
// bug: the columns of a product are freed without a wait for its end.
// kind: tcgen05-order, tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    __shared__ u32 second;
    if (warp == 0) {
        ALLOC(&second, 32);
        const u32 u = second;
        if (lane == 0) {
            MMA(u, s.a[0], s.b[0], 0);  // culprit
            COMMIT(&s.done);
        }
        __syncwarp();
#ifdef FIXED
        WAIT(&s.done, 0);
#endif
        DEALLOC(u, 32);  // culprit
        WAIT(&s.done, 0);
    }
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
