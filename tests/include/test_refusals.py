"""Tests of mistakes that compile in plain CUDA, but that the device header refuses by a message with a remedy."""

from __future__ import annotations

import re
from functools import cache

import pytest

from tests.include._header import FOLDER, compile_source, cubin, instructions, nvcc, ptx

LOAD = "load(tile, {}, full, Coordinates{{0, x}});"
# The header accepts the arguments in this table, because their types contain less information about the map, the tile
# or the numbers.
RIGHT = {
    "a parameter": LOAD.format("map"),
    "one of two parameters": LOAD.format("(x ? map : other)"),
    "a parameter or memory": LOAD.format("(x ? map : maps[3])"),
    "a member of a parameter": LOAD.format("pair.of[x]"),
    "memory": LOAD.format("maps[x]"),
    "memory, by a pointer in memory": LOAD.format("*table[x]"),
    "a global variable": LOAD.format("in_global"),
    "a constant": LOAD.format("in_constant[x]"),
    "behind a call": "behind_a_call(tile, map, full);",
    "another type's map": LOAD.format("as_tensor_map(twin)"),
    "a tile at an address that was computed": (
        "extern __shared__ char raw[];"
        " load(reinterpret_cast<void*>((reinterpret_cast<unsigned long long>(raw) + 127) / 128 * 128), map, full,"
        " Coordinates{0, x});"
    ),
    "numbers of any width": "load(tile, map, full, Coordinates{y, x ? 0u - 4 : 0ull - 4}); ",
    "a negative coordinate": "constexpr Coordinates at{-4, -70000}; load(tile, map, full, at);",
    "an enumeration, a flag, a character": "load(tile, map, full, Coordinates{LETTER, true, 'c'});",
    "the largest offsets": (
        "load_im2col(tile, map, full, Coordinates{0, 0, 0}, Offsets{65535});"
        "load_im2col(tile, map, full, Coordinates{0, 0, 0, 0}, Offsets{255, x});"
        "load_im2col(tile, map, full, Coordinates{0, 0, 0, 0, 0}, Offsets{31, y, 31u});"
    ),
    "a store in a loop that begins before the tensor": (
        "for (int i = -1; i < 3; ++i) { if (i >= 0) store(map, Coordinates{0, 16 * i}, tile); }"
    ),
    "a barrier of an array": "__shared__ Barrier ring[4]; for (Barrier& each : ring) each.init(1);",
    "rows of a tile": (
        "__shared__ Tile<FLOAT32, Box<64, 32>, SWIZZLE_128B> whole; __shared__ Tile<FLOAT32, Box<5, 32>> plain;"
        " whole.rows<8>(x)(0, x) = whole.rows<8>(56)(7, 1) + plain.rows<2>(3)(0, x);"
        " for (int i = 0; i < 8; ++i) whole.rows<8>(8 * i)(x, 2) = i;"
    ),
    "scales of a cell": (
        "using namespace tcgen05; const Scales<ScaleType::ue8m0> a{{0}}; const Scales<ScaleType::ue4m3> b{{0}};"
        " out[0] = a.skip(3).byte + a.skip(2).skip(x).byte + b.skip(0).byte + b.skip(x).byte;"
    ),
    "shared memory behind a pointer": "load(*tiles, map, full, Coordinates{0, 0});",
}
COPIED = "this_TensorMap_is_a_copy_in_local_memory__declare_the_parameter_as_const___grid_constant___TensorMap"
OUTSIDE = "this_tile_or_Barrier_is_not_in_shared_memory__declare_it_as___shared__"
BEFORE = "a_store_or_reduction_at_a_negative_coordinate_ends_the_kernel__move_the_map_or_store_a_smaller_box"
OFFSET = "an_offset_is_the_position_in_the_filter__from_0_to_65535_in_3D__to_255_in_4D__to_31_in_5D"
ROWS = "rows_begin_and_end_within_the_tile_and_where_a_tile_may_start__with_a_swizzle_at_a_multiple_of_8"
CELL = "a_cell_contains_4_scales__skip_at_most_3_of_ue8m0_and_none_of_ue4m3__later_scales_are_in_another_cell"
SCALES = "const tcgen05::Scales<tcgen05::ScaleType::{}> scales{{{{0}}}}; out[0] = scales.{}.byte;"
WHOLE = "__shared__ Tile<FLOAT32, Box<64, 32>, SWIZZLE_128B> whole; "
WRONG = {
    "scales after the end of a cell": (SCALES.format("ue8m0", "skip(2).skip(2)"), CELL),
    "a part of four scales": (SCALES.format("ue4m3", "skip(2)"), CELL),
    "rows that begin where no tile may": (WHOLE + "whole.rows<8>(4)(x, 0) = 1;", ROWS),
    "rows that end beyond the tile": (WHOLE + "whole.rows<16>(56)(x, 0) = 1;", ROWS),
    "rows of a tile of several boxes": (
        "__shared__ Tile<FLOAT32, Box<64, 64>, SWIZZLE_128B> wide;"
        " load(wide.rows<8>(60), *parts, full, Coordinates{0, 0});",
        ROWS,
    ),
    "a parameter without __grid_constant__": (LOAD.format("copied"), COPIED),
    "in a loop, in a lambda": ("for (int i = 0; i < x; ++i) [&] {" + LOAD.format("copied") + "}();", COPIED),
    "one of two copies": ("TensorMap mine; mine.opaque[x] = 1; " + LOAD.format("(x ? mine : copied)"), COPIED),
    "a variable": ("TensorMap mine; mine.opaque[x] = 1; " + LOAD.format("mine"), COPIED),
    "a store": ("store(copied, Coordinates{0, 0}, tile);", COPIED),
    "a prefetch": ("prefetch_tensor_map(copied);", COPIED),
    "a map by value": ("by_value(map);", "the TMA unit reads a map where it lies: take it as const TensorMap&"),
    "a barrier by value": ("Barrier mine = full;", "a Barrier must stay in shared memory: pass it as Barrier&"),
    "barriers by value": (
        "__shared__ Barrier ring[4]; for (Barrier each : ring) each.init(1);",
        "a Barrier must stay in shared memory: pass it as Barrier&",
    ),
    "a tile by value": ("auto mine = whole_tile(tile);", "a Tile lies in shared memory: take it by reference"),
    "a barrier in local memory": ("Barrier mine; mine.init(1);", OUTSIDE),
    "a tile in local memory": ("float mine[32]; load(mine, map, full, Coordinates{0, 0});", OUTSIDE),
    "a tile in global memory": ("load(out, map, full, Coordinates{0, 0});", OUTSIDE),
    "a destination in global memory": ("load_bulk(out, maps, 1024, full);", OUTSIDE),
    "a fraction": ("load(tile, map, full, Coordinates{1.5f, 2});", "coordinates are integers: elements of the tensor"),
    "a pointer": ("load(tile, map, full, Coordinates{out, 2});", "coordinates are integers"),
    "a coordinate of 34 bits": (
        "load(tile, map, full, Coordinates{1ll << 33, 2});",
        "a_coordinate_has_32_bits_and_counts_elements_from_the_start_of_its_dimension__move_the_map_instead",
    ),
    "a store before the tensor": ("store(map, Coordinates{0, -16}, tile);", BEFORE),
    "a reduction before the tensor": ("reduce<Reduction::add>(map, Coordinates{x, 0, 0u - 1}, tile);", BEFORE),
    "pixels stored before the tensor": ("store_im2col(map, Coordinates{-8, x, x}, tile);", BEFORE),
    "pixels reduced before it": ("reduce_im2col<Reduction::max>(map, Coordinates{0, 0, 0, -1}, tile);", BEFORE),
    "a negative offset": ("load_im2col(tile, map, full, Coordinates{0, 0, 0, 0}, Offsets{-1, 0});", OFFSET),
    "an offset beyond 3-D": ("load_im2col(tile, map, full, Coordinates{0, 0, 0}, Offsets{65536});", OFFSET),
    "an offset beyond 4-D": ("load_im2col(tile, map, full, Coordinates{0, 0, 0, 0}, Offsets{0, 256});", OFFSET),
    "an offset beyond 5-D": ("prefetch_im2col(map, Coordinates{0, 0, 0, 0, 0}, Offsets{0, 0, 32});", OFFSET),
    "a constant offset": ("constexpr Offsets at{-1, 0};", "expression must have a constant value"),
    "an offset that is no integer": (
        "load_im2col(tile, map, full, Coordinates{0, 0, 0}, Offsets{1.f});",
        "offsets are integers: pixels of the filter",
    ),
}


