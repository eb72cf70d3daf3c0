// source: PTX ISA 9.0, "Async proxy"; the ring of scales of a block-scaled GEMM
// bug: the producer copies the next scales into a slot before the consumers have released it.
// kind: race
// block: 160

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    float d[4] = {};
    begin(s, 4);
    for (u32 step = 0; step < 3; ++step) {
        const u32 slot = step % 2, turn = step / 2;
        if (threadIdx.x == 128) {
#ifdef FIXED
            WAIT(&s.empty[slot], turn + 1 & 1);
#endif
            EXPECT(&s.full[slot], 512);
            BULK(s.scales[slot], in, 512, &s.full[slot]);  // culprit
        }
        if (threadIdx.x < 128) {
            WAIT(&s.full[slot], turn);
            const u32 scales = s.scales[slot][threadIdx.x];  // culprit
            MULTIPLY(MXF4, d, ONES, ONES, scales, 0, 0, scales, 0, 0);
            __syncwarp();
            if (threadIdx.x % 32 == 0) ARRIVE(&s.empty[slot]);
        }
    }
    write(out, d);
}
