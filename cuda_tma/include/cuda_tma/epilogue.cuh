// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/epilogue.cuh: the output of accumulators. The epilogue of a tile rounds the sums, writes them to shared
// memory, and stores them with TMA one part at a time, while the tensor cores compute the next tile.
//
//     using C = Tile<BFLOAT16, Box<16, 64>, SWIZZLE_128B>;     // a part: 16 rows of a warp, 64 columns
//     __shared__ C buffers[WARPS][2];                          // two for each warp: one fills while TMA reads the other
//     ...
//     Epilogue<C, 4> out(buffers[threadIdx.x / 32]);           // 4 parts: 256 columns, 128 sums in each thread
//     for (each tile) {
//         for (each step of K) { ...; out.store_next(); }      // a remaining part of the preceding tile
//         out.take(sums, c_map, Coordinates{n, m});            // the tile's coordinates in C
//     }
//     out.finish();
//
// A part is the tile of one store. Its type is the 16-bit Tile of the map (tile.cuh). A warp writes a part of 16 rows,
// and a warpgroup writes a part of 64 rows. All threads of the warp or warpgroup call each function together. If the
// buffers have the 128-byte swizzle, the stores to shared memory have no bank conflicts.
#pragma once

#include <cuda_tma/tile.cuh>
#include <cuda_tma/warpgroup.cuh>

namespace cuda_tma {

// The orientation of a part. With `transposed`, each row of the part is a column of the sums.
enum class Turn { none, transposed };

template <typename Part, Turn Turned>
struct PartOfSums {
    __device__ static constexpr bool is_turned() { return Turned == Turn::transposed; }
    __device__ static constexpr int rows() { return Part::extent(is_turned() ? 1 : 0); }
    __device__ static constexpr int columns() { return Part::extent(is_turned() ? 0 : 1); }
    __device__ static constexpr int threads() { return 2 * rows(); }   // per part

    // Returns true in one of the threads that write a part.
    __device__ static bool is_first() { return threadIdx.x % threads() == 0; }

    // Synchronizes the threads that write a part. Each warpgroup uses its own named barrier: 1, 2, ...
    __device__ static void sync() {
        if constexpr (threads() == 32) __syncwarp();
        else named_barrier_sync(1 + threadIdx.x / threads(), threads());
    }
};

// The store of a part through a map; the map must remain valid until finish(). A kernel may pass its own type instead.
template <typename Part>
struct ToMap {
    using Map = TypedMap<Part, 2, MapMode::tiled>;

    const Map* map = nullptr;

    __device__ ToMap() {}
    __device__ ToMap(const Map& map) : map(&map) {}
    __device__ void operator()(Coordinates<2> at, const Part& part) const {
        store(*map, at, part);   // TMA drops elements outside the tensor
    }
};

// An epilogue for at most `Parts` parts. The parts are adjacent along the columns of the sums, which with
// Turn::transposed are rows of the tensor. wgmma() computes the sums: 64 rows per warpgroup, 16 per warp.
template <typename Part, int Parts, Turn Turned = Turn::none, int Buffers = 2, typename Store = ToMap<Part>>
class Epilogue {
    using Shape = PartOfSums<Part, Turned>;

public:
    using Map = typename ToMap<Part>::Map;
    static constexpr bool takes_ints = false;   // take() takes floats

    __device__ __forceinline__ explicit Epilogue(Part (&buffers)[Buffers]) : buffers(buffers) {}

    // Stores the remaining parts of the preceding tile, and then takes the sums of a tile. `at` contains the
    // coordinates at which the warpgroup's 64 rows of sums start in the tensor; `to` is the map, or a Store. The
    // epilogue stores only parts that overlap the first `columns` columns.
    template <int Count>
    __device__ __forceinline__ void take(const float (&sums)[Count], const Store& to, Coordinates<2> at,
                                         int columns = 2 * Count) {
        static_assert(2 * Count % Shape::columns() == 0 && 2 * Count <= Parts * Shape::columns(),
                      "take: a thread has columns / 2 sums, of as many parts as the epilogue has, or fewer");
        store_rest();
#pragma unroll
        for (int i = 0; i < Count / 2; ++i) pairs[i] = rounded(sums[2 * i], sums[2 * i + 1]);
        at.value[Shape::is_turned() ? 0 : 1] += threadIdx.x % 128 / Shape::threads() * Shape::rows();
        this->at = at;
        this->to = to;
        stored = 0;
        parts = (columns + Shape::columns() - 1) / Shape::columns();
    }

