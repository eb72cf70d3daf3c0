"""Tests of suggested boxes, which are legal, cover the tile, and have the largest legal size."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma._data_type import element_bits
from cuda_tma._errors import TensorMapError
from cuda_tma._options import TensorMapOptions
from cuda_tma._suggest import suggest
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import TiledParams
from cuda_tma.rules import check
from cuda_tma.smem import bank_conflicts, smem_bytes

SM90_TYPES = [t for t in T if t <= T.TFLOAT32_FTZ]


def params_of(options):
    """Return the tensor map params of a large tensor with given options."""
    rank = len(options.box_dim)
    return TiledParams(
        data_type=options.data_type,
        global_address=0,
        global_dim=(1024,) * rank,
        global_strides=(8192,) * (rank - 1),
        box_dim=options.box_dim[::-1],
        element_strides=(1,) * rank,
        swizzle=options.swizzle,
    )


def test_options_suggest_themselves():
    expected = suggest((256, 96), "float16", access="column").options
    assert TensorMapOptions.suggest((256, 96), "float16", access="column") == expected
    assert (expected.box_dim, expected.swizzle) == ((256, 64), S.SWIZZLE_128B)


@settings(max_examples=60)
@given(
    st.one_of(*(st.tuples(*[st.integers(1, n)] * rank) for rank, n in ((1, 600), (2, 600), (3, 40), (5, 6)))),
    st.sampled_from(SM90_TYPES),
    st.sampled_from(["ldmatrix", "column", "row"]),
)
def test_boxes_are_legal_and_cover_the_tile(shape, data_type, access):
    found = suggest(shape, data_type, access=access)
    params = params_of(found.options)
    assert check(params) == ()
    assert smem_bytes(params) <= 227 * 1024
    for n, count, box in zip(shape, found.loads, found.options.box_dim, strict=True):
        assert (count - 1) * box < n <= count * box
    assert f"{smem_bytes(params)} bytes of shared memory" in found.reasons[-1]


@settings(max_examples=40)
@given(st.integers(1, 300), st.integers(1, 300), st.sampled_from(SM90_TYPES))
def test_no_other_swizzle_conflicts_less(rows, columns, data_type):
    found = suggest((rows, columns), data_type)
    best = bank_conflicts(params_of(found.options), "ldmatrix")
    unit = element_bits(data_type) // 8
    for swizzle, span in ((S.NONE, 256 * unit), (S.SWIZZLE_32B, 32), (S.SWIZZLE_64B, 64), (S.SWIZZLE_128B, 128)):
        width = min(span, -(-columns * unit // 16) * 16) // unit
        options = dataclasses.replace(found.options, swizzle=swizzle, box_dim=(found.options.box_dim[0], width))
        assert best <= bank_conflicts(params_of(options), "ldmatrix")


@pytest.mark.parametrize(
    ("shape", "dtype", "box", "swizzle", "loads"),
    [
        ((128, 64), "bfloat16", (128, 64), S.SWIZZLE_128B, (1, 1)),
        ((128, 128), "bfloat16", (128, 64), S.SWIZZLE_128B, (1, 2)),
        ((64, 32), "float16", (64, 32), S.SWIZZLE_64B, (1, 1)),
        ((64, 8), "float32", (64, 8), S.SWIZZLE_32B, (1, 1)),
        ((64, 4), "float32", (64, 4), S.NONE, (1, 1)),
        ((64, 1, 64), "bfloat16", (64, 1, 64), S.SWIZZLE_128B, (1, 1, 1)),
        ((512, 16), "uint8", (256, 16), S.NONE, (2, 1)),
        ((300, 64), "bfloat16", (150, 64), S.SWIZZLE_128B, (2, 1)),
        ((4, 64, 64, 64), "float32", (1, 22, 64, 32), S.SWIZZLE_128B, (4, 3, 1, 2)),
    ],
)
def test_by_hand(shape, dtype, box, swizzle, loads):
    found = suggest(shape, dtype)
    assert (found.options.box_dim, found.options.swizzle, found.loads) == (box, swizzle, loads)


def test_integers_of_any_kind():
    wanted = suggest((200, 250), "float32")
    for kind in (np.int64, np.uint8):
        assert (
            suggest(tuple(map(kind, (200, 250))), "float32")
            == suggest(np.array((200, 250), kind), np.int64(7))
            == wanted
        )
    assert {*map(type, (*wanted.options.box_dim, *wanted.loads))} == {int}
    assert suggest((8, 8), "uint8", smem_limit_bytes=np.int32(1 << 10), compute_capability="sm_90a") == suggest(
        (8, 8), 0
    )


def test_reasons():
    assert suggest((257, 33), "float32").reasons == (
        "swizzle='NONE': ldmatrix reads are free of bank conflicts (ways: NONE 1, 32B 1, 64B 1, 128B 1), in 2 loads",
        "shape[0]=257 takes 2 loads of 129, 1 beyond the tile: each dimension of a box has at most 256 elements",
        "shape[1]=33 is not a whole number of 16 bytes: the box takes 36 elements",
        "one load delivers 18576 bytes (expect_tx) into 18576 bytes of shared memory, aligned to 128",
    )
    column = suggest((128, 32), "float32", access="column", smem_limit_bytes=8192)
    assert column.reasons[:2] == (
        "swizzle='128B': column reads conflict 4 ways, the fewest possible (ways: NONE 32, 32B 4, 64B 4, 128B 4), "
        "in 2 loads",
        "shape[0]=128 takes 2 loads of 64: a longer box does not fit into shared memory",
    )


@pytest.mark.parametrize(("data_type", "width"), [(13, 256), (14, 128), (15, 128)])
def test_packed_types_on_devices_that_have_them(data_type, width):
    found = suggest((64, 256), T(data_type), compute_capability=(10, 0))
    assert found.options.box_dim == (64, width)
    assert found.options.swizzle == S.SWIZZLE_128B
    assert math.prod(found.loads) == 256 // width


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (((), "float32"), {}, r"shape=\(\) is not a tile; pass 1 to 5 extents"),
        (((8, 0), "float32"), {}, r"shape=\(8, 0\) is not a tile"),
        (((8, 8), "16U4_ALIGN16B"), {}, r"no box of dtype 16U4_ALIGN16B for shape=\(8, 8\) .* capability 9\.0 "),
        (((8, 8), "float32"), {"smem_limit_bytes": 8}, "within smem_limit_bytes=8; choose .* a smaller tile"),
        (((8, 8), "float32"), {"access": "diagonal"}, "access='diagonal' is not known"),
        (((1,) * 6, "float32"), {}, r"shape=\(1, 1, 1, 1, 1, 1\) is not a tile"),
        ((64, "float32"), {}, "shape is 64; pass 1 to 5 integers, one for each dimension"),
        (((8, 8.0), "float32"), {}, r"shape is \(8, 8.0\); pass"),
        (((8, 8), "float32"), {"smem_limit_bytes": 1e5}, "smem_limit_bytes is 100000.0; pass an integer"),
        (((8, 8), "float32"), {"compute_capability": ()}, r"compute_capability is \(\); pass \(major, minor\)"),
        (((8, 8), "float32"), {"compute_capability": 90}, "compute_capability is 90; pass"),
        (
            ((8, 8), None),
            {},
            "dtype=None is neither a dtype nor a TensorMapDataType; choose one of int8, .*, TFLOAT32, ",
        ),
        (((8, 8), "float4_e2m1fn_x2"), {}, 'can be moved in three ways; pass dtype= to choose one: "UINT8"'),
        (((8, 8), "complex128"), {}, "the elements are complex128, .* pass dtype= to choose a type"),
    ],
)
def test_refusals(arguments, options, message):
    with pytest.raises(TensorMapError, match=message):
        suggest(*arguments, **options)


def test_a_long_tile_is_cut_as_fast_as_a_short_one():
    """A search that cuts the tile step by step would need 2^28 steps, or 2^55 steps for a tile that no tensor
    contains."""
    found = suggest((2**32, 64), "uint8", smem_limit_bytes=1024)
    assert found.options.box_dim == (16, 64) and found.loads == (2**28, 1)
    with pytest.raises(TensorMapError, match="no box of"):
        suggest((2**63 - 1, 64), "uint8", smem_limit_bytes=1024)
