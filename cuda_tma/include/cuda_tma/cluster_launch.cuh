// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/cluster_launch.cuh: a finished cluster takes over the work of a cluster that has not started. A kernel with
// more tiles than multiprocessors then needs no counter. Tests assemble the instructions for each target that has them
// (compute capability 10 and later); no test has run them on hardware. One function is one PTX instruction.
//
//     if (threadIdx.x == 0) {
//         full.arrive_expect_tx(sizeof(LaunchResponse));
//         try_cancel_launch(response, full);
//     }
//     full.wait(parity);
//     if (!is_launch_canceled(response)) break;      // no cluster is left
//     const uint3 next = first_canceled_cta(response);
//     fence_proxy_async();                           // orders the reads before the next response
#pragma once

#include <cuda_tma/barrier.cuh>
#include <cuda_tma/target.cuh>

namespace cuda_tma {

// The response in shared memory. The response contains the canceled cluster, if a cluster was canceled.
struct alignas(16) LaunchResponse { unsigned long long opaque[2]; };

// clusterlaunchcontrol.try_cancel: requests the work of a cluster that has not started; `full` counts the 16 bytes of
// the response. Call this function in one thread, and not after a response without a canceled cluster. ISA:
// "clusterlaunchcontrol.try_cancel".
template <typename Response>
__device__ void try_cancel_launch(Response& response, Barrier& full) {
    require_cluster_launch_control<Response>();
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                 ::"r"(smem_address(&response)), "r"(full.address()) : "memory");
}

// clusterlaunchcontrol.try_cancel.multicast::cluster::all: writes the response at the same offset in each CTA of the
// cluster. In each CTA, the barrier `full` counts the bytes.
template <typename Response>
__device__ void try_cancel_launch_multicast(Response& response, Barrier& full) {
    require_cluster_launch_multicast<Response>();
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
                 ".multicast::cluster::all.b128 [%0], [%1];"
                 ::"r"(smem_address(&response)), "r"(full.address()) : "memory");
}

// clusterlaunchcontrol.query_cancel.is_canceled: returns whether the response contains a canceled cluster.
template <typename Response>
__device__ bool is_launch_canceled(const Response& response) {
    require_cluster_launch_control<Response>();
    unsigned canceled;
    asm volatile("{ .reg .b128 answer; .reg .pred p; mov.b128 answer, {%1, %2};"
                 "  clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer; selp.u32 %0, 1, 0, p; }"
                 : "=r"(canceled) : "l"(response.opaque[0]), "l"(response.opaque[1]) : "memory");
    return canceled;
}

// clusterlaunchcontrol.query_cancel.get_first_ctaid: returns the blockIdx of the first CTA of the canceled cluster.
// Without a canceled cluster, the result is undefined.
template <typename Response>
__device__ uint3 first_canceled_cta(const Response& response) {
    require_cluster_launch_control<Response>();
    uint3 id;
    asm volatile("{ .reg .b128 answer; mov.b128 answer, {%3, %4};"
                 "  clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%0, %1, %2, _}, answer; }"
                 : "=r"(id.x), "=r"(id.y), "=r"(id.z)
                 : "l"(response.opaque[0]), "l"(response.opaque[1]) : "memory");
    return id;
}

}  // namespace cuda_tma
