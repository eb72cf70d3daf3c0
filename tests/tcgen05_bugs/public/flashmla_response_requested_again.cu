// source: mlc-ai/TIRx-kernels#14, the sparse FlashMLA kernel: the lifetime of the response of clusterlaunchcontrol
// bug: a thread requests the next cluster into the same 16 bytes while other warps still read the first response.
// kind: race
// block: 128

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    __shared__ alignas(16) u32 response[4];
    u32 t = begin(s, 32, 1, 128), x = 0;
    for (int i = 0; i < 2; ++i) {
#ifdef FIXED
        if (i) WAIT(&s.empty[0], 0);
#endif
        if (threadIdx.x == 0) {
            CALL("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;", : "r"(shared(&s.full[0])));
            FENCE_PROXY();
            CALL("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];",  // culprit
                 : "r"(shared(response)), "r"(shared(&s.full[0])));
        }
        WAIT(&s.full[0], i);
        x += response[threadIdx.x % 4];  // culprit
        FENCE_PROXY();
        ARRIVE(&s.empty[0]);
    }
    end(t, 32);
    out[threadIdx.x] = x + warp + lane;
}