def kernel(statements: list[str]) -> str:
    body = "\n    ".join(f"{{ {statement} }}" for statement in statements)
    return f"""
#include <cuda_tma/tile.cuh>
{"#include <cuda_tma/tcgen05_scaled.cuh>" if "tcgen05" in body else ""}
using namespace cuda_tma;
enum Letter {{ LETTER }};
struct Pair {{ TensorMap of[2]; }};
struct alignas(128) Twin {{ unsigned long long opaque[16]; }};
__device__ TensorMap in_global;
__constant__ TensorMap in_constant[2];
__device__ void by_value(TensorMap) {{}}
__device__ const Tile<FLOAT32, Box<32, 32>>& whole_tile(const void* tile) {{
    return *static_cast<const Tile<FLOAT32, Box<32, 32>>*>(tile);
}}
__noinline__ __device__ void behind_a_call(void* tile, const TensorMap& map, Barrier& full) {{
    load(tile, map, full, Coordinates{{0, 0}});
}}
extern "C" __global__ void kernel(const __grid_constant__ TensorMap map, const __grid_constant__ TensorMap other,
                                  const __grid_constant__ Pair pair, const __grid_constant__ Twin twin,
                                  const TensorMap copied, const TensorMap* maps, const TensorMap* const* table,
                                  float* const* tiles, float* out, int x, long long y,
                                  const TiledMap<Tile<FLOAT32, Box<8, 64>, SWIZZLE_128B>>* parts) {{
    __shared__ alignas(128) float tile[32][32];
    __shared__ Barrier full;
    {body}
}}
"""


