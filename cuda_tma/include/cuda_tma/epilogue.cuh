// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/epilogue.cuh: the sums of a tile on their way to memory: rounded, laid out in shared memory, and stored by
// TMA part by part, while the tensor cores are busy with the next tile.
//
//     using C = Tile<BFLOAT16, Box<16, 64>, SWIZZLE_128B>;     // a part: a warp's 16 rows of the sums, 64 columns
//     __shared__ C buffers[WARPS][2];                          // of each warp two, as one fills while one is read
//     ...
//     Epilogue<C, 4> out(buffers[threadIdx.x / 32]);           // 4 parts: 256 columns, 128 sums in each thread
//     for (each tile) {
//         for (each step of K) { ...; out.store_next(); }      // a part of the tile before, if one is left
//         out.take(sums, c_map, Coordinates{n, m});            // the tile's place in C
//     }
//     out.finish();
//
// A part is what one store moves, in 16-bit floats, and it is a Tile with its map's type (tile.cuh). Its rows say who
// makes it together: 16 are those of a warp, 64 those of a warpgroup. All of these threads call each function together.
// Where the buffers are swizzled by 128 bytes, no two threads that store at the same time meet in a bank.
#pragma once

#include <cuda_tma/tile.cuh>
#include <cuda_tma/warpgroup.cuh>

namespace cuda_tma {

// How a part's rows lie in the sums: as they are; or turned, so that each row of the part is a column of the sums.
enum class Turn { none, transposed };

template <typename Part, Turn Turned>
struct PartOfSums {
    __device__ static constexpr bool is_turned() { return Turned == Turn::transposed; }
    __device__ static constexpr int rows() { return Part::extent(is_turned() ? 1 : 0); }
    __device__ static constexpr int columns() { return Part::extent(is_turned() ? 0 : 1); }
    __device__ static constexpr int threads() { return 2 * rows(); }   // that make it
};

// How a part leaves: by a store through its map, which stays where it is until finish(). A kernel may have one of its own.
template <typename Part>
struct ToMap {
    using Map = TypedMap<Part, 2, MapMode::tiled>;

    const Map* map = nullptr;

    __device__ ToMap() {}
    __device__ ToMap(const Map& map) : map(&map) {}
    __device__ void operator()(Coordinates<2> at, const Part& part) const {
        store(*map, at, part);   // drops what lies outside the tensor
    }
};

// `Parts` parts, at most: as many columns of the sums (with Turn::transposed: rows of the tensor) one after the other.
// The sums are those of wgmma(): of a warpgroup's 64 rows, of which a warp has 16.
template <typename Part, int Parts, Turn Turned = Turn::none, int Buffers = 2, typename Store = ToMap<Part>>
class Epilogue {
    using Shape = PartOfSums<Part, Turned>;

public:
    using Map = typename ToMap<Part>::Map;

    __device__ __forceinline__ explicit Epilogue(Part (&buffers)[Buffers]) : buffers(buffers) {}

    // The sums of a tile, in place of the last one's, of which it first stores what is left. `at` is where the
    // warpgroup's 64 rows and their columns start in the tensor; `to` is its map, or else a Store. Only parts with some
    // of the first `columns` leave.
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

    // One more part, if there is one that has not left.
    __device__ __forceinline__ void store_next() {
        if (stored < parts) store_number<0>();
    }

    __device__ __forceinline__ void store_rest() {
        while (stored < parts) store_next();
    }

    // All that is left; and then until it was read, as a CTA that ends gives up its shared memory.
    __device__ __forceinline__ void finish() {
        store_rest();
        wait_group_read();
    }

    // ... by as many buffers as there are parts, so that none waits until one before it was read: of memory that is free
    // by then, the stages of a ring say. Who read it, wgmmas too, has said fence_proxy_async() and met the others.
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

    // In registers, which no variable can index: hence a function for each part.
    unsigned pairs[Parts * Shape::columns() / 4];   // the sums of a thread, rounded, two in each
    int stored = Parts, parts = Parts;       // of the last tile
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
        // An earlier store has read this buffer: at most those before it in this tile, in the other buffers, may still
        // read. (The last tile may have ended on any buffer.) The thread that issued them knows, and then the others.
        if (is_first()) wait_group_read<(Number < Buffers ? Number : Buffers - 1)>();
        sync();
        store_part<Number>(buffers[Number % Buffers]);
        ++stored;
    }

    template <int Number = 0>
    __device__ __forceinline__ void store_rest_in(Part (&free)[Parts]) {
        if (stored <= Number && Number < parts) store_part<Number>(free[Number]);
        if constexpr (Number + 1 < Parts) store_rest_in<Number + 1>(free);
        else stored = parts;
    }

    // By one of the threads that make a part.
    __device__ static bool is_first() { return threadIdx.x % Shape::threads() == 0; }

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
        fence_proxy_async();   // each thread: what it wrote is for the TMA unit ...
        sync();                // ... which starts when all have written
        if (is_first()) {
            Coordinates<2> part = at;
            part.value[Shape::is_turned() ? 1 : 0] += Number * Shape::columns();
            to(part, buffer);
            commit_group();
        }
    }

    // Which 16 bytes of the buffer this lane names, of the i-th 16 columns: see store_matrices().
    __device__ static unsigned address(const Part& buffer, unsigned i) {
        const unsigned lane = threadIdx.x % 32, row = threadIdx.x % Shape::threads() / 32 * 16;
        if constexpr (Shape::is_turned()) return buffer.address(16 * i + lane / 16 * 8 + lane % 8, row + lane / 8 % 2 * 8);
        else return buffer.address(row + lane % 16, 16 * i + lane / 16 * 8);
    }

    // Warpgroups use the named barriers 1, 2, ..., a barrier each.
    __device__ static void sync() {
        if constexpr (Shape::threads() == 32) __syncwarp();
        else named_barrier_sync(1 + threadIdx.x / Shape::threads(), Shape::threads());
    }
};

}  // namespace cuda_tma
