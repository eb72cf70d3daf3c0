// source: NVIDIA/cutlass#3236; a box of 16U4_ALIGN16B counts 4 bits for each element
// bug: the barrier expects the bytes that the tile fills in shared memory, of which half are padding.
// kind: transaction-count, deadlock
// block: 32

extern "C" __global__ void k(u32* out, const u32* in, const __grid_constant__ TensorMap map) {
    __shared__ Shared s;
    float d[4] = {};
    u32 x;
    begin(s);
    if (threadIdx.x == 0) {
#ifdef FIXED
        EXPECT(&s.full[0], 512);  // 8 rows of 128 elements
#else
        EXPECT(&s.full[0], 1024);  // culprit
#endif
        TENSOR_2D(s.tile[0], map, 0, 0, &s.full[0]);
    }
    WAIT(&s.full[0], 0);  // culprit
    LDMATRIX_FP4(x, shared(s.tile) + 128 * (threadIdx.x % 8));
    MULTIPLY(MXF8, d, x << 2, x << 2, ONE_SCALES, 0, 0, ONE_SCALES, 0, 0);
    write(out, d);
}
