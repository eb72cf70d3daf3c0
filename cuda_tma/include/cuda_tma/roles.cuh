// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/roles.cuh: a kernel of warpgroups with roles: one thread loads, the others compute, in each CTA of a cluster.
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

// How CTAs of a cluster end: together, as one may still write to another's shared memory or arrive at its barriers; or
// each by itself, where produce() comes back when all of that has been: Pipeline::drain() of its rings.
enum class Ending { together, drained };

template <int Consumers, int ProducerRegisters, int ConsumerRegisters>
__device__ constexpr void require_registers() {
    constexpr int AT_LAUNCH = 65536 / (128 * (Consumers + 1)) / 8 * 8;   // 168 of 384 threads: 1024 are left over
    static_assert(ProducerRegisters + Consumers * ConsumerRegisters <= (Consumers + 1) * AT_LAUNCH,
                  "in_roles: together no more registers than at the launch, when each thread has 65536 / threads of "
                  "them, in eights: the consumers would wait for ever");
}

// The thread that produces, the same each time. By elect_one(), as ptxas takes a copy for one thread's then, and builds
// no loop around it.
template <int Consumers>
__device__ inline bool is_producer() { return threadIdx.x / 32 == 4 * Consumers && elect_one(); }

// consume() in the first `Consumers` warpgroups, and produce() in one thread of the one behind them, which is the last.
// Threads have as many registers as 65536 are for all, by __launch_bounds__(128 * (Consumers + 1), 1); here the
// producer's are cut to `ProducerRegisters`, so that each consumer has `ConsumerRegisters`: multiples of 8. What a
// launch has not given cannot be had later (observed: driver 580, sm_90: 32 and 240 for two consumers hang). All threads
// of the cluster call it, thread 0 of each CTA after it has initialised the barriers, with fence_barrier_init() as by
// Pipeline::init(). Of what threads wrote to shared memory before, others see nothing else: for that a __syncthreads().
template <int Consumers, int ProducerRegisters, int ConsumerRegisters, Ending End = Ending::together, typename Produce,
          typename Consume>
__device__ __forceinline__ void in_roles(Produce produce, Consume consume CUDA_TMA_SITE) {
    require_registers<Consumers, ProducerRegisters, ConsumerRegisters>();
    __syncwarp();               // thread 0 comes back to its warp: the instruction wants whole warps (.aligned)
    cluster_arrive_relaxed();   // nobody uses a barrier, here or in another CTA, that is not yet initialised
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

// ... with Ending::drained, and begin(): what the thread that produces does before it knows that barriers are initialised
// but its own: loads to this CTA alone, while the CTAs wait for each other. The same thread has initialised them, and has
// said fence_proxy_async():
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
        register_dealloc<ProducerRegisters>();   // before anything that takes time: consumers wait for these registers
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
