// source: PTX ISA 9.0, "Async proxy"; the ring of tiles of a block-scaled GEMM
// bug: a warp releases the slot after it has loaded the scales, and before ldmatrix has loaded the elements.
// kind: race
// block: 64

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    u32 x;
    begin(s);
    for (u32 step = 0; step < 3; ++step) {
        const u32 slot = step % 2, turn = step / 2;
        if (threadIdx.x == 32) {
            WAIT(&s.empty[slot], turn + 1 & 1);
            EXPECT(&s.full[slot], 1024);
            BULK(s.tile[slot], in, 512, &s.full[slot]);  // culprit
            BULK(s.scales[slot], in, 512, &s.full[slot]);
        }
        if (threadIdx.x < 32) {
            WAIT(&s.full[slot], turn);
            const u32 scales = s.scales[slot][threadIdx.x];
#ifdef FIXED
            LDMATRIX(x, shared(&s.tile[slot][16 * threadIdx.x]));
            __syncwarp();
            if (threadIdx.x == 0) ARRIVE(&s.empty[slot]);
#else
            __syncwarp();
            if (threadIdx.x == 0) ARRIVE(&s.empty[slot]);
            LDMATRIX(x, shared(&s.tile[slot][16 * threadIdx.x]));  // culprit
#endif
            MULTIPLY(MXF4, d, x, x, scales, 0, 0, scales, 0, 0);
        }
    }
    write(out, d);
}
