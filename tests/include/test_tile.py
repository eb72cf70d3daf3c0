"""Tests of tile.cuh, whose types describe the same tensor maps as the package."""

from __future__ import annotations

import itertools
import math
from random import Random

import pytest

from benchmarks.nvrtc import TYPED_LOAD
from cuda_tma import smem
from cuda_tma._compile.nvrtc import compile_source
from cuda_tma._map_type import MapType
from cuda_tma.emulate import REDUCTIONS
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import TiledParams
from tests.include._header import OFFSETS, POLICIES, TARGETS, cubin, defined_in, instructions, nvcc, ptx, words
from tests.include._header import REDUCTIONS as OPERATIONS
from tests.support.machine_code import machine_code

USING = "#include <cuda_tma/pipeline.cuh>\n#include <cuda_tma/tile.cuh>\nusing namespace cuda_tma;\n"


def cpp_type(data_type: T) -> str:
    """Return the C++ name of a data type, such as U4_ALIGN8B, because a C++ name cannot start with a digit."""
    return data_type.short_name.removeprefix("16")


def cpp_swizzle(swizzle: S) -> str:
    return swizzle.name if swizzle else "SWIZZLE_NONE"


def tile_type(data_type: T, box: tuple[int, ...], swizzle: S = S.NONE) -> str:
    """Return the C++ type Tile for a box in tensor order."""
    return f"Tile<{cpp_type(data_type)}, Box<{', '.join(map(str, box))}>, {cpp_swizzle(swizzle)}>"


def params_of_box(data_type: T, box: tuple[int, ...], swizzle: S) -> TiledParams:
    """Return tensor map parameters with a given box, for an arbitrary tensor."""
    ones = (1,) * len(box)
    return TiledParams(
        data_type=data_type, global_address=0, global_dim=ones, global_strides=ones[1:], box_dim=box[::-1],
        element_strides=ones, swizzle=swizzle,
    )  # fmt: skip


# The list contains tiles of one box for every type, rank and swizzle. Rows of some tiles fill the span of the swizzle.
ONE_BOX = [
    *((t, (3, 256), S.NONE) for t in T if t < T.PACKED_16U4_ALIGN16B),
    *((t, (5, 128), s) for t in (T.PACKED_16U4_ALIGN16B, T.PACKED_16U6_ALIGN16B) for s in (S.NONE, S.SWIZZLE_128B)),
    *((T.PACKED_16U4_ALIGN8B, (9, width), s) for width, s in ((32, S.SWIZZLE_32B), (256, S.SWIZZLE_128B))),
    *((T.UINT8, (24, smem.pattern(s).span_bytes), s) for s in S if s),
    *((T.FLOAT64, (7, 2), s) for s in S if s),
    *((t, (16, 16), s) for t in (T.BFLOAT16, T.UINT32, T.INT64) for s in (S.NONE, S.SWIZZLE_128B)),
    *((T.FLOAT32, (8, 2, 3, 2, 16)[-rank:], s) for rank in range(1, 6) for s in (S.NONE, S.SWIZZLE_64B)),
]
# The list contains tiles that are wider than a span, with the width of the map's box.
SEVERAL = [
    (T.BFLOAT16, (128, 128), S.SWIZZLE_128B, 64),
    (T.BFLOAT16, (20, 96), S.SWIZZLE_128B, 64),
    (T.UINT8, (3, 5, 100), S.SWIZZLE_32B, 32),
    (T.FLOAT32, (64, 64), S.SWIZZLE_128B, 32),
    (T.FLOAT64, (2, 2, 2, 2, 40), S.SWIZZLE_64B, 8),
    (T.PACKED_16U4_ALIGN8B, (8, 512), S.SWIZZLE_128B, 256),
    (T.PACKED_16U6_ALIGN16B, (8, 256), S.SWIZZLE_128B, 128),
    (T.UINT16, (4, 600), S.SWIZZLE_128B_ATOM_64B, 64),
]