    // Stores the next part, if one remains.
    __device__ __forceinline__ void store_next() {
        if (stored < parts) store_number<0>();
    }

    __device__ __forceinline__ void store_rest() {
        while (stored < parts) store_next();
    }

    // Stores all remaining parts, and waits until TMA has read them, because shared memory ends with the CTA.
    __device__ __forceinline__ void finish() {
        store_rest();
        wait_group_read();
    }

    // Does the same as finish(), but with one buffer for each part, so that no part waits for an earlier part. The
    // buffers are in memory that is free by then, such as the stages of a ring. Before this call, threads that read
    // this memory, also with wgmma, must have called fence_proxy_async() and a barrier.
    __device__ __forceinline__ void finish(Part (&free)[Parts]) {
        store_rest_in(free);
        wait_group_read();
    }

private:
    static_assert(Part::data_type() == BFLOAT16 || Part::data_type() == FLOAT16, "sums leave as BFLOAT16 or FLOAT16");
    static_assert(Part::rank() == 2, "a part has two dimensions");
    static_assert((Shape::rows() == 16 || Shape::rows() == 64) && Shape::columns() % 8 == 0,
                  "a part has 16 rows of the sums, a warp's, or 64, a warpgroup's; and a multiple of 8 columns");
    static_assert(Buffers >= 1, "a part is laid out in a buffer");

    // The sums are in registers, which need constant indices. Therefore each part has a function of its own.
    unsigned pairs[Parts * Shape::columns() / 4];   // each element contains two rounded sums of this thread
    int stored = Parts, parts = Parts;       // of this tile
    Coordinates<2> at{0, 0};
    Store to;
    Part (&buffers)[Buffers];

    __device__ static unsigned rounded(float first, float second) {
        return Part::data_type() == FLOAT16 ? f16x2(first, second) : bf16x2(first, second);
    }

    template <int Number>
    __device__ __forceinline__ void store_number() {
        if constexpr (Number + 1 < Parts)
            if (stored != Number) return store_number<Number + 1>();
        // Waits until TMA has read this buffer. Afterwards, only stores of this tile from other buffers may still read:
        // the preceding tile may have ended on any buffer. The issuing thread waits, and then all threads synchronize.
        if (Shape::is_first()) wait_group_read<(Number < Buffers ? Number : Buffers - 1)>();
        Shape::sync();
        store_part<Number>(buffers[Number % Buffers]);
        ++stored;
    }

    template <int Number = 0>
    __device__ __forceinline__ void store_rest_in(Part (&free)[Parts]) {
        if (stored <= Number && Number < parts) store_part<Number>(free[Number]);
        if constexpr (Number + 1 < Parts) store_rest_in<Number + 1>(free);
        else stored = parts;
    }

    template <int Number>
    __device__ __forceinline__ void store_part(Part& buffer) {
#pragma unroll
        for (int i = 0; i < Shape::columns() / 16; ++i) {
            const unsigned* m = pairs + Number * Shape::columns() / 4 + 4 * i;   // 16 x 16 sums
            if constexpr (Shape::is_turned()) store_matrices_transposed(address(buffer, i), m[0], m[1], m[2], m[3]);
            else store_matrices(address(buffer, i), m[0], m[1], m[2], m[3]);
        }
        if constexpr (Shape::columns() % 16 != 0) {   // 16 x 8
            const unsigned* m = pairs + (Number + 1) * Shape::columns() / 4 - 2;
            const unsigned to = address(buffer, Shape::columns() / 16);
            if constexpr (Shape::is_turned()) store_matrices_transposed(to, m[0], m[1]);
            else store_matrices(to, m[0], m[1]);
        }
        fence_proxy_async();   // makes each thread's writes visible to TMA
        Shape::sync();         // TMA starts after all threads have written
        if (Shape::is_first()) {
            Coordinates<2> part = at;
            part.value[Shape::is_turned() ? 1 : 0] += Number * Shape::columns();
            to(part, buffer);
            commit_group();
        }
    }

    // Returns the address of this lane's 16 bytes in columns 16 * i to 16 * i + 15 of the buffer; see store_matrices().
    __device__ static unsigned address(const Part& buffer, unsigned i) {
        const unsigned lane = threadIdx.x % 32, row = threadIdx.x % Shape::threads() / 32 * 16;
        if constexpr (Shape::is_turned()) return buffer.address(16 * i + lane / 16 * 8 + lane % 8, row + lane / 8 % 2 * 8);
        else return buffer.address(row + lane % 16, 16 * i + lane / 16 * 8);
    }
};

}  // namespace cuda_tma
