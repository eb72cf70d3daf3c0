"""Tests of TMA loads with ``.cta_group::2``, in which the mbarrier of one CTA of a pair counts the bytes of both
CTAs."""

from __future__ import annotations

import numpy as np
import pytest

from cuda_tma import simulate

KERNEL = """
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ __cluster_dims__(2) void kernel(const __grid_constant__ TensorMap source, int* out) {
    __shared__ __align__(128) int tile[2][128];
    __shared__ __align__(8) unsigned long long full;
    const unsigned rank = blockIdx.x % 2;
    unsigned bar = (unsigned)__cvta_generic_to_shared(&full), to = (unsigned)__cvta_generic_to_shared(tile);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1; fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        if (rank == 0) asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], BYTES;" :: "r"(bar) : "memory");
    }
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) {
        unsigned mine, first;
        asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mine) : "r"(bar), "r"(rank));
        first = mine & 0xfeffffff;  // without the bit of the peer: the first CTA of the pair
        asm volatile("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytesFORM"
                     :: "r"(to + 512 * SLOT), "l"(&source), "r"(128 * (int)rank), "r"(first), "h"((short)(MASK))
                     : "memory");
    }
    if (rank == 0)
        asm volatile("{ .reg .pred p; L: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%0], 0;\\n"
                     "@!p bra L; }" :: "r"(bar) : "memory");
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    out[blockIdx.x * 256 + threadIdx.x] = tile[0][threadIdx.x];
    out[blockIdx.x * 256 + 128 + threadIdx.x] = BOTH ? tile[1][threadIdx.x] : 0;
}
"""
ALONE = {"FORM": ".cta_group::2 [%0], [%1, {%2}], [%3];", "SLOT": "0", "MASK": "0", "BYTES": "1024", "BOTH": "0"}
TO_BOTH = {
    "FORM": ".multicast::cluster.cta_group::2 [%0], [%1, {%2}], [%3], %4;",
    "SLOT": "rank",
    "MASK": "3",
    "BYTES": "2048",
    "BOTH": "1",
}


@pytest.mark.parametrize("words", [ALONE, TO_BOTH], ids=["own tile", "multicast"])
def test_one_mbarrier_counts_the_bytes_of_a_pair(words):
    source = KERNEL
    for word, text in words.items():
        source = source.replace(word, text)
    gpu = simulate.Device("10.0", schedules=4)
    given, out = np.arange(256, dtype=np.int32), np.zeros((2, 2, 128), np.int32)
    tensor_map = gpu.create_tensor_map(given, box_dim=(128,))
    config = simulate.Config(grid=1, block=128, cluster=2)
    gpu.launch(config, gpu.compile(source, "kernel"), tensor_map, out).raise_for_errors()
    tiles = given.reshape(2, 128)
    if words is TO_BOTH:
        assert (out == tiles).all()
    else:
        assert (out[:, 0] == tiles).all()
