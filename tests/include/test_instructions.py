"""Tests that each function of the device header is the PTX instruction in the function's comment, with the right
operands.

The tables of this module contain pairs of C++ and PTX. Both texts use the names of the kernel's parameters. In the
tables, shared(...) is an address that is converted to an address of shared memory.
"""

from __future__ import annotations

import pytest

from tests.include._header import BULK_TYPES, REDUCTIONS, SENT_TYPES, defined_in, included_by, words
from tests.include._instructions import MULTICAST, PARAMETERS, REMOTE, copies
from tests.support.ptx_interpreter import effects

LOAD = "cp.async.bulk.tensor.{rank}d.shared::cluster.global.%s.mbarrier::complete_tx::bytes%s{hint}"
STORE = "cp.async.bulk.tensor.{rank}d.global.shared::cta.%s.bulk_group{hint}"
PREFETCH = "cp.async.bulk.prefetch.tensor.{rank}d.L2.global.%s{hint}"
REDUCE = "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.%s.%s.bulk_group{hint}"
# The placeholder {at} is replaced by {a, b, c}, and {offsets} by {r}, with one entry for each dimension. The
# placeholder {policy} is replaced by the last operand, or by nothing.
TILED = {
    "load(tile, *map, *full, Coordinates{at}{policy});": (
        LOAD % ("tile", "") + " [shared(tile)], [map, {at}], [shared(full)]{policy}"
    ),
    "load_multicast(tile, *map, *full, Coordinates{at}, mask{policy});": (
        LOAD % ("tile", MULTICAST) + " [shared(tile)], [map, {at}], [shared(full)], mask{policy}"
    ),
    "store(*map, Coordinates{at}, tile{policy});": STORE % "tile" + " [map, {at}], [shared(tile)]{policy}",
    "prefetch(*map, Coordinates{at}{policy});": PREFETCH % "tile" + " [map, {at}]{policy}",
    **{
        f"reduce<Reduction::{op}>(*map, Coordinates{{at}}, tile{{policy}});": (
            REDUCE % (op.removeprefix("bit_"), "tile") + " [map, {at}], [shared(tile)]{policy}"
        )
        for op in REDUCTIONS
    },
}
IM2COL = {
    "load_im2col(tile, *map, *full, Coordinates{at}, Offsets{offsets}{policy});": (
        LOAD % ("im2col", "") + " [shared(tile)], [map, {at}], [shared(full)], {offsets}{policy}"
    ),
    "load_im2col_multicast(tile, *map, *full, Coordinates{at}, Offsets{offsets}, mask{policy});": (
        LOAD % ("im2col", MULTICAST) + " [shared(tile)], [map, {at}], [shared(full)], {offsets}, mask{policy}"
    ),
    "store_im2col(*map, Coordinates{at}, tile{policy});": (
        STORE % "im2col_no_offs" + " [map, {at}], [shared(tile)]{policy}"
    ),
    "prefetch_im2col(*map, Coordinates{at}, Offsets{offsets}{policy});": (
        PREFETCH % "im2col" + " [map, {at}], {offsets}{policy}"
    ),
    **{
        f"reduce_im2col<Reduction::{op}>(*map, Coordinates{{at}}, tile{{policy}});": (
            REDUCE % (op.removeprefix("bit_"), "im2col_no_offs") + " [map, {at}], [shared(tile)]{policy}"
        )
        for op in REDUCTIONS
    },
}

BULK_LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
BULK_REDUCE = "cp.reduce.async.bulk.global.shared::cta.bulk_group{hint}"
NOFTZ = dict.fromkeys([("add", "f16"), ("add", "bf16")], ".noftz")
BULK = {
    "load_bulk(tile, memory, bytes, *full{policy});": (
        BULK_LOAD + "{hint} [shared(tile)], [memory], bytes, [shared(full)]{policy}"
    ),
    "load_bulk_multicast(tile, memory, bytes, *full, mask{policy});": (
        BULK_LOAD + MULTICAST + "{hint} [shared(tile)], [memory], bytes, [shared(full)], mask{policy}"
    ),
    "store_bulk(memory, tile, bytes{policy});": (
        "cp.async.bulk.global.shared::cta.bulk_group{hint} [memory], [shared(tile)], bytes{policy}"
    ),
    "prefetch_bulk(memory, bytes{policy});": "cp.async.bulk.prefetch.L2.global{hint} [memory], bytes{policy}",
    **{
        f"reduce_bulk<Reduction::{op}, BulkType::{name}>(memory, tile, bytes{{policy}});": (
            BULK_REDUCE + f".{op.removeprefix('bit_')}{NOFTZ.get((op, name), '')}.{name}"
            " [memory], [shared(tile)], bytes{policy}"
        )
        for op, names in BULK_TYPES.items()
        for name in names.split()
    },
}

