// source: PTX ISA 9.0, "tcgen05.dealloc"
// bug: a warp frees the columns of the scales while the product reads them.
// kind: tcgen05-order, tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    __shared__ u32 second;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (warp == 0) ALLOC(&second, 32);
    __syncthreads();
    const u32 of_a = second, of_b = of_a + 4;
    for (u32 c = 0; c < 8; ++c) ST(lanes(of_a + c), 0x7f7f7f7fu);
    WAIT_ST();
    __syncthreads();
    if (threadIdx.x == 0) {
        MMA_SCALED(t, s.a[0], s.b[0], SCALED_FORM, of_a, of_b);  // culprit
        COMMIT(&s.done);
    }
#ifdef FIXED
    WAIT(&s.done, 0);
#endif
    if (warp == 0) DEALLOC(of_a, 32);  // culprit
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
