"""Tests of a copy whose mbarrier and destination are in different CTAs. An H200 signals the mbarrier in the
destination's CTA."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from cuda_tma import simulate

ORDERS = ("early", "late", "random")

# CTA 0 copies 256 bytes into CTA `to`, with the mbarrier of CTA `at`. Then CTA 0 and CTA 1 each wait for their own
# mbarrier.
SOURCE = r"""
#include <cuda_tma/tma.cuh>
#include <cuda_tma/bulk.cuh>
using namespace cuda_tma;

__device__ unsigned mapped(const void* address, unsigned rank) {
    unsigned found;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(found) : "r"((unsigned)__cvta_generic_to_shared(address)), "r"(rank));
    return found;
}

extern "C" __global__ void __cluster_dims__(2) k(const __grid_constant__ TensorMap map, const int* in, int* out,
                                                 unsigned to, unsigned at, unsigned awaits) {
    __shared__ alignas(128) int tile[64], source[64];
    __shared__ Barrier full;
    const unsigned rank = cluster_cta_rank();
    tile[threadIdx.x] = source[threadIdx.x] = -1;
    if (threadIdx.x == 0) {
        full.init(1);  // the mbarrier
        fence_barrier_init();
    }
    fence_proxy_async();
    cluster_sync();
    if (threadIdx.x == 0 && rank == awaits) full.arrive_expect_tx(256);
    cluster_sync();
    if (threadIdx.x == 0 && rank == 0)
        asm volatile(COPY  // the copy
            :: "r"(mapped(tile, to)), "l"(in), "r"(mapped(source, 0)), "r"(mapped(&full, at)), "l"(&map) : "memory");
    if (rank == awaits) full.wait_cluster(0);
    cluster_sync();
    out[rank * 64 + threadIdx.x] = tile[threadIdx.x];
}
"""
COPIES = {
    "bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 256, [%3];",
    "tensor": "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%4, {0}], [%3];",
    "between": "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%2], 256, [%3];",
    "reduction": "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 "
    "[%0], [%2], 256, [%3];",
}
VALUES = {"bulk": range(64), "tensor": range(64), "between": [-1] * 64, "reduction": [-2] * 64}
MULTICAST = {
    "bulk": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%0], [%1], 256, [%3], 2;",
    "tensor": "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
    "[%0], [%4, {0}], [%3], 2;",
}
_LINES = SOURCE.splitlines()
COPY_LINE, INIT_LINE = (1 + _LINES.index(line) for line in (
    "        asm volatile(COPY  // the copy", "        full.init(1);  // the mbarrier"
))  # fmt: skip


@cache
def compiled(statement: str) -> simulate.Kernel:
    return simulate.Device().compile(SOURCE.replace("COPY", f'"{statement}"'), "k")


def launched(statement: str, to: int, at: int, awaits: int, order: str = "early") -> tuple[simulate.Report, np.ndarray]:
    given, out = np.arange(64, dtype=np.int32), np.full(128, -7, np.int32)
    gpu = simulate.Device(strict=True)
    arguments = (gpu.create_tensor_map(given, box_dim=(64,)), given, out, *map(np.uint32, (to, at, awaits)))
    report = gpu.launch(simulate.Config(2, 64), compiled(statement), *arguments, order=order)
    return report, out


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize(("to", "at"), [(1, 0), (0, 1)])
def test_the_mbarrier_of_the_destination_is_signaled(copy, to, at):
    report, out = launched(COPIES[copy], to, at, awaits=to)
    (finding,) = report.findings
    assert (finding.kind, finding.severity, finding.blocks, finding.threads) == ("cluster", "error", ((0, 0, 0),), (0,))
    assert (finding.source[-1].line, finding.other[-1].line) == (COPY_LINE, INIT_LINE)
    assert f"writes shared memory of block ({to}, 0, 0)" in finding.happened
    assert f"`full` in block ({at}, 0, 0)" in finding.happened
    assert out.reshape(2, 64)[to].tolist() == [*VALUES[copy]] and (out.reshape(2, 64)[1 - to] == -1).all()


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("order", ORDERS)
def test_a_wait_for_the_mbarrier_that_was_named_does_not_end(copy, order):
    report, out = launched(COPIES[copy], to=1, at=0, awaits=0, order=order)
    # The kernel hangs, because an mbarrier expects bytes that do not arrive.
    kinds = {finding.kind for finding in report.errors}
    assert kinds == {"cluster", "transaction-count"} and (out == -7).all()


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("to", [0, 1])
@pytest.mark.parametrize("order", ORDERS)
def test_a_copy_with_its_mbarrier_is_silent(copy, to, order):
    report, out = launched(COPIES[copy], to, to, awaits=to, order=order)
    assert report.findings == () and out.reshape(2, 64)[to].tolist() == [*VALUES[copy]]


@pytest.mark.parametrize("copy", MULTICAST)
def test_a_multicast_goes_to_each_tile_with_the_mbarrier_there(copy):
    report, out = launched(MULTICAST[copy], to=0, at=0, awaits=1)
    assert report.findings == () and out[64:].tolist() == [*range(64)] and (out[:64] == -1).all()
