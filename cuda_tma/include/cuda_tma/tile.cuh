// SPDX-License-Identifier: Apache-2.0
//
// cuda_tma/tile.cuh: typed tiles and tensor maps. One type contains the box of a load, its byte count and the offset of
// each element. The host reads the type from the kernel's signature, and creates the map from the type. If the caller
// passes a map with another type, the host refuses the map.
//
//     using Window = Tile<FLOAT32, Box<32, 64>>;        // 32 rows, 64 columns, as in a C array or in box_dim=(32, 64)
//
//     extern "C" __global__ void kernel(const __grid_constant__ TiledMap<Window> map, float* out) {
//         __shared__ Window tile;                       // with the alignment of its swizzle
//         __shared__ Barrier full;
//         if (threadIdx.x == 0) {
//             full.init(1);
//             fence_barrier_init();
//             full.arrive_expect_tx(tile);              // the byte count of its load
//             load(tile, map, full, Coordinates{64 * blockIdx.x, 32 * blockIdx.y});   // innermost dimension first
//         }
//         __syncthreads();
//         full.wait(0);
//         ... tile(row, column) ...                     // applies the swizzle
//
// A tile that is wider than the span of its swizzle consists of several boxes, contiguous in shared memory. load() and
// store() issue one copy for each box. Interleaved layouts, element strides other than 1 and im2col::w need plain maps
// (tma.cuh, sm100.cuh); as_tensor_map(map) returns the plain map of a typed one. "ISA" is NVIDIA's PTX ISA.
#pragma once

#include <cuda_tma/dynamic_shared.cuh>
#include <cuda_tma/element.cuh>
#include <cuda_tma/tma.cuh>

namespace cuda_tma {

// ---- parts of the types: the driver's values, and cuda_tma's own names ----

// CUtensorMapFloatOOBfill: the value that a load writes for elements outside the tensor.
enum OobFill : int { OOB_FILL_NONE, OOB_FILL_NAN };

// CUtensorMapL2promotion.
enum L2Promotion : int { L2_PROMOTION_NONE, L2_PROMOTION_64B, L2_PROMOTION_128B, L2_PROMOTION_256B };

// Extents in elements, in the order of a C array and of Python's box_dim: innermost last. (Constants of these types are
// functions, because NVRTC would put a static member into the module.)
template <int... Extents>
struct Box {
    static_assert(1 <= sizeof...(Extents) && sizeof...(Extents) <= 5, "a tensor map has 1 to 5 dimensions");
    static_assert(((Extents > 0) && ...), "an extent of a box is 1 or more");

    __host__ __device__ static constexpr int rank() { return sizeof...(Extents); }
    __host__ __device__ static constexpr int elements() { return (Extents * ... * 1); }
    __host__ __device__ static constexpr bool fits(int limit) { return ((Extents <= limit) && ...); }
    __host__ __device__ static constexpr int extent(int dimension) {
        int found = 0;
        ((dimension-- == 0 ? found = Extents : 0), ...);
        return found;
    }

