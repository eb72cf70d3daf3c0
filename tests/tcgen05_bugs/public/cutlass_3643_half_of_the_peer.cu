// source: NVIDIA/cutlass#3643
// bug: each CTA of a pair fills its half of B and waits for it; the leader does not wait for its peer's half, and the
//   product of both CTAs reads it.
// kind: race, tcgen05-order, missing-proxy-fence
// cluster: 2

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    __shared__ u64 peer;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = blockIdx.x;
    u32 t, x = 0;
    for (u32 i = threadIdx.x; i < 2048; i += 128) s.a[0][i] = 0x3c00;
    if (threadIdx.x == 0) {
        CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(&peer)), "r"(1));
        CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(&s.done)), "r"(1));
        CALL("mbarrier.init.shared::cta.b64 [%0], %1;", : "r"(shared(&s.full[0])), "r"(128));
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    FENCE_PROXY();
    if (warp == 0) ALLOC_PAIR(&s.base, 64);
    MEET();
    t = s.base;
    for (u32 i = threadIdx.x; i < 256; i += 128) s.b[0][i] = 0x3c00;  // culprit
    FENCE_PROXY();
    ARRIVE(&s.full[0]);
    WAIT(&s.full[0], 0);
    if (rank == 1) {
#ifdef FIXED
        if (threadIdx.x == 0) ARRIVE_AT(&peer, 0);
#endif
    } else if (threadIdx.x == 0) {
#ifdef FIXED
        WAIT_AS(".acquire.cluster", &peer, 0);
#endif
        MMA_PAIR(t, s.a[0], s.b[0]);  // culprit
        COMMIT_PAIR(&s.done);
    }
    __syncwarp();
    WAIT(&s.done, 0);
    LD(x, lanes(t));
    WAIT_LD();
    MEET();
    if (warp == 0) DEALLOC_PAIR(t, 64);
    out[128 * rank + threadIdx.x] = x + lane;
}
