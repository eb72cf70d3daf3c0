// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/roles.cuh: warpgroups with roles: in each CTA of a cluster, one thread loads and the others compute.
//
//     extern "C" __global__ void __launch_bounds__(384, 1) kernel(const __grid_constant__ AMap map, ...) {
//         Shared& shared = dynamic_shared<Shared>();
//         if (threadIdx.x == 0) shared.ring.init(...);
//         in_roles<2, 24, 240>([&] { produce(shared, map, ...); }, [&] { consume(shared, ...); });
//     }
#pragma once

#include <cuda_tma/cluster.cuh>
#include <cuda_tma/warpgroup.cuh>

namespace cuda_tma {

// The way in which the CTAs of a cluster end. With `together`, no CTA ends before the others, because a CTA may still
// write to another CTA's shared memory or arrive at its barriers. With `drained`, each CTA ends independently, and
// produce() calls Pipeline::drain() for its rings and returns only after all such writes and arrivals.
enum class Ending { together, drained };

template <int Consumers, int ProducerRegisters, int ConsumerRegisters>
__device__ constexpr void require_registers() {
    constexpr int AT_LAUNCH = 65536 / (128 * (Consumers + 1)) / 8 * 8;   // 168 for 384 threads; 1024 registers remain
    static_assert(ProducerRegisters + Consumers * ConsumerRegisters <= (Consumers + 1) * AT_LAUNCH,
                  "in_roles: together no more registers than at the launch, when each thread has 65536 / threads of "
                  "them, in eights: the consumers would wait for ever");
}

// Returns true in the producing thread, which is always the same thread. Because of elect_one(), ptxas recognizes that
// one thread issues the copies, and generates no loop around them.
template <int Consumers>
__device__ inline bool is_producer() { return threadIdx.x / 32 == 4 * Consumers && elect_one(); }

// Runs consume() in the first `Consumers` warpgroups, and produce() in one thread of the last warpgroup.
// __launch_bounds__(128 * (Consumers + 1), 1) divides 65536 registers among all threads. in_roles() lowers the
// registers of the producer warpgroup to `ProducerRegisters` per thread, and raises those of the consumers to
// `ConsumerRegisters`. Both numbers are multiples of 8. The total must not exceed the registers at launch (observed
// with driver 580, sm_90: 32 and 240 for two consumers hang). All threads of the cluster call in_roles(). Before the
// call, thread 0 of each CTA initializes the barriers and calls fence_barrier_init(), for example in Pipeline::init().
// in_roles() does not make other writes to shared memory visible; call __syncthreads() for them.
template <int Consumers, int ProducerRegisters, int ConsumerRegisters, Ending End = Ending::together, typename Produce,
          typename Consume>
__device__ __forceinline__ void in_roles(Produce produce, Consume consume CUDA_TMA_SITE) {
    require_registers<Consumers, ProducerRegisters, ConsumerRegisters>();
    __syncwarp();               // reconverges thread 0 with its warp: the instruction needs whole warps (.aligned)
    cluster_arrive_relaxed();   // no thread uses a barrier, here or in another CTA, before its init
    cluster_wait(CUDA_TMA_NOTE_IF(threadIdx.x / 32 != 4 * Consumers));   // the producer's first load is urgent
    if (threadIdx.x / 128 == Consumers) {
        register_dealloc<ProducerRegisters>();
        if (is_producer<Consumers>()) produce();
    } else {
        register_alloc<ConsumerRegisters>();
        consume();
    }
    if constexpr (End == Ending::together) {
        __syncwarp();
        cluster_sync(CUDA_TMA_HERE_ALONE);
    }
}

// Runs the roles like the function above, but with Ending::drained and with begin(). The producing thread runs begin()
// before other CTAs have initialized their barriers, so begin() may issue loads only to its own CTA. Before the call,
// the same thread initializes the barriers of this CTA and calls fence_proxy_async():
//
//     if (is_producer<2>()) { shared.ring.init(...); fence_proxy_async(); }
//     in_roles<2, 24, 240>([&] { begin(shared, map, ...); }, [&] { produce(shared, map, ...); }, [&] { consume(...); });
template <int Consumers, int ProducerRegisters, int ConsumerRegisters, typename Begin, typename Produce,
          typename Consume>
__device__ __forceinline__ void in_roles(Begin begin, Produce produce, Consume consume CUDA_TMA_SITE) {
    require_registers<Consumers, ProducerRegisters, ConsumerRegisters>();
    __syncwarp();
    cluster_arrive_relaxed();
    if (threadIdx.x / 128 == Consumers) {
        register_dealloc<ProducerRegisters>();   // comes first, because consumers wait for these registers
        if (is_producer<Consumers>()) begin();
        __syncwarp();
        cluster_wait(CUDA_TMA_HERE_ALONE);
        if (is_producer<Consumers>()) produce();
    } else {
        cluster_wait(CUDA_TMA_HERE_ALONE);
        register_alloc<ConsumerRegisters>();
        consume();
    }
}

}  // namespace cuda_tma