def agreement(data_type: T, box: tuple[int, ...], swizzle: S, box_width: int) -> list[str]:
    """Return C++ conditions that compare a tile's constants and some offsets with the package's values."""
    params = params_of_box(data_type, (*box[:-1], box_width), swizzle)
    boxes, alignment = -(-box[-1] // box_width), smem.smem_alignment(params)
    box_bytes = -(-smem.smem_bytes(params) // alignment) * alignment
    name = tile_type(data_type, box, swizzle)
    constants = {
        "data_type": int(data_type), "swizzle": int(swizzle), "rank": len(box), "width": box[-1],
        "row_count": math.prod(box[:-1]), "box_width": box_width, "boxes": boxes, "alignment": alignment,
        "box_bytes": box_bytes, "bytes": boxes * box_bytes, "tx_bytes": boxes * smem.tx_bytes(params),
    }  # fmt: skip
    checks = [f"{name}::{constant}() == {value}" for constant, value in constants.items()]
    checks += [f"sizeof({name}) == {boxes * box_bytes}", f"alignof({name}) == {alignment}"]
    checks += [f"{name}::extent({i}) == {extent}" for i, extent in enumerate(box)]
    draw = Random(0)
    for _ in range(8):
        index = tuple(draw.randrange(extent) for extent in box)
        number, column = divmod(index[-1], box_width)
        offset = number * box_bytes + smem.smem_offset(params, (column, *index[-2::-1]))
        checks.append(f"{name}::offset({', '.join(map(str, index))}) == {offset}")
    return checks


def test_constants_are_the_packages():
    """A tile's constants in C++ equal the package's values, for every data type, rank and swizzle."""
    rows = [*((*one, one[1][-1]) for one in ONE_BOX), *SEVERAL]
    checks = [check for row in rows for check in agreement(*row)]
    assert {row[0] for row in rows} == set(T) and {row[2] for row in rows} == set(S)
    cubin(USING + "\n".join(f"static_assert({check});" for check in checks), "sm_90a")
    wrong = "static_assert(Tile<UINT8, Box<3, 5, 100>, SWIZZLE_32B>::offset(1, 2, 99) == 0);"
    with pytest.raises(AssertionError, match="static assertion failed"):
        cubin(USING + wrong, "sm_90a")


def test_enums_are_the_drivers():
    from cuda_tma.enums import TensorMapL2Promotion, TensorMapOOBFill

    names = {cpp_type(t): t for t in T}
    names |= {"L2_PROMOTION_" + promotion.short_name: promotion for promotion in TensorMapL2Promotion}
    names |= {"OOB_FILL_NONE": TensorMapOOBFill.NONE, "OOB_FILL_NAN": TensorMapOOBFill.NAN}
    cubin(USING + "\n".join(f"static_assert({name} == {value:d});" for name, value in names.items()), "sm_90a")


def test_every_reduction_that_hardware_has():
    rows = [
        f"static_assert(has_reduction(Reduction::{op}, {cpp_type(t)}) == "
        f"{str(t in REDUCTIONS[op.removeprefix('bit_')]).lower()});"
        for op, t in itertools.product(OPERATIONS, T)
    ]
    cubin(USING + "\n".join(rows), "sm_90a")


# ---- copies ----

_AT = {1: "x", 2: "x, y", 3: "x, y, 4", 4: "x, y, 0, 1", 5: "x, y, 0, 1, 2u"}
# Each box has 1024 bytes.
_BOX = {1: "256", 2: "4, 64", 3: "2, 2, 64", 4: "1, 2, 2, 64", 5: "1, 2, 1, 2, 64"}
# The data type UINT32 supports every reduction.
_TYPE = "UINT32"


def copies(rank: int, *, im2col: bool = False, tile: str = "tile", at: str = "") -> list[str]:
    """Return every function that copies a tile, with and without a cache policy."""
    mode, at = "_im2col" if im2col else "", f"Coordinates{{{at or _AT[rank]}}}"
    load_at = f"{at}, Offsets{{{OFFSETS[rank]}}}" if im2col else at
    return [
        statement
        for policy in POLICIES
        for statement in (
            f"load{mode}({tile}, map, full, {load_at}{policy});",
            f"load{mode}_multicast({tile}, map, full, {load_at}, 3{policy});",
            f"store{mode}(map, {at}, {tile}{policy});",
            f"prefetch{mode}(map, {load_at}{policy});",
            *(f"reduce{mode}<Reduction::{op}>(map, {at}, {tile}{policy});" for op in OPERATIONS),
        )
    ]


def kernel(parameter: str, tile: str, statements: list[str]) -> str:
    return f"""{USING}
extern "C" __global__ void kernel(const __grid_constant__ {parameter} map, int x, unsigned y, unsigned* out) {{
    __shared__ {tile};
    __shared__ Barrier full;
    full.init(1);
    {" ".join(statements)}
}}
"""


@pytest.mark.parametrize(("rank", "im2col"), [*((r, False) for r in range(1, 6)), *((r, True) for r in (3, 4, 5))])
def test_typed_copies_are_the_untyped_ones(rank, im2col):
    """The copies of tile.cuh and of tma.cuh have equal instructions and constants."""
    box = "4, 64" if im2col else _BOX[rank]
    tile = f"Tile<{_TYPE}, Box<{box}>>"
    statements = copies(rank, im2col=im2col)
    parameter = f"Im2colMap<{tile}, {rank}>" if im2col else f"TiledMap<{tile}>"
    typed = ptx(kernel(parameter, f"{tile} tile", ["full.arrive_expect_tx(tile); full.expect_tx(tile);", *statements]))
    untyped = ["full.arrive_expect_tx(1024); full.expect_tx(1024);", *statements]
    plain = ptx(kernel("TensorMap", "alignas(128) unsigned char tile[1024]", untyped))
    assert instructions(typed) == instructions(plain)
    assert typed.count("cp.") == len(statements)


@pytest.mark.parametrize(("rows", "name", "offsets"), [(8, "tile", (0, 1024)), (32, "tile.rows<8>(16)", (2048, 6144))])
def test_a_wide_tile_consists_of_boxes(rows, name, offsets):
    """In a tile of two boxes with 32 columns, the second box is 128 * rows bytes after the first box. The machine code
    of a tile's copy equals the code of two copies."""
    tiles = [f"Tile<UINT32, Box<{extent}, 64>, SWIZZLE_128B>" for extent in (8, rows)]
    parts = (copies(2, tile=f"(tile + {offset})", at=f"x + {32 * i}, y") for i, offset in enumerate(offsets))
    for typed, *untyped in [*zip(copies(2, tile=name), *parts, strict=True)][:5]:
        if not typed.startswith("prefetch"):
            typed = kernel(f"TiledMap<{tiles[0]}>", f"{tiles[1]} tile", [f"full.expect_tx({name});", typed])
            untyped = kernel(
                "TensorMap", "alignas(1024) unsigned char tile[8192]", ["full.expect_tx(2048);", *untyped]
            ).replace("8192", str(256 * rows))
            assert ptx(typed).count("cp.") == 2
            assert machine_code(cubin(typed, "sm_90a")) == machine_code(cubin(untyped, "sm_90a"))


@pytest.mark.parametrize("target", TARGETS)
def test_everything_compiles(target):
    """Each function of tile.cuh compiles for every rank, also on targets without architecture-specific instructions."""
    kernels = []
    for rank in range(1, 6):
        tile = f"Tile<{_TYPE}, Box<{_BOX[rank]}>>"
        body = copies(rank)
        kernels.append(
            f"__global__ void tiled{rank}(const __grid_constant__ TiledMap<{tile}> map, int x, unsigned y) "
            f"{{ __shared__ {tile} tile; __shared__ Barrier full; {' '.join(body)} }}"
        )
    tile = f"Tile<{_TYPE}, Box<4, 64>>"
    for rank in (3, 4, 5):
        body = copies(rank, im2col=True)
        kernels.append(
            f"__global__ void im2col{rank}(const __grid_constant__ Im2colMap<{tile}, {rank}> map, int x, unsigned y) "
            f"{{ __shared__ {tile} tile; __shared__ Barrier full; {' '.join(body)} }}"
        )
    kernels.append(USE)
    assert cubin(USING + "\n".join(kernels), target).startswith(b"\x7fELF")


USE = """
using Wide = Tile<BFLOAT16, Box<64, 128>, SWIZZLE_128B>;
using Plain = Tile<FLOAT32, Box<64, 32>>;
using Swizzled = Tile<TFLOAT32, Box<64, 32>, SWIZZLE_128B>;
__global__ void use(const __grid_constant__ TiledMap<Wide, OOB_FILL_NAN, L2_PROMOTION_256B> map, int x, unsigned y,
                    unsigned* out) {
    __shared__ Wide wide;
    __shared__ Plain plain;
    __shared__ Swizzled swizzled;
    __shared__ Pipeline<2> ring;
    Stage<2> at;
    const Plain& constant = plain;
    load(wide, map, ring.acquire(at, wide, plain), Coordinates{x, y});
    prefetch_tensor_map(map);
    ring.full[0].expect_tx(plain, wide);
    plain(y, x) = swizzled(x, y) + constant(x, y);
    swizzled.as<float4>(y, x) = constant.as<float4>(x, y);
    wide.box(1).rows<8>(y)(x, 2) = plain.rows<3>(5)(x, y);
    out[0] = wide.address(y, x) + Wide::offset(y, x);
}
"""


def test_nvcc(tmp_path):
    """The host pass of nvcc parses the types and kernels of typed tiles."""
    done = nvcc(USING + USE, "sm_90a", tmp_path)
    assert done.returncode == 0, done.stderr


def test_nothing_but_machine_code_is_emitted():
    """Types and constants of tiles add no global variable to a module."""
    text = ptx(USING + TYPED_LOAD)
    assert ".entry kernel" in text and ".global ." not in text.replace("shared::cluster.global.", "")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("load(other, map, full, Coordinates{x, y});", "the map moves another tile: pass the Tile of its type"),
        ("load(raw, map, full, Coordinates{x, y});", "the map moves another tile"),
        ("load(raw + 128, map, full, Coordinates{x, y});", "the map moves another tile"),
        ("load(as_const(tile), map, full, Coordinates{x, y});", "the map moves another tile"),
        ("load(tile.rows<8>(8), map, full, Coordinates{x, y});", "the map moves another tile"),
        ("load(tile, map, full, Coordinates{x});", "one coordinate for each dimension of the map"),
        ("load_multicast(other, map, full, Coordinates{x, y}, 3);", "the map moves another tile"),
        ("load_im2col(tile, map, full, Coordinates{x, y}, Offsets{1});", "an Im2colMap is for load_im2col"),
        ("store(map, Coordinates{x, y}, other);", "the map moves another tile"),
        ("store(map, Coordinates{x, y}, raw);", "the map moves another tile"),
        ("reduce<Reduction::add>(map, Coordinates{x, y}, other);", "the map moves another tile"),
        ("reduce<Reduction::min>(map, Coordinates{x, y}, tile);", "the data type has no such reduction"),
        ("store(overhang_map, Coordinates{x, y}, overhang);", "would write what is not the tile's"),
        ("prefetch(map, Coordinates{x, y, 0});", "one coordinate for each dimension"),
        ("tile(1);", "one index for each dimension of the tile"),
        ("tile.as<Sixteen<UINT8>[32]>(1, 1);", "a swizzle keeps no more together than 16 bytes"),
        ("tile.rows<4>(8);", "they end where no tile may start"),
        ("tile.rows<72>(0);", "rows: the tile has fewer"),
        ("load(overhang.rows<8>(0), overhang_map, full, Coordinates{x, y});", "the map moves another tile"),
        ("full.arrive_expect_tx(raw);", "no instance of overloaded function"),
        ("TiledMap<Tile<FLOAT32, Box<8, 3>>> narrow;", "a multiple of 16 bytes"),
        ("TiledMap<Tile<UINT8, Box<257, 16>>> high;", "at most 256 elements"),
        ("Im2colMap<Tile<UINT8, Box<8, 8, 16>>, 4> cube;", "im2col: a tile is Box<pixels_per_column"),
        ("Im2colMap<Tile<UINT8, Box<8, 16>>, 2> flat;", "im2col: 3 to 5 dimensions"),
        ("Tile<UINT8, Box<1, 1, 1, 1, 1, 16>> deep;", "a tensor map has 1 to 5 dimensions"),
        ("Tile<UINT8, Box<0, 16>> empty;", "an extent of a box is 1 or more"),
        ("Tile<UINT8, Box<16, 16>> copy = bytes;", "deleted"),
    ],
)
def test_misuse_is_named(statement, message):
    source = f"""{USING}
using Tile64 = Tile<FLOAT32, Box<64, 32>, SWIZZLE_128B>;
using Overhang = Tile<FLOAT32, Box<64, 40>, SWIZZLE_128B>;
template <typename Value> __device__ const Value& as_const(Value& value) {{ return value; }}
extern "C" __global__ void kernel(const __grid_constant__ TiledMap<Tile64> map,
                                  const __grid_constant__ TiledMap<Overhang> overhang_map, int x, int y) {{
    __shared__ Tile64 tile;
    __shared__ Tile<TFLOAT32, Box<64, 32>, SWIZZLE_128B> other;   // C++ accepts its elements as the same type
    __shared__ Tile<UINT8, Box<16, 16>> bytes;
    __shared__ Overhang overhang;
    __shared__ alignas(1024) char raw[8192];
    __shared__ Barrier full;
    {statement}
}}
"""
    with pytest.raises(AssertionError, match=message):
        cubin(source, "sm_90a")