    // The index of an element: one number for the innermost dimension, and one for all other dimensions.
    struct Place { unsigned row, column; };
    template <typename... Index>
    __host__ __device__ static constexpr Place place(Index... index) {
        unsigned row = 0, column = 0, step = 1;
        ((row = row * step + column, column = index, step = Extents), ...);
        return {row, column};
    }
};

// Each function returns the box with another extent: with_first() the outermost, and with_last() the innermost.
template <int Count, int First, int... Rest>
__device__ Box<Count, Rest...> with_first(Box<First, Rest...>);
template <int Width, int One> __device__ Box<Width> with_last(Box<One>);
template <int Width, int One, int Two> __device__ Box<One, Width> with_last(Box<One, Two>);
template <int Width, int One, int Two, int Three> __device__ Box<One, Two, Width> with_last(Box<One, Two, Three>);
template <int Width, int One, int Two, int Three, int Four>
__device__ Box<One, Two, Three, Width> with_last(Box<One, Two, Three, Four>);
template <int Width, int One, int Two, int Three, int Four, int Five>
__device__ Box<One, Two, Three, Four, Width> with_last(Box<One, Two, Three, Four, Five>);

// ---- tile ----

// The layout of a tile in shared memory: contiguous boxes, each of contiguous rows.
template <DataType Type, typename Extents, Swizzle Mode>
struct TileLayout {
    __host__ __device__ static constexpr DataType data_type() { return Type; }
    __host__ __device__ static constexpr Swizzle swizzle() { return Mode; }
    __host__ __device__ static constexpr int rank() { return Extents::rank(); }
    __host__ __device__ static constexpr int extent(int dimension) { return Extents::extent(dimension); }
    __host__ __device__ static constexpr int width() { return extent(rank() - 1); }
    __host__ __device__ static constexpr int row_count() { return Extents::elements() / width(); }

    // The width of the map's box, at most the swizzle's span. Boxes are equal, so the last may exceed the tile.
    __host__ __device__ static constexpr int box_width() {
        const int span = 16 * span_bytes() / Sixteen<Type>::taken_bytes();
        return Mode == SWIZZLE_NONE || width() < span ? width() : span;
    }
    __host__ __device__ static constexpr int boxes() { return (width() + box_width() - 1) / box_width(); }

    // The bytes of a row, of a box, and of all boxes. The last number is sizeof the tile.
    __host__ __device__ static constexpr unsigned pitch_bytes() {
        return multiple_of(span_bytes(), Sixteen<Type>::taken_bytes() * box_width() / 16);
    }
    __host__ __device__ static constexpr unsigned box_bytes() {
        return multiple_of(alignment(), row_count() * pitch_bytes());
    }
    __host__ __device__ static constexpr unsigned bytes() { return boxes() * box_bytes(); }

    // The number of bytes that the loads of the tile write. It excludes gaps, and includes the part outside the tensor.
    __host__ __device__ static constexpr unsigned tx_bytes() {
        return boxes() * row_count() * (Sixteen<Type>::data_bytes() * box_width() / 16);
    }

    __host__ __device__ static constexpr unsigned alignment() { return swizzle_alignment<Mode>(); }
    __host__ __device__ static constexpr unsigned span_bytes() { return Mode == SWIZZLE_NONE ? 1 : alignment() / 8; }
    __host__ __device__ static constexpr unsigned multiple_of(unsigned unit, unsigned bytes) {
        return (bytes + unit - 1) / unit * unit;
    }

    // The byte offset of an element from the start of the tile. Pass one index for each dimension, in the order of Box.
    template <typename... Index>
    __host__ __device__ static constexpr unsigned offset(Index... index) {
        static_assert(sizeof...(Index) == rank(), "one index for each dimension of the tile, in the order of its Box");
        const typename Extents::Place at = Extents::place(index...);
        const unsigned box = boxes() == 1 ? 0 : at.column / box_width();
        const unsigned in_row = Sixteen<Type>::offset(at.column - box * box_width());
        // A swizzle XORs bits of the row into the column. A separate expression computes the row's part, because loops
        // often share this part.
        if constexpr (Mode != SWIZZLE_NONE)
            return box * box_bytes() + (cuda_tma::swizzle<Mode>(at.row * pitch_bytes()) ^ in_row);
        return box * box_bytes() + at.row * pitch_bytes() + in_row;
    }
};

// Rows of a tile that has several boxes. The rows have the same number of boxes, each within one box of the tile.
template <typename Whole, typename Part>
struct RowsOf {
    unsigned char* storage;

