// source: facebookexperimental/triton#1449
// bug: the word that tcgen05.alloc writes is part of a tile that is filled before the address is read.
// kind: tensor-memory

extern "C" __global__ void k(u32* out, const u32* in) {
    __shared__ Shared s;
    const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 t = begin(s, 64), x = 0;
    if (warp == 0) ALLOC(reinterpret_cast<u32*>(s.a[1]), 32);
    __syncthreads();
    u32 u = *reinterpret_cast<u32*>(s.a[1]);
    __syncthreads();
    s.a[1][threadIdx.x] = 0x0200;
    __syncthreads();
#ifndef FIXED
    u32 v = *reinterpret_cast<u32*>(s.a[1]);
#else
    u32 v = u;
#endif
    ST(lanes(v), 1u);  // culprit
    WAIT_ST();
    LD(x, lanes(v));  // culprit
    WAIT_LD();
    __syncthreads();
    if (warp == 0) DEALLOC(u, 32);
    end(t, 64);
    out[threadIdx.x] = x + warp + lane;
}
