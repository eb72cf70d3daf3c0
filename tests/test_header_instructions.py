"""A function of the header is the PTX instruction that its comment names, with its operands in their places."""

from __future__ import annotations

import re
from itertools import product

import pytest

from .test_header import REDUCTIONS, kernel, ptx, tensor_statements


def test_instructions():
    """Every rank, mode and hint is the instruction that it says: the PTX holds exactly the documented set."""
    load = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.{mode}.mbarrier::complete_tx::bytes{cast}"
    forms = {
        **{load.replace("{cast}", cast): ("tile", "im2col") for cast in ("", ".multicast::cluster")},
        "cp.async.bulk.tensor.{rank}d.global.shared::cta.{mode}.bulk_group": ("tile", "im2col_no_offs"),
        "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.{mode}": ("tile", "im2col"),
        **{
            f"cp.reduce.async.bulk.tensor.{{rank}}d.global.shared::cta.{op.removeprefix('bit_')}.{{mode}}.bulk_group": (
                "tile",
                "im2col_no_offs",
            )
            for op in REDUCTIONS
        },
    }
    documented = {
        form.format(rank=rank, mode=mode) + hint
        for (form, modes), rank, hint in product(forms.items(), range(1, 6), ("", ".L2::cache_hint"))
        for mode in modes
        if mode == "tile" or rank >= 3
    }
    written = re.findall(r"^\s*(cp\.\S+tensor\S+)", ptx(kernel(tensor_statements())), re.M)
    assert set(written) == documented
    assert len(written) == len(tensor_statements())


PTX_OF = {
    "prefetch(map, Coordinates{0}, evict_first());": "createpolicy.fractional.L2::evict_first.b64",
    "prefetch(map, Coordinates{0}, evict_last());": "createpolicy.fractional.L2::evict_last.b64",
    "prefetch(map, Coordinates{0}, evict_normal());": "createpolicy.fractional.L2::evict_normal.b64",
    "prefetch(map, Coordinates{0}, evict_unchanged());": "createpolicy.fractional.L2::evict_unchanged.b64",
    "full.init(1);": "mbarrier.init.shared::cta.b64",
    "full.invalidate();": "mbarrier.inval.shared::cta.b64",
    "full.expect_tx(16);": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64",
    "full.arrive_expect_tx(16);": "mbarrier.arrive.expect_tx.shared::cta.b64",
    "full.arrive();": "mbarrier.arrive.shared::cta.b64",
    "full.arrive_at(1);": "mbarrier.arrive.release.cluster.shared::cluster.b64",
    "full.try_wait(1);": "mbarrier.try_wait.parity.shared::cta.b64",
    "full.wait(1);": "mbarrier.try_wait.parity.shared::cta.b64",
    "full.wait_cluster(1);": "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
    "load_bulk(tile, global, 16, full);": "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
    "store_bulk(global, tile, 16);": "cp.async.bulk.global.shared::cta.bulk_group",
    "load_bulk_multicast(tile, global, 16, full, 3);": (
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
    ),
    "send_bulk(tile, 1, tile, 512, full);": "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
    "prefetch_bulk(global, 16);": "cp.async.bulk.prefetch.L2.global ",
    "prefetch_bulk(global, 16, evict_last());": "cp.async.bulk.prefetch.L2.global.L2::cache_hint",
    "reduce_bulk<Reduction::add, BulkType::f16>(global, tile, 16);": (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.f16"
    ),
    "reduce_bulk<Reduction::max, BulkType::s64>(global, tile, 16, evict_last());": (
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.max.s64"
    ),
    "global[0] = cluster_address(tile, 1);": "mapa.shared::cluster.u32",
    "commit_group();": "cp.async.bulk.commit_group;",
    "wait_group<2>();": "cp.async.bulk.wait_group 2;",
    "wait_group_read<2>();": "cp.async.bulk.wait_group.read 2;",
    "fence_proxy_async();": "fence.proxy.async.shared::cta;",
    "fence_barrier_init();": "fence.mbarrier_init.release.cluster;",
    "fence_tensor_map_release();": "fence.proxy.tensormap::generic.release.gpu;",
    "fence_tensor_map_acquire(map);": "fence.proxy.tensormap::generic.acquire.sys",
    "prefetch_tensor_map(map);": "prefetch.tensormap",
    "global[0] = elect_one();": "elect.sync",
    "global[0] = cluster_cta_rank();": "%cluster_ctarank;",
    "cluster_sync();": "barrier.cluster.arrive.release.aligned;",
    "griddepcontrol_wait();": "griddepcontrol.wait;",
    "griddepcontrol_launch_dependents();": "griddepcontrol.launch_dependents;",
}


@pytest.mark.parametrize(("statement", "instruction"), PTX_OF.items())
def test_function_is_its_instruction(statement, instruction):
    """One function, one instruction: it is there, and gone without the call."""
    assert instruction in ptx(kernel([statement]))
    assert instruction not in ptx(kernel([]))


def operands(text: str) -> list[int]:
    """The kernel's parameters, by number, that the one tensor copy of a PTX text takes, in its order."""
    parameter = {
        register: int(index) for register, index in re.findall(r"ld\.param\.\w+\s+(%\w+), \[kernel_param_(\d+)\]", text)
    }
    # The addresses are converted on the way: follow what each instruction with one operand copies.
    for target, origin in re.findall(r"(?:cvt|cvta|mov)\.\S+\s+(%\w+), (%\w+);", text) * 2:
        if origin in parameter:
            parameter[target] = parameter[origin]
    return [parameter[name] for name in re.findall(r"%\w+", re.search(r"cp\.async\.bulk\.tensor.*", text).group())]


@pytest.mark.parametrize("rank", range(1, 6))
@pytest.mark.parametrize("call", ["load(tile, *map, *full, Coordinates{%s});", "store(*map, Coordinates{%s}, tile);"])
def test_coordinates_keep_their_order(call, rank):
    source = f"""
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(int a, int b, int c, int d, int e, const TensorMap* map, void* tile, Barrier* full) {{
    {call % ", ".join("abcde"[:rank])}
}}
"""
    assert [index for index in operands(ptx(source)) if index < 5] == list(range(rank))


def test_operands_keep_their_order():
    """Coordinates{a, b, c} reaches the instruction as {a, b, c}; barrier, offsets, mask and policy follow."""
    source = """
#include <cuda_tma/tma.cuh>
using namespace cuda_tma;
extern "C" __global__ void kernel(int a, int b, int c, unsigned short s, unsigned short m, CachePolicy policy,
                                  const TensorMap* map, void* tile, Barrier* full) {
    load_im2col_multicast(tile, *map, *full, Coordinates{a, b, c}, Offsets{s}, m, policy);
}"""
    assert operands(ptx(source)) == [7, 6, 0, 1, 2, 8, 3, 4, 5]