    __host__ __device__ static constexpr unsigned tx_bytes() { return Part::tx_bytes(); }
};

// A tile in shared memory, with the driver's data type, extents (a Box) and a swizzle.
template <DataType Type, typename Extents, Swizzle Mode = SWIZZLE_NONE>
struct alignas(swizzle_alignment<Mode>()) Tile : TileLayout<Type, Extents, Mode> {
    using Layout = TileLayout<Type, Extents, Mode>;
    using Element = typename ElementOf<Type>::Type;
    using MapBox = decltype(with_last<Layout::box_width()>(Extents{}));   // the box of one load

    unsigned char storage[Layout::bytes()];

    Tile() = default;
    [[deprecated("a Tile lies in shared memory: take it by reference, as auto&")]]
    Tile(const Tile&) = delete;

    // Returns an element, whose type is in element.cuh.
    template <typename... Index>
    __device__ Element& operator()(Index... index) {
        static_assert(Type < U4_ALIGN8B, "an element of 4 or 6 bits has no address: name its format, as<E2m1>(...)");
        return element<Element>(index...);
    }
    template <typename... Index>
    __device__ const Element& operator()(Index... index) const { return const_cast<Tile&>(*this)(index...); }

    // Returns an element as another type, as in as<float4>(row, column), of at most the 16 bytes that a swizzle keeps
    // together (FLIP_8B: 8). For an element of 4 or 6 bits, as<E2m1>(row, column) returns a value.
    template <typename Value, typename... Index>
    __device__ decltype(auto) as(Index... index) { return element<Value>(index...); }
    template <typename Value, typename... Index>
    __device__ decltype(auto) as(Index... index) const { return element<const Value>(index...); }

    // Returns the shared-memory address of an element, for stmatrix and similar instructions.
    template <typename... Index>
    __device__ unsigned address(Index... index) const { return smem_address(storage) + Layout::offset(index...); }

    // Returns `Count` indices of the outermost dimension from `first` on, as a tile for another map or as an operand.
    // With a swizzle both numbers are multiples of 8. If the tile has several boxes, the result is for copies only.
    template <int Count>
    __device__ decltype(auto) rows(unsigned first) {
        using Part = Tile<Type, decltype(with_first<Count>(Extents{})), Mode>;
        constexpr unsigned step_bytes = Layout::row_count() / Layout::extent(0) * Layout::pitch_bytes();
        static_assert(Count <= Layout::extent(0), "rows: the tile has fewer");
        static_assert(Count * step_bytes % Layout::alignment() == 0,
                      "rows: they end where no tile may start; take 8 * n");
        refuse_rows_of_no_tile_if(first + Count > Layout::extent(0) || first * step_bytes % Layout::alignment() != 0);
        if constexpr (Layout::boxes() == 1) return *reinterpret_cast<Part*>(storage + first * step_bytes);
        else return RowsOf<Tile, Part>{storage + first * step_bytes};
    }

    // Returns one of the boxes of a tile that is wider than its swizzle's span.
    __device__ auto& box(int index) {
        return *reinterpret_cast<Tile<Type, MapBox, Mode>*>(storage + index * Layout::box_bytes());
    }

private:
    template <typename Value, typename... Index>
    __device__ decltype(auto) element(Index... index) const {
        static_assert(Mode == SWIZZLE_NONE || sizeof(Value) <= (Mode == SWIZZLE_128B_ATOM_32B_FLIP_8B ? 8 : 16),
                      "as: a swizzle keeps no more together than 16 bytes, SWIZZLE_128B_ATOM_32B_FLIP_8B than 8");
        auto* first = const_cast<unsigned char*>(storage) + Layout::offset(index...);
        if constexpr (packed_bits<Value> != 0)
            return packed_element<Value, Type>(first, Extents::place(index...).column);
        else return *reinterpret_cast<Value*>(first);
    }
};

// ---- maps ----

enum class MapMode { tiled, im2col };

// The base of typed maps, with the 128 bytes of a TensorMap and the type of the tile that its copies move.
template <typename TileType, int Rank, MapMode Mode>
struct TypedMap : TensorMap {
    using Tile = TileType;