def test_nothing_is_left_out():
    """The tests of this module call each copy of tile.cuh and each function of a tile, because the compiler skips a
    function without a call."""
    defined = {name for name in defined_in("tile.cuh") if name.startswith(("load", "store", "reduce", "prefetch"))}
    assert len(defined) == 10 and defined <= words([*copies(2), *copies(3, im2col=True)])
    assert {"as", "address", "rows", "box", "offset"} <= words([USE])


def test_tiles_contain_and_copy_their_elements(monkeypatch):
    """The simulator runs some of the cases that tests/gpu/typed_tiles.py runs on a GPU."""
    pytest.importorskip("torch")
    from tests.gpu import typed_tiles
    from tests.support.simulated_examples import simulated

    for name, value in simulated().items():
        monkeypatch.setattr(typed_tiles, name, value)
    for one in [*typed_tiles.tiles()][::5]:
        typed_tiles.through(None, *one)
    for width, swizzle in ((64, "SWIZZLE_64B"), (128, "SWIZZLE_128B"), (32, "SWIZZLE_NONE")):
        typed_tiles.in_parts(None, width, swizzle)


def test_the_host_reads_the_types():
    """Python reads the types of tiles from an extern "C" kernel's parameters. The boxes and byte counts equal the
    header's values."""
    maps = [
        MapType(mode="tiled", tile_dim=box, data_type=t, swizzle=s, oob_fill=1 - i % 2, l2_promotion=i % 4)
        for i, (t, box, s, *_) in enumerate([*ONE_BOX, *SEVERAL])
    ]
    maps += [MapType(mode="im2col", rank=rank, tile_dim=(128, 96), data_type=T.UINT16, swizzle=1) for rank in (3, 4, 5)]
    parameters = ", ".join(f"const __grid_constant__ {map_type} m{i}" for i, map_type in enumerate(maps))
    checks = [
        f"static_assert({tile}::box_width() == {m.box_dim[-1]} && {tile}::boxes() == {m.box_count} && "
        f"{tile}::tx_bytes() == {m.tx_bytes});"
        for m, tile in ((m, tile_type(m.data_type, m.tile_dim, m.swizzle)) for m in maps)
    ]
    source = f"""{USING}{" ".join(checks)}
extern "C" __global__ void plain({parameters}) {{}}
template <int N, typename... Ts> __global__ void twice(TiledMap<Tile<UINT8, Box<2 * N, 16>>> map, Ts... others) {{}}
"""
    compiled = compile_source(source, "plain", target="compute_90a")
    assert compiled.types == tuple(maps)
    compiled = compile_source(source, "twice<4, float, Im2colMap<Tile<UINT8, Box<8, 16>>, 4>>", target="compute_90a")
    tile = {"tile_dim": (8, 16), "data_type": T.UINT8}
    expected = MapType(mode="tiled", **tile), "float", MapType(mode="im2col", rank=4, **tile)
    assert compiled.types == expected
