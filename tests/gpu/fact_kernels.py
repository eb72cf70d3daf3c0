"""Kernels whose result PTX leaves undefined, or whose access PTX forbids, each with the result of an H200.

``python -m tests.gpu.fact_kernels NAME`` runs one kernel in a separate process, because some kernels end the context.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

THREADS = 64
_SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/bulk.cuh>
using namespace cuda_tma;

__device__ unsigned at(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
__device__ unsigned mapped(const void* pointer, unsigned rank) {
    unsigned found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(at(pointer)), "r"(rank));
    return found;
}
// Return whether the phase 0 of an mbarrier completes; a wait for another one ends after some time.
__device__ bool completes(unsigned barrier) {
    unsigned done = 0;
    for (int i = 0; i < 2000 && !done; ++i) {
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(barrier) : "memory");
        __nanosleep(1000);
    }
    return done;
}

extern "C" __global__ void __cluster_dims__(2) fact(const __grid_constant__ TensorMap given,
                                                    const __grid_constant__ TensorMap target, int* in, int* out) {
    __shared__ alignas(128) int tile[64];
    __shared__ Barrier full;
    const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32, rank = cluster_cta_rank();
    tile[t] = t + 1;
    INIT
    fence_proxy_async();
    cluster_sync();
    BODY
    cluster_sync();
}
"""
_INIT = "if (t == 0) { full.init(1); fence_barrier_init(); }"


@dataclass(frozen=True)
class Fact:
    """A kernel whose result or memory access PTX does not define.

    Attributes
    ----------
    body : str
        The statements of 2 CTAs of 64 threads. Each CTA has a tile that contains 1 to 64, and an mbarrier.
    first : tuple of int
        The first values of `out` after the launch, which are zeros before it. Empty if the context is lost.
    error : str
        The error of the launch.
    init : str
    """

    body: str
    first: tuple[int, ...] = ()
    error: str = ""
    init: str = _INIT


def _reduction(lanes: str, times: int) -> Fact:
    body = f"""if (rank == 0 && warp == 0 && {lanes}) {{
        reduce<Reduction::add>(target, Coordinates{{0}}, tile);
        commit_group();
        wait_group<0>();
    }}"""
    return Fact(body, tuple(times * value for value in range(1, 65)))


def _loads(tiles: int, completes: bool) -> Fact:
    body = f"""if (rank == 0) {{
        if (t == 0) full.arrive_expect_tx({tiles} * 256);
        __syncthreads();
        if (warp == 0) load(tile, given, full, Coordinates{{0}});
        if (t == 32) out[0] = 1 + completes(at(&full));
    }}"""
    return Fact(body, (1 + completes,))


def _of_peer(statement: str) -> Fact:
    body = f'if (t == 0) asm volatile("{statement}" :: "r"(mapped(TARGET, rank ^ 1)) : "memory");'
    body = body.replace("TARGET", "tile" if "b64" not in statement else "&full")
    return Fact(body, error="CUDA_ERROR_ILLEGAL_INSTRUCTION")


_WAIT = "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 1; }"
_COPY = """
    if (rank == 1 && t == 0) full.arrive_expect_tx(256);
    cluster_sync();
    if (rank == 0 && t == 0)
        asm volatile("COPY" :: "r"(mapped(tile, 1)), "l"(in), "r"(mapped(&full, 0)), "l"(&given) : "memory");
    if (rank == 1 && t == 0) out[0] = 1 + completes(at(&full));
"""
FACTS = {
    "a store by all lanes": Fact(
        """if (rank == 0 && warp == 0) {
            store(target, Coordinates{0}, tile);
            commit_group();
            wait_group<0>();
        }""",
        tuple(range(1, 65)),
    ),
    "a load by all lanes is 32 loads": _loads(32, True),
    "a load by all lanes is not 33 loads": _loads(33, False),
    **{f"a reduction by {n} lanes": _reduction(f"lane < {n}", n) for n in (1, 2, 7, 20, 32)},
    "a bulk reduction by all lanes": Fact(
        """if (rank == 0 && warp == 0) {
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], 256;"
                :: "l"(out), "r"(at(tile)) : "memory");
            commit_group();
            wait_group<0>();
        }""",
        tuple(32 * value for value in range(1, 65)),
    ),
    "a store to a peer by .shared::cta": _of_peer("st.shared::cta.u32 [%0], 5;"),
    "an arrival at a peer by .shared::cta": _of_peer("mbarrier.arrive.shared::cta.b64 _, [%0];"),
    "a wait at a peer by .shared::cta": _of_peer(_WAIT),
    "a bulk copy signals the mbarrier in its tile's CTA": Fact(
        _COPY.replace(
            "COPY", "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];"
        ),
        (2,),
    ),
    "a tensor copy signals the mbarrier in its tile's CTA": Fact(
        _COPY.replace(
            "COPY",
            "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%3, {0}], [%2];",
        ),
        (2,),
    ),
    "an mbarrier that a warp initializes": Fact(
        """if (rank == 0) {
            if (t == 0) { full.arrive_expect_tx(256); load(tile, given, full, Coordinates{0}); }
            if (t == 32) out[0] = 1 + completes(at(&full));
        }""",
        (2,),
        init="if (warp == 0) { full.init(1); fence_barrier_init(); }",
    ),
}


def source_of(fact: Fact) -> str:
    """Return the kernel ``fact`` in C++."""
    return _SOURCE.replace("INIT", fact.init).replace("BODY", fact.body)


def _run(fact: Fact) -> str:
    """Return the first values of `out` on hardware, or the error."""
    import torch
    from cuda.core import LaunchConfig

    import cuda_tma

    given = torch.arange(64, dtype=torch.int32, device="cuda")
    out = torch.zeros(64, dtype=torch.int32, device="cuda")
    maps = [cuda_tma.create_tensor_map(each, box_dim=(64,)) for each in (given, out)]
    kernel = cuda_tma.compile(source_of(fact), "fact", cache=False)
    try:
        device = cuda_tma.Device(0)
        device.set_current()
        stream = device.create_stream()
        torch.cuda.synchronize()
        cuda_tma.launch(stream, LaunchConfig(grid=1, block=THREADS, cluster=2), kernel, *maps, given, out)
        stream.sync()
        return str(np.array(out.cpu())[: len(fact.first)].tolist())
    except Exception as error:
        return str(error)


if __name__ == "__main__":
    print(_run(FACTS[sys.argv[1]]), flush=True)
    # The process exits at once, because no call can close a lost context.
    __import__("os")._exit(0)