REMOTE_ARRIVE, REMOTE_FULL = "mbarrier.arrive", f"[{REMOTE.format('full')}]"
TRY_WAIT = "mbarrier.try_wait.parity.shared::cta.b64 [shared(full)], parity"
TRY_WAIT_CLUSTER = TRY_WAIT.replace("parity.shared", "parity.acquire.cluster.shared")
ELECT = f"elect.sync {0xFFFFFFFF}"
OTHERS = {
    "*word = smem_address(tile);": "st.global.u32 [word], shared(tile)",
    "refuse_store_at(Coordinates{a, b});": "",
    "*word = cluster_address(tile, rank);": f"st.global.u32 [word], {REMOTE.format('tile')}",
    "*word = full->address();": "st.global.u32 [word], shared(full)",
    "*word = full->in_cta(rank).address();": f"st.global.u32 [word], {REMOTE.format('full')}",
    "full->init(arrivals);": "mbarrier.init.shared::cta.b64 [shared(full)], arrivals",
    "full->invalidate();": "mbarrier.inval.shared::cta.b64 [shared(full)]",
    "full->expect_tx(bytes);": "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [shared(full)], bytes",
    "full->arrive_expect_tx(bytes);": "mbarrier.arrive.expect_tx.shared::cta.b64 _, [shared(full)], bytes",
    "full->arrive();": "mbarrier.arrive.shared::cta.b64 _, [shared(full)]",
    "full->arrive(arrivals);": "mbarrier.arrive.shared::cta.b64 _, [shared(full)], arrivals",
    "full->arrive_at(rank);": f"mbarrier.arrive.release.cluster.shared::cluster.b64 _, [{REMOTE.format('full')}]",
    "full->in_cta(rank).arrive();": f"{REMOTE_ARRIVE}.release.cluster.shared::cluster.b64 _, {REMOTE_FULL}, 1",
    "full->in_cta(rank).arrive(arrivals);": (
        f"{REMOTE_ARRIVE}.release.cluster.shared::cluster.b64 _, {REMOTE_FULL}, arrivals"
    ),
    "full->in_cta(rank).expect_tx(bytes);": (
        f"mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 {REMOTE_FULL}, bytes"
    ),
    "full->in_cta(rank).arrive_expect_tx(bytes);": (
        f"{REMOTE_ARRIVE}.expect_tx.release.cluster.shared::cluster.b64 _, {REMOTE_FULL}, bytes"
    ),
    "full->in_cta(rank).release_async_read();": f"{REMOTE_ARRIVE}.shared::cluster.b64 _, {REMOTE_FULL}",
    "*word = full->try_wait_cluster(parity);": f"{TRY_WAIT_CLUSTER}; st.global.u32 [word], 1",
    "*word = full->try_wait(parity);": f"{TRY_WAIT}; st.global.u32 [word], 1",
    "*word = full->try_wait(parity, nanoseconds);": f"{TRY_WAIT}, nanoseconds; st.global.u32 [word], 1",
    "full->wait(parity);": TRY_WAIT,
    "full->wait_cluster(parity);": TRY_WAIT_CLUSTER,
    "fence_proxy_async();": "fence.proxy.async.shared::cta",
    "fence_proxy_async_cluster();": "fence.proxy.async.shared::cluster",
    "fence_proxy_async_global();": "fence.proxy.async.global",
    "fence_proxy_async_all();": "fence.proxy.async",
    "fence_barrier_init();": "fence.mbarrier_init.release.cluster",
    "*word = elect_one();": f"{ELECT}; st.global.u32 [word], 1",
    "*word = cluster_cta_rank();": "st.global.u32 [word], %cluster_ctarank",
    "*word = cluster_cta_count();": "st.global.u32 [word], %cluster_nctarank",
    "cluster_arrive();": "barrier.cluster.arrive.release.aligned",
    "cluster_arrive_relaxed();": "barrier.cluster.arrive.relaxed.aligned",
    "cluster_wait();": "barrier.cluster.wait.acquire.aligned",
    "cluster_sync();": "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned",
    "griddepcontrol_wait();": "griddepcontrol.wait",
    "griddepcontrol_launch_dependents();": "griddepcontrol.launch_dependents",
    "send_bulk(tile, rank, memory, bytes, *full);": (
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        f" [{REMOTE.format('tile')}], [shared(memory)], bytes, [{REMOTE.format('full')}]"
    ),
    **{
        f"send_reduce_bulk<Reduction::{op}, BulkType::{name}>(tile, rank, memory, bytes, *full);": (
            f"cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.{op.removeprefix('bit_')}"
            f".{name} [{REMOTE.format('tile')}], [shared(memory)], bytes, [{REMOTE.format('full')}]"
        )
        for op, names in SENT_TYPES.items()
        for name in names.split()
    },
    "commit_group();": "cp.async.bulk.commit_group",
    "wait_group();": "cp.async.bulk.wait_group 0",
    "wait_group<2>();": "cp.async.bulk.wait_group 2",
    "wait_group_read();": "cp.async.bulk.wait_group.read 0",
    "wait_group_read<2>();": "cp.async.bulk.wait_group.read 2",
    "prefetch_tensor_map(*map);": "prefetch.tensormap [map]",
    "prefetch_tensor_map(as_tensor_map(*map));": "prefetch.tensormap [map]",
    "prefetch_tensor_map(*map_address(*map));": "prefetch.tensormap [map]",
    "fence_tensor_map_release();": "fence.proxy.tensormap::generic.release.gpu",
    "fence_tensor_map_release_sys();": "fence.proxy.tensormap::generic.release.sys",
    "fence_tensor_map_acquire(*map);": "fence.proxy.tensormap::generic.acquire.sys [map], 128",
    **{
        f"out[0] = {priority}().bits;": f"st.global.u64 [out], createpolicy.fractional.L2::{priority}.b64(1.0)"
        for priority in ("evict_first", "evict_last", "evict_normal", "evict_unchanged")
    },
    **{
        f"out[0] = {priority}(fraction).bits;": (
            f"st.global.u64 [out], createpolicy.fractional.L2::{priority}.L2::evict_unchanged.b64(fraction)"
        )
        for priority in ("evict_first", "evict_last")
    },
    # Indices of any integer type reach the instruction without truncation.
    "prefetch(*map, Coordinates{-70000, 1ll << 20, 3u});": (
        "cp.async.bulk.prefetch.tensor.3d.L2.global.tile [map, {-70000, 1048576, 3}]"
    ),
    "prefetch_im2col(*map, Coordinates{0, 0, 0}, Offsets{256});": (
        "cp.async.bulk.prefetch.tensor.3d.L2.global.im2col [map, {0, 0, 0}], {256}"
    ),
}


