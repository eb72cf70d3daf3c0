"""The functions and values that several tests of the device header's targets share."""

from __future__ import annotations

from itertools import product

from tests.include._header import POLICIES

_COORDINATES = {3: "x, y, 0", 4: "x, y, 0, 1", 5: "x, y, 0, 1, 2"}
_OFFSETS = {3: "1", 4: "1, y", 5: "1, 2, 3"}


def statements(barriers: tuple[str, ...] = ("full", "full.in_cta(0)")) -> list[str]:
    """Return a call of every function of sm100.cuh, for each rank, with and without a cache policy."""
    rows = "x, {0, 1, y, -1}"
    gather = [
        *(f"load_gather4(tile, map, full, {rows}{{policy}});", f"prefetch_gather4(map, {rows}{{policy}});"),
        f"load_gather4_multicast(tile, map, full, {rows}, 3{{policy}});",
        f"store_scatter4(map, {rows.replace('{', 'FourRows{')}, tile{{policy}});",
        *(f"cta_group2::load_gather4(tile, map, {barrier}, {rows}{{policy}});" for barrier in barriers),
        *(f"cta_group2::load_gather4_multicast(tile, map, {barrier}, {rows}, 3{{policy}});" for barrier in barriers),
    ]
    one = [text.replace("{policy}", policy) for text, policy in product(gather, POLICIES)]
    tiled = [
        f"cta_group2::load{cast}(tile, map, {barrier}, Coordinates{{{at}}}{mask}{policy});"
        for at, barrier, (cast, mask), policy in product(
            ("x", "x, y", *_COORDINATES.values()), barriers, (("", ""), ("_multicast", ", 3")), POLICIES
        )
    ]
    im2col = [
        f"cta_group2::load_im2col{cast}(tile, map, {barrier}, Coordinates{{{_COORDINATES[rank]}}}, "
        f"Offsets{{{_OFFSETS[rank]}}}{mask}{policy});"
        for rank, barrier, (cast, mask), policy in product(
            _COORDINATES, barriers, (("", ""), ("_multicast", ", 3")), POLICIES
        )
    ]
    return one + tiled + im2col + _wide(barriers)


def _wide(barriers: tuple[str, ...]) -> list[str]:
    loads = [
        f"{space}load_{mode}{cast}(tile, map, {barrier}, Coordinates{{{at}}}, 1, y{mask}{policy});"
        for mode, at, (cast, mask), policy in product(
            ("im2col_w", "im2col_w_128"), _COORDINATES.values(), (("", ""), ("_multicast", ", 3")), POLICIES
        )
        for space, barrier in [("", "full"), *(("cta_group2::", barrier) for barrier in barriers)]
    ]
    prefetches = [
        f"prefetch_{mode}(map, Coordinates{{{at}}}, 1, y{policy});"
        for mode, at, policy in product(("im2col_w", "im2col_w_128"), _COORDINATES.values(), POLICIES)
    ]
    return loads + prefetches


def kernel(body: list[str]) -> str:
    return f"""
#include <cuda_tma/cluster_launch.cuh>
#include <cuda_tma/sm100.cuh>
#include <cuda_tma/tensor_map_replace.cuh>
#include <cuda_tma/warpgroup.cuh>
using namespace cuda_tma;
extern "C" __global__ void __launch_bounds__(384, 1) kernel(const __grid_constant__ TensorMap map, int x,
                                                             unsigned y, char* out) {{
    __shared__ alignas(128) char tile[1024];
    __shared__ Barrier full;
    full.init(1);
    {" ".join(body)}
    *out = *tile;
}}
"""