def right() -> str:
    """Return all statements that the device header accepts, except a call of by_value."""
    return kernel(list(RIGHT.values())).replace("__device__ void by_value(TensorMap) {}", "")


@pytest.mark.parametrize(
    "options", [(), ("-G",), ("-Ofc=mid",), ("-rdc=true",), ("-Ofc=max", "-DCUDA_TMA_NO_REFUSALS")]
)
def test_right_statements_are_accepted(options):
    compile_source(right(), "sm_90a", options=options)


def test_the_checks_leave_no_instructions():
    """The compile-time checks of the device header add no instruction to a kernel."""
    without = right().replace("#include", "#define CUDA_TMA_NO_REFUSALS\n#include", 1)
    assert instructions(ptx(right())) == instructions(ptx(without))


@cache
def can_ask_what_is_constant() -> bool:
    """Return whether this NVRTC has the builtin function that refuse.cuh uses (13.4 and later)."""
    asked = "#if !__has_builtin(__builtin_constant_p)\n#error\n#endif"
    try:
        compile_source(asked, "sm_90a")
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", WRONG)
def test_a_mistake_is_named(name):
    statement, message = WRONG[name]
    needs_to_ask = "__" in message or name == "a constant offset"
    if needs_to_ask and not can_ask_what_is_constant():
        pytest.skip("this NVRTC lacks the test for constants")
    with pytest.raises(AssertionError, match=message):
        cubin(kernel([statement]), "sm_90a")


def test_every_refusal_is_tested():
    sentences = re.findall(r'CUDA_TMA_REFUSAL\(\w+,\s*"(\w+)', (FOLDER / "refuse.cuh").read_text())
    assert len(sentences) == 7
    for sentence in sentences:
        assert any(sentence.startswith(message) or message.startswith(sentence) for _, message in WRONG.values())


def test_nvcc(tmp_path):
    """With nvcc, only the header's checks of types apply, because host code passes tensor maps by value to kernels."""
    launch = "void launch(const TensorMap& map) { start<<<1, 1>>>(map); }"
    source = f"__global__ void start(const __grid_constant__ TensorMap map) {{ prefetch_tensor_map(map); }}\n{launch}"
    assert nvcc(right() + source, "sm_90a", tmp_path).returncode == 0
    for name, message in (("a fraction", WRONG["a fraction"][1]), ("a barrier by value", "it is a deleted function")):
        assert re.search(message, nvcc(kernel([WRONG[name][0]]), "sm_90a", tmp_path).stderr)