    static_assert(TileType::box_width() * Sixteen<TileType::data_type()>::data_bytes() % 256 == 0,
                  "a row of a map's box is a multiple of 16 bytes");
};

// A kernel's parameter, `const __grid_constant__ TiledMap<...> map`: a tensor map whose copies move this tile.
template <typename TileType, OobFill Fill = OOB_FILL_NONE, L2Promotion Promotion = L2_PROMOTION_NONE>
struct TiledMap : TypedMap<TileType, TileType::rank(), MapMode::tiled> {
    static_assert(TileType::MapBox::fits(256), "an extent of a map's box is at most 256 elements");
};

// A typed map in im2col mode, of rank `Rank`: Tile<..., Box<pixels_per_column, channels_per_pixel>, ...>.
template <typename TileType, int Rank, OobFill Fill = OOB_FILL_NONE, L2Promotion Promotion = L2_PROMOTION_NONE>
struct Im2colMap : TypedMap<TileType, Rank, MapMode::im2col> {
    static_assert(3 <= Rank && Rank <= 5, "im2col: 3 to 5 dimensions");
    static_assert(TileType::rank() == 2, "im2col: a tile is Box<pixels_per_column, channels_per_pixel>");
    static_assert(TileType::extent(0) <= 1024, "im2col: at most 1024 pixels");
    static_assert(TileType::box_width() <= 256, "im2col: at most 256 channels");
};

// ---- copies, like those of tma.cuh, with the tile of the map ----

// Compile-time checks of a copy. `Given` is a reference to the type of the passed tile.
template <typename Given, typename TileType> constexpr bool is_tile = false;
template <typename TileType> constexpr bool is_tile<TileType&, TileType> = true;
template <typename Whole, typename TileType> constexpr bool is_tile<RowsOf<Whole, TileType>, TileType> = true;
template <typename Whole, typename TileType> constexpr bool is_tile<RowsOf<Whole, TileType>&, TileType> = true;

template <typename TileType, typename Given>
__device__ char* box_address(Given& tile, int box) { return (char*)(&tile) + box * TileType::box_bytes(); }
template <typename TileType, typename Whole>
__device__ char* box_address(RowsOf<Whole, TileType> rows, int box) {
    return (char*)(rows.storage) + box * Whole::box_bytes();
}

template <MapMode Wanted, int Count, typename Given, typename TileType, int Rank, MapMode Mode>
__device__ constexpr void require_copy(const TypedMap<TileType, Rank, Mode>&) {
    static_assert(Mode == Wanted, "a TiledMap is for load(), store() ...; an Im2colMap is for load_im2col() ...");
    static_assert(Count == Rank, "one coordinate for each dimension of the map");
    static_assert(is_tile<Given, TileType>,
                  "the map moves another tile: pass the Tile of its type, or tile.rows<N>(first) if it moves a part");
}

// A store writes only the tile. ISA: "Restriction on Tensor Copy instructions".
template <typename TileType>
__device__ constexpr void require_store() {
    static_assert(TileType::width() % TileType::box_width() == 0,
                  "a store of a tile whose last box reaches past it would write what is not the tile's: make it as "
                  "wide as its swizzle's span, or a multiple of that");
    static_assert(TileType::swizzle() != SWIZZLE_128B_ATOM_32B_FLIP_8B && TileType::data_type() < U4_ALIGN16B,
                  "stores and reductions lack SWIZZLE_128B_ATOM_32B_FLIP_8B, U4_ALIGN16B and U6_ALIGN16B");
}

// The reductions of each data type. Other reductions end the context (observed: driver 580, sm_90).
template <DataType... Types>
__host__ __device__ constexpr bool is_one_of(DataType type) { return ((type == Types) || ...); }

__host__ __device__ constexpr bool has_reduction(Reduction operation, DataType type) {
    switch (operation) {
        case Reduction::add:
            return is_one_of<UINT32, INT32, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16, FLOAT32_FTZ, TFLOAT32,
                             TFLOAT32_FTZ>(type);
        case Reduction::min:
        case Reduction::max: return is_one_of<UINT32, INT32, UINT64, INT64, FLOAT16, BFLOAT16>(type);
        case Reduction::inc:
        case Reduction::dec: return type == UINT32;
        default: return is_one_of<UINT32, INT32, UINT64>(type);
    }
}

template <Reduction Operation, typename TileType>
__device__ constexpr void require_reduction() {
    require_store<TileType>();
    static_assert(has_reduction(Operation, TileType::data_type()),
                  "reduce: the data type has no such reduction: add is for all but UINT8, UINT16, INT64, packed types; "
                  "min, max for UINT32 INT32 UINT64 INT64 FLOAT16 BFLOAT16; inc, dec for UINT32; bit_and, bit_or, "
                  "bit_xor for UINT32 INT32 UINT64");
}

// Calls `copy` for each box of a tile, with the address of the box and its coordinates in the tensor.
template <typename TileType, typename Given, int Rank, typename Copy>
__device__ void for_each_box(Given& tile, Coordinates<Rank> at, Copy copy) {
#pragma unroll
    for (int i = 0; i < TileType::boxes(); ++i, at.value[0] += TileType::box_width())
        copy(box_address<TileType>(tile, i), at);
}

// Issues a load of the tile at `at`. `full` counts the bytes; expect them with full.arrive_expect_tx(tile).
template <typename Given, typename TileType, int MapRank, MapMode Mode, int Rank, typename Policy = NoCachePolicy>
__device__ void load(Given&& tile, const TypedMap<TileType, MapRank, Mode>& map, Barrier& full, Coordinates<Rank> at,
                     Policy policy = {}) {
    require_copy<MapMode::tiled, Rank, Given>(map);
    for_each_box<TileType>(tile, at, [&](void* box, Coordinates<Rank> at) {
        load(box, as_tensor_map(map), full, at, policy);
    });
}

// Issues a load into the tile of each CTA whose bit in `cta_mask` is set. In each such CTA, `full` counts the bytes.
template <typename Given, typename TileType, int MapRank, MapMode Mode, int Rank, typename Policy = NoCachePolicy>
__device__ void load_multicast(Given&& tile, const TypedMap<TileType, MapRank, Mode>& map, Barrier& full,
                               Coordinates<Rank> at, unsigned short cta_mask, Policy policy = {}) {
    require_copy<MapMode::tiled, Rank, Given>(map);
    for_each_box<TileType>(tile, at, [&](void* box, Coordinates<Rank> at) {
        load_multicast(box, as_tensor_map(map), full, at, cta_mask, policy);
    });
}

// Issues a load through an im2col map.
template <typename Given, typename TileType, int MapRank, MapMode Mode, int Rank, int Count,
          typename Policy = NoCachePolicy>
__device__ void load_im2col(Given&& tile, const TypedMap<TileType, MapRank, Mode>& map, Barrier& full,
                            Coordinates<Rank> at, Offsets<Count> offsets, Policy policy = {}) {
    require_copy<MapMode::im2col, Rank, Given>(map);
    for_each_box<TileType>(tile, at, [&](void* box, Coordinates<Rank> at) {
        load_im2col(box, as_tensor_map(map), full, at, offsets, policy);
    });
}
template <typename Given, typename TileType, int MapRank, MapMode Mode, int Rank, int Count,
          typename Policy = NoCachePolicy>
__device__ void load_im2col_multicast(Given&& tile, const TypedMap<TileType, MapRank, Mode>& map, Barrier& full,
                                      Coordinates<Rank> at, Offsets<Count> offsets, unsigned short cta_mask,
                                      Policy policy = {}) {
    require_copy<MapMode::im2col, Rank, Given>(map);
    for_each_box<TileType>(tile, at, [&](void* box, Coordinates<Rank> at) {
        load_im2col_multicast(box, as_tensor_map(map), full, at, offsets, cta_mask, policy);
    });
}

// Issues a store of the tile at `at`. The store needs the same fences and groups as store() of tma.cuh.
template <typename Given, typename TileType, int MapRank, MapMode Mode, int Rank, typename Policy = NoCachePolicy>
__device__ void store(const TypedMap<TileType, MapRank, Mode>& map, Coordinates<Rank> at, const Given& tile,
                      Policy policy = {}) {
    require_copy<MapMode::tiled, Rank, Given&>(map);
    require_store<TileType>();
    for_each_box<TileType>(tile, at, [&](const void* box, Coordinates<Rank> at) {
        store(as_tensor_map(map), at, box, policy);
    });
}
template <typename Given, typename TileType, int MapRank, MapMode Mode, int Rank, typename Policy = NoCachePolicy>
__device__ void store_im2col(const TypedMap<TileType, MapRank, Mode>& map, Coordinates<Rank> at, const Given& tile,
                             Policy policy = {}) {
    require_copy<MapMode::im2col, Rank, Given&>(map);
    require_store<TileType>();
    for_each_box<TileType>(tile, at, [&](const void* box, Coordinates<Rank> at) {
        store_im2col(as_tensor_map(map), at, box, policy);
    });
}

// Issues a store that combines each element with the tensor, as in reduce<Reduction::add>(map, at, tile).
template <Reduction Operation, typename Given, typename TileType, int MapRank, MapMode Mode, int Rank,
          typename Policy = NoCachePolicy>
__device__ void reduce(const TypedMap<TileType, MapRank, Mode>& map, Coordinates<Rank> at, const Given& tile,
                       Policy policy = {}) {
    require_copy<MapMode::tiled, Rank, Given&>(map);
    require_reduction<Operation, TileType>();
    for_each_box<TileType>(tile, at, [&](const void* box, Coordinates<Rank> at) {
        reduce<Operation>(as_tensor_map(map), at, box, policy);
    });
}
template <Reduction Operation, typename Given, typename TileType, int MapRank, MapMode Mode, int Rank,
          typename Policy = NoCachePolicy>
__device__ void reduce_im2col(const TypedMap<TileType, MapRank, Mode>& map, Coordinates<Rank> at, const Given& tile,
                              Policy policy = {}) {
    require_copy<MapMode::im2col, Rank, Given&>(map);
    require_reduction<Operation, TileType>();
    for_each_box<TileType>(tile, at, [&](const void* box, Coordinates<Rank> at) {
        reduce_im2col<Operation>(as_tensor_map(map), at, box, policy);
    });
}

// Prefetches the tile at `at` into L2.
template <typename TileType, int MapRank, MapMode Mode, int Rank, typename Policy = NoCachePolicy>
__device__ void prefetch(const TypedMap<TileType, MapRank, Mode>& map, Coordinates<Rank> at, Policy policy = {}) {
    require_copy<MapMode::tiled, Rank, TileType&>(map);
    for_each_box<TileType>(map, at, [&](const void*, Coordinates<Rank> at) {
        prefetch(as_tensor_map(map), at, policy);
    });
}
template <typename TileType, int MapRank, MapMode Mode, int Rank, int Count, typename Policy = NoCachePolicy>
__device__ void prefetch_im2col(const TypedMap<TileType, MapRank, Mode>& map, Coordinates<Rank> at,
                                Offsets<Count> offsets, Policy policy = {}) {
    require_copy<MapMode::im2col, Rank, TileType&>(map);
    for_each_box<TileType>(map, at, [&](const void*, Coordinates<Rank> at) {
        prefetch_im2col(as_tensor_map(map), at, offsets, policy);
    });
}

}  // namespace cuda_tma
