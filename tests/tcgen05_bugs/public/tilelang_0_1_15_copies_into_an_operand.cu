// source: tile-ai/tilelang 0.1.15, generated code of a pipelined product
// bug: cp.async overwrites a tile that a product still reads.
// kind: tcgen05-order

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (threadIdx.x == 0) {
        MMA(t, s.a[0], s.b[0], 0);  // culprit
        COMMIT(&s.done);
    }
#ifdef FIXED
    WAIT(&s.done, 0);
#endif
    CALL("cp.async.cg.shared.global [%0], [%1], 16;", : "r"(shared(s.a[0] + 8 * threadIdx.x)), "l"(in + 4 * threadIdx.x));  // culprit
    asm volatile("cp.async.wait_all;" ::: "memory");
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
