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

// Tasks of a list in global memory, which all clusters of a grid draw from, so that whoever is through first gets the
// next. One thread of the cluster draws, and tells all CTAs:
//
//     __shared__ TaskList<Task> list;                          // of each CTA of the cluster
//     if (threadIdx.x == 0) list.init(readers);                // threads of the cluster that call next()
//     cluster_sync();
//     one thread of each CTA:  list.deal(tasks, drawn, count); // returns at once but in the first
//     the readers:             Stage<2> turn;
//                              for (Task task = list.next(turn); !task.is_last; task = list.next(turn)) ...
//
// Behind what there is to do, the list has a last task for each cluster, which says so. `drawn` is 0 before the first
// launch, and after each: atomicInc counts to the last task, and then from 0. Launches at the same time need a counter
// each. A task is drawn when all readers have begun the one that is `Turns` before it: memory takes its time to answer,
// which is nobody's wait in a thread that does nothing else. (Drawn by the thread that loads, in the middle of a tile,
// it cost grouped_gemm 2 % sustained and 4 % in bursts; one H200.)
template <typename Task, int Turns = 2>
struct TaskList {
    static_assert(sizeof(Task) % 16 == 0 && alignof(Task) >= 16, "a task is copied in pieces of 16 bytes: alignas(16)");

    Task tasks[Turns];
    Pipeline<Turns> turns;

    __device__ void init(unsigned readers) { turns.init(readers); }

    __device__ void deal(const Task* list, unsigned* drawn, unsigned count CUDA_TMA_SITE) {
        if (cluster_cta_rank() > 0) return;
        const unsigned last = count - gridDim.x * gridDim.y * gridDim.z / cluster_cta_count();
        unsigned number;
        Stage<Turns> turn;
        do {
            turns.empty[turn.index].wait_cluster(turn.parity ^ 1 CUDA_TMA_OF_STAGE(false, turn.index));
            number = atomicInc(drawn, count - 1);
            const Task task = list[number];
            for (unsigned rank = 0; rank < cluster_cta_count(); ++rank) tell(turn.index, rank, task);
            turn.next();
        } while (number < last);
    }

    __device__ Task next(Stage<Turns>& turn CUDA_TMA_SITE) {
        turns.full[turn.index].wait_cluster(turn.parity CUDA_TMA_OF_STAGE(true, turn.index));
        const Task task = tasks[turn.index];
        turns.release_generic(turn, 0);   // in the CTA that draws
        turn.next();
        return task;
    }

private:
    // By st.async, which like the loads of readers is of the generic proxy: no fence has to be between.
    __device__ void tell(int index, unsigned cta_rank, const Task& task) {
        turns.full[index].in_cta(cta_rank).arrive_expect_tx(sizeof(Task));
        for (int i = 0; i < sizeof(Task) / 16; ++i)
            store_async(reinterpret_cast<uint4*>(&tasks[index]) + i, cta_rank, reinterpret_cast<const uint4*>(&task)[i],
                        turns.full[index]);
    }
};

}  // namespace cuda_tma