TABLES = {
    "tiled": copies(TILED, range(1, 6)),
    "im2col": copies(IM2COL, range(3, 6)),
    "bulk": copies(BULK, range(1, 2)),
    "others": OTHERS,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_function_is_its_instruction(table):
    """Each function of the device header is one instruction. The test compares the instruction's name and all operands
    in order."""
    assert effects("tma.cuh", PARAMETERS, table) == table


def test_nothing_is_left_out():
    """The tables contain each function of the device header, except the functions of swizzle.cuh, which are not
    instructions."""
    headers = included_by("tma.cuh") - {"reduction.cuh", "refuse.cuh", "swizzle.cuh", "watchdog.cuh"} | {"tma.cuh"}
    tabled = words([statement for table in TABLES.values() for statement in table])
    assert set().union(*map(defined_in, headers)) <= tabled
    assert {"barrier.cuh", "bulk.cuh", "cluster.cuh", "fence.cuh"} <= headers


def test_results_of_the_hardware_are_returned():
    """The functions that test a phase or elect a thread return the result of their instruction. The function wait()
    polls until the phase is complete."""
    said = {
        "full->wait(parity);": ((0, 0, 1), "; ".join([TRY_WAIT] * 3)),
        "full->wait_cluster(parity);": ((0, 1), "; ".join([TRY_WAIT_CLUSTER] * 2)),
        "*word = full->try_wait(parity);": ((0,), f"{TRY_WAIT}; st.global.u32 [word], 0"),
        "*word = full->try_wait(parity, nanoseconds);": ((0,), f"{TRY_WAIT}, nanoseconds; st.global.u32 [word], 0"),
        "*word = elect_one();": ((0,), f"{ELECT}; st.global.u32 [word], 0"),
    }
    answers = [answer for own, _ in said.values() for answer in own]
    assert effects("tma.cuh", PARAMETERS, said, answers=answers) == {key: text for key, (_, text) in said.items()}
