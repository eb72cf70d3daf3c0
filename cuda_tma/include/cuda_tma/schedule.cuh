// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/schedule.cuh: which tile comes next, where CTAs stay on their multiprocessors and compute one after the
// other. In a fixed order (Bands), or of a list, to whoever is through first (TaskList).
#pragma once

#include <cuda_tma/pipeline.cuh>
#include <cuda_tma/store_async.cuh>

namespace cuda_tma {

// The tiles of a matrix, `down` x `across`, in bands of `Height` rows: down a band's column, and then to the right.
// Those that run at the same time so cover a part about as high as wide, and share much of what they load in L2.
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
        const int left = down - Height * band, height = left < Height ? left : Height;   // the last may be lower
        return {Height * band + rest % height, rest / height};
    }
};

// Tasks of a list, which all clusters of a grid draw from, so that whoever is through first gets the next. The list lies
// in global memory, or is a rule: tasks[i] is the i-th Task. In each CTA one thread draws, which then knows what to load,
// and others are told:
//
//     __shared__ TaskList<Task> list;                          // of each CTA of the cluster
//     if (threadIdx.x == 0) list.init(readers);                // threads of the CTA that call next()
//     cluster_sync();
//     Stage<2> turn;
//     one thread of each CTA:  const Task task = list.draw(turn, tasks, drawn, count);
//     the readers:             const Task task = list.next(turn);
//
// Behind what there is to do, the list has a last task for each cluster, which says so. `drawn` is 0 before the first
// launch, and after each: atomicInc counts to the last task, and then from 0. Launches at the same time need a counter
// each. A task is drawn when its loads are due and no sooner, although memory takes its time to answer: who has drawn
// ahead keeps tasks that others wait for at the end. (grouped_gemm was 2 % slower, in bursts 4 %, where each task was
// drawn during the loads of the one before, and 5 and 7 % where another thread drew two ahead; one H200.)
// A single CTA is told by plain stores: store_async.cuh says what st.async wants.
template <typename Task>
struct TaskList {
    static_assert(sizeof(Task) % 16 == 0 && alignof(Task) >= 16, "a task is copied in pieces of 16 bytes: alignas(16)");

    Task tasks[2];
    Pipeline<2> turns;   // `empty`: of the readers here
    Barrier free[2];     // in the first CTA: all others have read what was there

    __device__ void init(unsigned readers) {
        const unsigned ctas = cluster_cta_count();
        for (Barrier& barrier : free) barrier.init(ctas > 1 ? ctas - 1 : 1);
        turns.init(readers);
    }

    // Readers arrive in their own CTA, and for all of them the thread that draws there does so at the first CTA, a task
    // later, when it waits anyway: an arrival with .release.cluster is a fence of the whole GPU (MEMBAR.GPU), which takes
    // as long as some wgmmas.
    template <typename List>
    __device__ Task draw(Stage<2>& turn, const List& list, unsigned* drawn, unsigned count CUDA_TMA_SITE) {
        const unsigned ctas = cluster_cta_count(), last = turn.index ^ 1, last_parity = turn.parity ^ last;
        Barrier& full = turns.full[turn.index];
        if (ctas > 1) full.arrive_expect_tx(sizeof(Task));   // it may come before: the count is then below zero
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

    // By st.async, which like the loads of readers is of the generic proxy: no fence has to be between.
    __device__ void tell(int index, unsigned cta_rank, const Task& task) {
        for (int i = 0; i < sizeof(Task) / 16; ++i)
            store_async(reinterpret_cast<uint4*>(&tasks[index]) + i, cta_rank, reinterpret_cast<const uint4*>(&task)[i],
                        turns.full[index]);
    }
};

}  // namespace cuda_tma
