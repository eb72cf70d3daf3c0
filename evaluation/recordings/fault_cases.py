"""Deliberate misuses of TMA, barriers and clusters, and other faults that any kernel may have.

A case contains the name of a kernel in ``fault_kernels.py``, its arguments, and the tensor map. By default, the kernel
correctly loads a box of 32 x 32 without a swizzle from a tensor of 64 x 64 float32 elements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cuda_tma.params import Im2colParams, Params, TiledParams

SMEM_BYTES = 65536
BOX_BYTES = 32 * 32 * 4
_USUAL = {"bytes": BOX_BYTES, "barrier": 32768, "number": 1, "address": 0}


@dataclass(frozen=True)
class Case:
    """One misuse of the hardware, or one correct case.

    Attributes
    ----------
    name : str
        A description of the misuse or of the correct case.
    kernel : str
        The name of a kernel in ``fault_kernels.py``, or a name in ``HOST`` for a misuse by the host.
    given : dict
        The fields of the kernel's ``Given`` that differ from the default. `address` may also be ``"memory"``, ``"map"``
        (in device memory, `address_offset` bytes further), ``"host"`` (pinned memory of the host), ``"freed"`` or
        ``"zeros"``.
    params : Params
        The parameters of the map. By default, its address is that of the memory, which has 1 MiB.
    block : int
        The number of threads of the block.
    patch : dict
        The changed bytes of the map, by their offset.
    """

    name: str
    kernel: str
    given: dict[str, Any] = field(default_factory=dict)
    params: Params | None = None
    block: int = 1
    patch: dict[int, int] = field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        return _USUAL | self.given


def _tiled(*extents: int, **others: Any) -> TiledParams:
    rank = len(extents)
    strides = [extents[0] * 4]
    for extent in extents[1:]:
        strides.append(strides[-1] * extent)
    usual: dict[str, Any] = {
        "data_type": 7,
        "global_address": 0,
        "global_dim": extents,
        "global_strides": tuple(strides[: rank - 1]),
        "box_dim": tuple(min(32, e) for e in extents),
        "element_strides": (1,) * rank,
    }
    return TiledParams(**usual | others)


USUAL_MAP = _tiled(64, 64)
_IM2COL = Im2colParams(
    data_type=7,
    global_address=0,
    global_dim=(32, 8, 8, 2),
    global_strides=(128, 1024, 8192),
    pixel_box_lower_corner=(0, 0),
    pixel_box_upper_corner=(0, 0),
    channels_per_pixel=32,
    pixels_per_column=32,
    element_strides=(1, 1, 1, 1),
)
_LOAD, _STORE = "load_2", "store_2"

_CASES = (
    # The kernels in the cases below are correct.
    Case("a load", _LOAD),
    Case("a load by a map in constant memory", _LOAD, {"where": 4}),
    Case("a load by a map in global memory, after its fence", _LOAD, {"where": 5}),
    Case("a load by a map in device memory", _LOAD, {"where": 1, "address": "map"}),
    Case("a load by a map in the host's pinned memory", _LOAD, {"where": 1, "address": "host"}),
    Case("a store", _STORE),
    Case("a reduction", "reduce_add"),
    Case("a bulk load", "bulk_load"),
    Case("a bulk store", "bulk_store"),
    Case("a load that is multicast", "cluster_multicast", {"mask": 3}),
    # In the cases below, the tensor map is at a wrong place in memory.
    Case("the map is a copy in local memory", _LOAD, {"where": 2}),
    Case("the map is a copy in shared memory", _LOAD, {"where": 3}),
    Case("the map's address is 0", _LOAD, {"where": 1, "address": 0}),
    Case("the map's address is wild", _LOAD, {"where": 1, "address": 0x123456780}),
    Case("the map was freed", _LOAD, {"where": 1, "address": "freed"}),
    Case("the map's bytes are zeros", _LOAD, {"where": 1, "address": "zeros"}),
    Case("the map lies 64 bytes past a multiple of 128", _LOAD, {"where": 1, "address": "map", "address_offset": 64}),
    Case("the map lies 32 bytes past a multiple of 64", _LOAD, {"where": 1, "address": "map", "address_offset": 32}),
    Case("the map lies 16 bytes past a multiple of 64", _LOAD, {"where": 1, "address": "map", "address_offset": 16}),
    Case("the map lies 1 byte past a multiple of 64", _LOAD, {"where": 1, "address": "map", "address_offset": 1}),
    Case("a map at a wild address is prefetched", "prefetch_map", {"where": 1, "address": 0x123456780}),
    Case("a map at a wild address is acquired", "acquire_map", {"where": 1, "address": 0x123456780}),
    Case("a box is prefetched by a map at a wild address", "prefetch", {"where": 1, "address": 0x123456780}),
    # In the cases below, the content of the tensor map is wrong.
    Case("a rank-2 map in a rank-1 load", "load_1"),
    Case("a rank-2 map in a rank-3 load", "load_3"),
    Case("a rank-3 map in a rank-2 load", _LOAD, params=_tiled(64, 64, 4)),
    Case("a rank-2 map in a rank-5 load", "load_5"),
    Case("a tiled map in an im2col load", "load_im2col", params=_tiled(32, 8, 8, 2, box_dim=(32, 4, 4, 2))),
    Case("an im2col map in a tiled load", "load_4", params=_IM2COL),
    Case("an im2col load", "load_im2col", params=_IM2COL),
    Case("a rank-2 map in a rank-3 store", "store_3"),
    Case("a rank-2 map in a rank-1 store", "store_1"),
    Case("a reduction with an operation that the type does not have", "reduce_xor"),
    Case("the map's tensor was freed", _LOAD, params=_tiled(64, 64, global_address=0x7F0000000000)),
    Case("the map's tensor ends past its memory", _LOAD, {"y": 4064}, _tiled(4096, 4096)),
    Case("the map's tensor has address 0", _LOAD, params=_tiled(64, 64, global_address=16)),
    Case("the map of a store has a wild tensor", _STORE, params=_tiled(64, 64, global_address=0x7F0000000000)),
    Case("the map has an invalid data type", _LOAD, patch={8: 0x90 | 0x07, 9: 0x67, 10: 0x01}),
    Case("the map has an invalid interleave", _LOAD, patch={9: 0x1B}),
    Case("the map has rank 8", _LOAD, patch={8: 0xF0}),
    Case("the box is wider than the swizzle's span", _LOAD, params=_tiled(64, 64, swizzle=1)),
    Case(
        "the box's rows are not a multiple of 16 bytes", _LOAD, {"bytes": 30 * 32 * 4}, _tiled(64, 64, box_dim=(30, 32))
    ),
    Case("interleave 32B with rank 2", _LOAD, params=_tiled(64, 64, interleave=2, swizzle=1)),
    # In the cases below, the coordinates or the destination of a copy are wrong.
    Case("the innermost coordinate is not a multiple of 16 bytes", _LOAD, {"x": 1}),
    Case("the coordinates are far outside of the tensor", _LOAD, {"x": 1 << 30, "y": 1 << 30}),
    Case("the tile is 64 bytes past a multiple of 128", _LOAD, {"tile": 64}),
    Case("the tile is 16 bytes past a multiple of 128", _LOAD, {"tile": 16}),
    Case("the tile is 8 bytes past a multiple of 128", _LOAD, {"tile": 8}),
    Case("the tile is 128 bytes past a multiple of 1024", _LOAD, {"tile": 128}, _tiled(64, 64, swizzle=3)),
    Case("the tile runs over the end of shared memory", _LOAD, {"tile": SMEM_BYTES - 2048}),
    Case("the tile lies outside of shared memory", _LOAD, {"tile": 1 << 20}),
    Case("the stored tile is 64 bytes past a multiple of 128", _STORE, {"tile": 64}),
    Case("the stored tile is 16 bytes past a multiple of 128", _STORE, {"tile": 16}),
    Case("the stored tile runs over the end of shared memory", _STORE, {"tile": SMEM_BYTES - 2048}),
    # The kernels in the cases below copy contiguous bytes.
    Case("a bulk load of 24 bytes", "bulk_load", {"bytes": 24}),
    Case("a bulk load of 0 bytes", "bulk_load", {"bytes": 0}),
    Case("a bulk load of more than shared memory", "bulk_load", {"bytes": 1 << 19}),
    Case("a bulk load from 8 bytes past a multiple of 16", "bulk_wild", {"address": "memory", "address_offset": 8}),
    Case("a bulk load to 8 bytes past a multiple of 16", "bulk_load", {"tile": 8}),
    Case("a bulk load from a wild address", "bulk_wild", {"address": 0x7F0000000000}),
    Case("a bulk load from an odd wild address", "bulk_wild", {"address": 0x7F0000000001}),
    Case("a bulk load from shared memory's address", "bulk_wild", {"address": 0x400}),
    Case("a bulk store of 24 bytes", "bulk_store", {"bytes": 24}),
    Case("a bulk store to a wild address", "bulk_store_wild", {"address": 0x7F0000000000}),
    Case(
        "a bulk store to 8 bytes past a multiple of 16", "bulk_store_wild", {"address": "memory", "address_offset": 8}
    ),
    Case("a bulk reduction of 24 bytes", "bulk_reduce", {"bytes": 24}),
    # The kernels in the cases below misuse barriers.
    Case("a load counted at a barrier that was never made", _LOAD, {"barrier": 33792}),
    Case("a load counted 4 bytes past a barrier", _LOAD, {"barrier": 32772}),
    Case("a load counted outside of shared memory", _LOAD, {"barrier": 1 << 20}),
    Case("fewer bytes come than are expected", _LOAD, {"bytes": BOX_BYTES + 16}),
    Case("more bytes come than are expected", _LOAD, {"bytes": BOX_BYTES - 16}),
    Case("a barrier of 0 arrivals is made", "init", {"number": 0, "barrier": 33792}),
    Case("a barrier of 2^20 arrivals is made", "init", {"number": 1 << 20, "barrier": 33792}),
    Case("a barrier is made 4 bytes past a multiple of 8", "init", {"barrier": 33796}),
    Case("a barrier is made outside of shared memory", "init", {"barrier": 1 << 20}),
    Case("a barrier is made twice", "init"),
    Case("more arrive than the barrier expects", "arrive", {"number": 5}),
    Case("an arrival 4 bytes past a barrier", "arrive", {"barrier": 32772}),
    Case("an arrival at a barrier that was never made", "arrive", {"barrier": 33792}),
    Case("an arrival outside of shared memory", "arrive", {"barrier": 1 << 20}),
    Case("an arrival at global memory", "arrive_generic", {"address": "memory"}),
    Case("an arrival at address 0", "arrive_generic", {"address": 0}),
    Case("more bytes are expected than the tx-count holds", "expect", {"bytes": (1 << 20) - 1}),
    Case("2^20 bytes are expected", "expect", {"bytes": 1 << 20}),
    Case("a wait for bytes that never come", "never"),
    Case("a named barrier with a count that is not a multiple of 32", "bar_sync", {"number": 1, "bytes": 48}, block=64),
    Case("a named barrier waits for more threads than come", "bar_sync", {"number": 1, "bytes": 96}, block=64),
    Case("a named barrier waits for fewer threads than come", "bar_sync", {"number": 1, "bytes": 32}, block=64),
    Case("a named barrier of number 16", "bar_sync", {"number": 16, "bytes": 64}, block=64),
    # The kernels in the cases below misuse clusters.
    Case("multicast without a cluster, to CTA 0", "load_multicast", {"mask": 1}),
    Case("multicast without a cluster, to CTAs 0 and 1", "load_multicast", {"mask": 3}),
    Case("multicast to CTAs that the cluster does not have", "cluster_multicast", {"mask": 15}),
    Case("multicast to CTA 7 of a cluster of 2", "cluster_multicast", {"mask": 128}),
    Case("multicast to no CTA", "cluster_multicast", {"mask": 0}),
    Case("multicast to a CTA that has ended", "cluster_multicast", {"mask": 3, "where": 1}),
    Case("an arrival at CTA 1", "cluster_arrive", {"barrier": 34816}),
    Case("an arrival at CTA 7 of a cluster of 2", "cluster_arrive", {"barrier": 34816, "number": 7}),
    Case("an arrival at a CTA that has ended", "cluster_arrive", {"barrier": 34816, "where": 1}),
    Case("a store to CTA 1", "cluster_store"),
    Case("a store to CTA 7 of a cluster of 2", "cluster_store", {"number": 7}),
    Case("a store to a CTA that has ended", "cluster_store", {"where": 1}),
    Case("a load of CTA 7 of a cluster of 2", "cluster_load", {"number": 7}),
    Case("a load of a CTA that has ended", "cluster_load", {"where": 1}),
    Case("a bulk copy to CTA 7 of a cluster of 2", "cluster_copy", {"number": 7}),
    Case("a bulk copy to a CTA that has ended", "cluster_copy", {"where": 1}),
    # The kernels in the cases below misuse tensor cores.
    Case("a wgmma of matrices at address 0", "wgmma", block=128),
    Case("a wgmma whose descriptor is all ones", "wgmma", {"address": (1 << 64) - 1}, block=128),
    Case("a wgmma of matrices past the end of shared memory", "wgmma", {"address": 0x3FFF}, block=128),
    Case("a wgmma of one warp", "wgmma", block=32),
    Case("ldmatrix off a multiple of 16 bytes", "ldmatrix", {"tile": 8}, block=32),
)
_OTHERS = (  # The faults in _OTHERS can occur in any kernel.
    Case("a load from a wild address", "load_global", {"address": 0x7F0000000000}),
    Case("a store to a wild address", "store_global", {"address": 0x7F0000000000}),
    Case("a load from address 0", "load_global", {"address": 0}),
    Case("a load from freed memory", "load_global", {"address": "freed"}),
    Case("a load of 4 bytes past a multiple of 4", "load_wide"),
    Case("a shared load of 4 bytes past a multiple of 4", "load_shared", {"tile": 2}),
    Case("a shared load outside of shared memory", "load_shared", {"tile": 1 << 20}),
    Case("an atomic on local memory", "atomic_local", {"where": 2}),
    Case("a global load of a shared address", "load_place", {"where": 3}),
    Case("a global load of a local address", "load_place", {"where": 2}),
    Case("a global atomic on a shared address", "atomic_place", {"where": 3}),
    Case("a global atomic on a local address", "atomic_place", {"where": 2}),
    Case("a shared load of an odd address by 8 bytes", "load_shared_wide", {"tile": 4}),
    Case("a multimem reduction of memory that is not multicast", "multimem"),
    Case("cp.async off a multiple of 16 bytes", "copy_async", {"tile": 8}),
    Case("a call of address 0", "call", {"address": 0}),
    Case("a call of data", "call", {"address": "memory"}),
    Case("a call of an odd address", "call", {"address": 0x7F0000000001}),
    Case("recursion without an end", "recurse", {"number": 1 << 24}),
    Case("trap", "trap"),
    Case("brkpt", "brkpt"),
    Case("a failed assertion", "asserts"),
    # In the cases below, the host makes the error.
    Case("more threads than a CTA may have", "host: threads"),
    Case("more shared memory than was allowed", "host: shared memory"),
    Case("a grid that is not a multiple of its cluster", "host: grid"),
    Case("a cooperative launch of more CTAs than fit", "host: cooperative"),
    Case("a map that breaks a rule", "host: rule"),
    Case("a map of address 0", "host: address 0"),
    Case("a map without a current context", "host: no context"),
)
CASES = {case.name: case for case in (*_CASES, *_OTHERS)}
OF_TMA = frozenset(case.name for case in _CASES)
HOST = "host: "
