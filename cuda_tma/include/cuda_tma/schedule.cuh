// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/schedule.cuh: the order of tiles in persistent kernels, whose CTAs compute several tiles one after the
// other. The order is fixed (Bands), or comes from a list from which each free cluster takes the next task (TaskList).
#pragma once

#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/store_async.cuh>

namespace cuda_tma {

// The `down` x `across` tiles of a matrix in bands of `Height` rows. Within a band, the order visits all rows of a
// column before the next column. The tiles that run at the same time then cover a nearly square part of the matrix, and
// share many of their loads in L2.
//
//     const Bands<8> tiles{down, across};
//     for (int i = blockIdx.x; i < tiles.count(); i += gridDim.x) { auto [row, column] = tiles[i]; ... }
template <int Height>
struct Bands {
    struct Place { int down, across; };

    int down, across;

    __host__ __device__ constexpr int count() const { return down * across; }

    __host__ __device__ constexpr Place operator[](int i) const {
        const int band = i / (Height * across), rest = i % (Height * across);
        const int left = down - Height * band, height = left < Height ? left : Height;   // last band: fewer rows
        return {Height * band + rest % height, rest / height};
    }
};

// A list of tasks from which all clusters of a grid draw: a free cluster receives the next task. `tasks` is a list in
// global memory, or an object whose tasks[i] computes the i-th Task. One thread of each CTA draws a task and passes it
// to the reading threads:
//
//     __shared__ TaskList<Task> list;                          // of each CTA of the cluster
//     if (threadIdx.x == 0) list.init(readers);                // threads of the CTA that call next()
//     cluster_sync();
//     Stage<2> turn;
//     one thread of each CTA:  const Task task = list.draw(turn, tasks, drawn, count);
//     the readers:             const Task task = list.next(turn);
//
// The list ends with one final task per cluster. `drawn` is 0 before and after each launch, because atomicInc wraps to
// 0 after the last task. Concurrent launches need separate counters. A cluster draws a task only when the task's loads
// are due, although a draw takes a memory latency. An earlier draw would reserve tasks that other clusters could run at
// the end. (On one H200, grouped_gemm was 2 % slower, and in bursts 4 %, if it drew each task during the preceding
// loads. With two tasks drawn ahead by another thread, it was 5 and 7 % slower.) In a cluster of one CTA, ordinary
// stores pass the task to the readers, because st.async needs a launch with clusters (store_async.cuh).
template <typename Task>
struct TaskList {
    static_assert(sizeof(Task) % 16 == 0 && alignof(Task) >= 16, "a task is copied in pieces of 16 bytes: alignas(16)");

    Task tasks[2];
    Pipeline<2> turns;   // `empty` counts the readers of this CTA
    Barrier free[2];     // of the first CTA; counts CTAs that have read the task

    __device__ void init(unsigned readers) {
        const unsigned ctas = cluster_cta_count();
        for (Barrier& barrier : free) barrier.init(ctas > 1 ? ctas - 1 : 1);
        turns.init(readers);
    }

    // Readers arrive at a barrier in their own CTA. One task later, the drawing thread of that CTA has to wait in any
    // case, and then arrives once for these readers at the first CTA. An arrival with .release.cluster contains a
    // GPU-wide fence (MEMBAR.GPU), which takes as long as some wgmmas.
    template <typename List>
    __device__ Task draw(Stage<2>& turn, const List& list, unsigned* drawn, unsigned count CUDA_TMA_SITE) {
        const unsigned ctas = cluster_cta_count(), last = turn.index ^ 1, last_parity = turn.parity ^ last;
        Barrier& full = turns.full[turn.index];
        if (ctas > 1) full.arrive_expect_tx(sizeof(Task));   // the count is negative if the copy ends first
        if (cluster_cta_rank() == 0) {
            const Task task = list[atomicInc(drawn, count - 1)];
            turns.empty[turn.index].wait(turn.parity ^ 1 CUDA_TMA_OF_STAGE(false, turn.index));
            if (ctas == 1) {
                tasks[turn.index] = task;
                full.arrive();
            } else {
                free[turn.index].wait_cluster(last_parity CUDA_TMA_HERE);
                for (unsigned rank = 0; rank < ctas; ++rank) tell(turn.index, rank, task);
            }
        } else {
            turns.empty[last].wait(last_parity CUDA_TMA_OF_STAGE(false, last));
            free[last].arrive_at(0);
        }
        return read(turn CUDA_TMA_HERE);
    }

    __device__ Task next(Stage<2>& turn CUDA_TMA_SITE) {
        const Stage<2> at = turn;
        const Task task = read(turn CUDA_TMA_HERE);
        turns.release_generic(at);
        return task;
    }

private:
    __device__ Task read(Stage<2>& turn CUDA_TMA_SITE) {
        turns.full[turn.index].wait_cluster(turn.parity CUDA_TMA_OF_STAGE(true, turn.index));
        const Task task = tasks[turn.index];
        turn.next();
        return task;
    }

    // Passes the task with st.async. No fence is needed, because st.async and the readers' loads use the generic proxy.
    __device__ void tell(int index, unsigned cta_rank, const Task& task) {
        for (int i = 0; i < sizeof(Task) / 16; ++i)
            store_async(reinterpret_cast<uint4*>(&tasks[index]) + i, cta_rank, reinterpret_cast<const uint4*>(&task)[i],
                        turns.full[index]);
    }
};

}  // namespace cuda_tma
