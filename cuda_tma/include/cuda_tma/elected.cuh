// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/elected.cuh: loads that elect their thread. A load of tma.cuh or tile.cuh is one instruction in each thread
// that calls it: 32 threads of a warp issue 32 loads (observed: H200), and a barrier that expects the bytes of one load
// counts the bytes of 32. A function of this header issues one load for each call of a warp.
//
//     if (threadIdx.x / 32 == 0) {                                     // one whole warp
//         if (elect_one()) full.arrive_expect_tx(tile);
//         load_elected(tile, map, full, Coordinates{column, row});     // a TensorMap or a TiledMap
//     }
//
// All threads of a converged warp call these functions together. A function elects the same thread as elect_one().
#pragma once

#include <cuda_tma/tile.cuh>

namespace cuda_tma {

// elect.sync, cp.async.bulk.tensor: issues the load of load() in the elected thread, with the same arguments.
template <typename Destination, typename Map, int Rank, typename Policy = NoCachePolicy>
__device__ void load_elected(Destination&& tile, const Map& map, Barrier& full, Coordinates<Rank> at,
                             Policy policy = {}) {
    if (elect_one()) load(tile, map, full, at, policy);
}

// elect.sync, cp.async.bulk.tensor.multicast::cluster: issues the load of load_multicast() in the elected thread.
template <typename Destination, typename Map, int Rank, typename Policy = NoCachePolicy>
__device__ void load_multicast_elected(Destination&& tile, const Map& map, Barrier& full, Coordinates<Rank> at,
                                       unsigned short cta_mask, Policy policy = {}) {
    if (elect_one()) load_multicast(tile, map, full, at, cta_mask, policy);
}

// elect.sync, cp.async.bulk.tensor.im2col: issues the load of load_im2col() in the elected thread.
template <typename Destination, typename Map, int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void load_im2col_elected(Destination&& tile, const Map& map, Barrier& full, Coordinates<Rank> at,
                                    Offsets<Count> offsets, Policy policy = {}) {
    if (elect_one()) load_im2col(tile, map, full, at, offsets, policy);
}

}  // namespace cuda_tma
