"""The emulator against recordings of an H200, and against what loads, stores and reductions must be."""

import dataclasses
import gzip
import hashlib
import json
import math
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cuda_tma import emulate
from cuda_tma.data_type import element_bits
from cuda_tma.emulate._load import _tfloat32
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.errors import TensorMapError, TensorMapFault
from cuda_tma.params import Im2colParams, Im2colWideParams, TiledParams
from cuda_tma.swizzle import box_extents, slice_bytes, smem_bytes, smem_offset, tx_bytes
from cuda_tma.testing import im2col_params, load_cases, params_from_recording, tiled_params

RECORDER_FILL = 0xA5
MATRIX = TiledParams(
    data_type=T.UINT16,
    global_address=0,
    global_dim=(24, 6),
    global_strides=(48,),
    box_dim=(8, 4),
    element_strides=(1, 1),
)
MEMORY = np.arange(24 * 6, dtype=np.uint16).view(np.uint8)


# Recordings ---------------------------------------------------------------------------------------------------------


def recordings():
    with gzip.open(Path(__file__).parent / "data" / "loads_sm90.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def recorded_memory():
    """The 48 MiB that the recorder filled global memory with."""
    return np.random.Generator(np.random.PCG64(12345)).integers(0, 256, 48 << 20, dtype=np.uint8)


def outcome(row, memory):
    """(smem SHA-256, written SHA-256) of the recorder's window, or the CUDA error."""
    params = params_from_recording(row["params"])
    try:
        tile = emulate.load(params, memory, row["coordinates"], row.get("offsets") or (), fill=RECORDER_FILL)
    except TensorMapFault as fault:
        return fault.cuda_error
    smem = np.full(row["window_bytes"], RECORDER_FILL, np.uint8)
    written = np.zeros(row["window_bytes"], np.uint8)
    smem[: tile.smem.size], written[: tile.smem.size] = tile.smem, tile.written
    return tuple(hashlib.sha256(image.tobytes()).hexdigest() for image in (smem, written))


def test_every_recorded_load_agrees_byte_for_byte(recorded_memory):
    rows = recordings()
    expected = [row.get("fault") or (row["smem_sha256"], row["written_mask_sha256"]) for row in rows]
    wrong = [row["params"] for row, want in zip(rows, expected, strict=True) if outcome(row, recorded_memory) != want]
    assert wrong == []
    assert len(rows) > 500
    assert {row["params"]["kind"] for row in rows} == {"tiled", "im2col"}
    assert {row["params"]["data_type"] for row in rows} == set(range(13))


# Loads --------------------------------------------------------------------------------------------------------------


def visited(params, coordinates, offsets=()):
    """Brute force: (byte offsets in shared memory, addresses or -1 outside) of every element, by the definition."""
    unit = slice_bytes(params) or element_bits(params.data_type) // 8
    strides = (unit, *params.global_strides)
    places, addresses = [], []
    for index in np.ndindex(*box_extents(params)):
        at = emulate.tensor_index(params, index, coordinates, offsets)
        inside = all(0 <= i < n for i, n in zip(at, params.global_dim, strict=True))
        places.append(smem_offset(params, index))
        addresses.append(sum(i * s for i, s in zip(at, strides, strict=True)) if inside else -1)
    return unit, np.array(places), np.array(addresses)


@settings(max_examples=60)
@given(load_cases(st.one_of(tiled_params(interleaves=(0, 1)), im2col_params())))
def test_every_element_lies_where_swizzle_says(case):
    params, memory, coordinates, offsets = case
    tile = emulate.load(params, memory, coordinates, offsets)
    unit, places, addresses = visited(params, coordinates, offsets)
    found = tile.smem[places[:, None] + np.arange(unit)]
    assert tile.written[places[:, None] + np.arange(unit)].all()
    inside = addresses >= 0
    if params.data_type not in (T.TFLOAT32, T.TFLOAT32_FTZ):
        assert (found[inside] == memory[params.global_address + addresses[inside, None] + np.arange(unit)]).all()
    fill = np.tile([0xF7, 0x7F] if params.oob_fill else [0, 0], unit)[:unit]
    assert (found[~inside] == fill).all()


@given(load_cases(), st.integers(0, 255))
def test_mask_count_and_footprint(case, fill):
    params, memory, coordinates, offsets = case
    tile = emulate.load(params, memory, coordinates, offsets, fill=fill)
    assert tile.tx_bytes == tile.written.sum() == tx_bytes(params)
    assert tile.smem.size == tile.written.size == smem_bytes(params)
    assert (tile.smem[~tile.written] == fill).all()


def test_base_address_moves_memory_not_the_tile():
    moved = dataclasses.replace(MATRIX, global_address=0x7F00_0000_0100)
    tile = emulate.load(moved, np.pad(MEMORY, (16, 0)), (8, 1), base_address=0x7F00_0000_00F0)
    assert (tile.smem == emulate.load(MATRIX, MEMORY, (8, 1)).smem).all()
    assert tile.smem.view(np.uint16)[:3].tolist() == [32, 33, 34]


def test_tfloat32_rounds_ties_to_even_and_has_one_nan():
    bits = np.array([0x3F801000, 0x3F803000, 0x3F801001, 0x7F800001, 0xFFC00000, 0x00001001, 0xFF7FFFFF], np.uint32)
    rounded = [0x3F800000, 0x3F804000, 0x3F802000, 0x7FFFE000, 0x7FFFE000, 0x00002000, 0xFF800000]
    assert _tfloat32(bits).tolist() == rounded


@pytest.mark.parametrize("coordinate", [1, 4, -4, 7])
def test_an_unaligned_start_faults(coordinate):
    with pytest.raises(TensorMapFault, match=rf"coordinates\[0\]={coordinate} is not a multiple of 8 .* use ") as fault:
        emulate.load(MATRIX, MEMORY, (coordinate, 0))
    assert fault.value.cuda_error == "CUDA_ERROR_ILLEGAL_INSTRUCTION"


def test_an_im2col_start_outside_its_box_faults():
    params = im2col()
    with pytest.raises(TensorMapFault, match=r"coordinates\[1\]=7 starts outside the pixel box, which spans -1 to 6"):
        emulate.load(params, np.zeros(4096, np.uint8), (0, 7, 0, 0))


def test_memory_that_is_too_short_faults():
    with pytest.raises(TensorMapFault, match="reaches bytes 96 to 255 of memory, which holds 240") as fault:
        emulate.load(MATRIX, MEMORY[:240], (0, 2))
    assert fault.value.cuda_error == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert emulate.load(MATRIX, MEMORY[:240], (0, 6)).smem.any() == False  # noqa: E712  nothing inside: nothing read


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MEMORY, (0,)), r"coordinates=\(0,\) has 1 values, and needs 2"),
        ((MEMORY, (0, 0), (0,)), r"offsets=\(0,\) has 1 values, and needs 0: a tiled access has none"),
        ((MEMORY.view(np.uint16), (0, 0)), "memory is an array of 1 dimensions of uint16; give .* 1-D uint8"),
        ((b"", (0, 0)), "memory is a bytes"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(TensorMapError, match=message):
        emulate.load(MATRIX, *arguments)


def test_speed():
    params = dataclasses.replace(
        MATRIX,
        data_type=T.BFLOAT16,
        global_dim=(512, 512),
        global_strides=(1024,),
        box_dim=(64, 64),
        swizzle=S.SWIZZLE_128B,
    )
    memory = np.zeros(512 * 1024, np.uint8)
    durations = []
    for _ in range(50):
        start = time.perf_counter()
        emulate.load(params, memory, (64, 64))
        durations.append(time.perf_counter() - start)
    assert min(durations) < 200e-6


# Documented, not recorded -------------------------------------------------------------------------------------------


def im2col(**changes):
    fields = {
        "data_type": T.UINT8,
        "global_address": 0,
        "global_dim": (16, 8, 4, 2),
        "global_strides": (16, 128, 512),
        "pixel_box_lower_corner": (-1, -1),
        "pixel_box_upper_corner": (-1, -1),
        "channels_per_pixel": 16,
        "pixels_per_column": 12,
        "element_strides": (1, 1, 1, 1),
    }
    return Im2colParams(**fields | changes)


def pixel_memory():
    """Every pixel of `im2col` holds its own number, so that a tile names its pixels."""
    return np.repeat(np.arange(1, 65, dtype=np.uint8), 16)


def test_im2col_walks_w_then_h_then_n():
    tile = emulate.load(im2col(), pixel_memory(), (0, 5, 2, 0), (1, 1))
    # box: W -1..6, H -1..2; offsets (1, 1): W 0..7, H 0..3
    assert tile.smem[::16].tolist() == [1 + 3 * 8 + 6, 1 + 3 * 8 + 7, *range(33, 41), 41, 42]


def wide(**changes):
    fields = {name: getattr(im2col(), name) for name in im2col().__dataclass_fields__ if "corner" not in name}
    corners = {"pixel_box_lower_corner_width": 0, "pixel_box_upper_corner_width": 0}
    return Im2colWideParams(**fields | {"swizzle": S.SWIZZLE_128B} | corners | changes)


def test_im2col_wide_keeps_h_and_appends_a_halo():
    tile = emulate.load(wide(pixels_per_column=5), pixel_memory(), (0, 6, 2, 0), (2, 1))
    column = [tile.smem[smem_offset(wide(pixels_per_column=7), (0, pixel))] for pixel in range(7)]
    assert column == [1 + 2 * 8 + 7, 0, *(32 + 1 + 2 * 8 + w for w in (1, 2, 3)), 32 + 16 + 5, 32 + 16 + 6]
    assert tile.tx_bytes == 7 * 16


def test_im2col_wide_w128_has_a_halo_after_every_32_pixels():
    tile = emulate.load(wide(mode=1), pixel_memory(), (0, 0, 0, 0), (3, 0))
    assert tile.tx_bytes == 4 * (32 + 3) * 16
    with pytest.raises(TensorMapError, match="interleave=1: im2col-wide has no interleaved layouts"):
        emulate.load(wide(interleave=1), pixel_memory(), (0, 0, 0, 0))


@pytest.mark.parametrize(("data_type", "data", "taken"), [(13, 8, 8), (14, 8, 16), (15, 12, 16)])
def test_packed_groups_and_their_gaps(data_type, data, taken):
    row_bytes = 128 * element_bits(data_type) // 8
    params = dataclasses.replace(
        MATRIX, data_type=data_type, global_dim=(128, 2), global_strides=(row_bytes,), box_dim=(128, 2)
    )
    memory = np.arange(2 * row_bytes, dtype=np.uint8)
    tile = emulate.load(params, memory, (0, 0), fill=0xEE)
    groups = tile.smem.reshape(-1, taken)
    assert (groups[:, :data].ravel() == memory).all()
    assert (groups[:, data:] == 0xEE).all()
    assert tile.tx_bytes == tile.written.sum() == 2 * row_bytes
    if taken > data:
        with pytest.raises(TensorMapFault, match="not a multiple of 128 elements"):
            emulate.load(params, memory, (64, 0))


def test_gather4_and_scatter4_take_any_four_rows():
    params = dataclasses.replace(MATRIX, box_dim=(8, 1))
    tile = emulate.gather4(params, MEMORY, (8, 5, 0, 9, 3))
    rows = tile.smem.view(np.uint16).reshape(4, 8)
    assert rows[:, 0].tolist() == [5 * 24 + 8, 8, 0, 3 * 24 + 8]
    target = np.zeros_like(MEMORY)
    assert emulate.scatter4(params, target, tile.smem, (8, 5, 0, 9, 3)) == 3 * 16
    wrote = target.view(np.uint16).reshape(6, 24)
    assert wrote[:, 8].tolist() == [8, 0, 0, 80, 0, 128]
    assert np.count_nonzero(wrote) == 24
    with pytest.raises(TensorMapError, match="need a tiled tensor map of rank 2 whose box is one row"):
        emulate.gather4(MATRIX, MEMORY, (0, 0, 1, 2, 3))


# Stores and reductions ----------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(load_cases())
def test_a_stored_tile_changes_the_visited_elements_and_no_other_byte(case):
    params, memory, coordinates, _ = case
    tile = emulate.load(params, memory, coordinates)
    target = np.full_like(memory, 0xCC)
    count = emulate.store(params, target, tile.smem, coordinates)
    unit, _, addresses = visited(params, coordinates)
    inside = params.global_address + addresses[addresses >= 0, None] + np.arange(unit)
    expected = np.full_like(memory, 0xCC)
    expected[inside] = memory[inside]
    if params.data_type in (T.TFLOAT32, T.TFLOAT32_FTZ):
        expected[inside] = _tfloat32(memory[inside].view(np.uint32)).view(np.uint8)
    assert (target == expected).all()
    assert count == len(np.unique(inside))


@given(load_cases(tiled_params(data_types=(T.UINT32, T.INT32, T.UINT64))), st.integers(0, 2**16))
def test_adding_twice_the_tile_triples_memory(case, seed):
    params, memory, coordinates, _ = case
    plain = dataclasses.replace(params, oob_fill=0)
    tile = emulate.load(plain, memory, coordinates)
    dtype = "<u8" if params.data_type == T.UINT64 else "<u4"
    tripled, once = memory.copy(), memory.copy()
    for _ in range(2):
        emulate.reduce(plain, tripled, tile.smem, coordinates, "add")
    three = emulate.load(plain, tripled, coordinates).smem[tile.written]
    assert (three.view(dtype) == 3 * tile.smem[tile.written].view(dtype)).all()
    emulate.reduce(plain, once, tile.smem, coordinates, "xor")
    assert not emulate.load(plain, once, coordinates).smem.any()


def vector(data_type, dtype, old):
    params = TiledParams(
        data_type=data_type,
        global_address=0,
        global_dim=(len(old),),
        global_strides=(),
        box_dim=(len(old),),
        element_strides=(1,),
    )
    return params, np.array(old, dtype)


@pytest.mark.parametrize(
    ("op", "data_type", "dtype", "old", "new", "expected"),
    [
        ("add", T.INT32, "<i4", [2**31 - 1, -1, 5, 0], [1, 1, -7, 0], [-(2**31), 0, -2, 0]),
        ("min", T.INT32, "<i4", [-1, 3, 0, 2], [1, -3, 0, 1], [-1, -3, 0, 1]),
        ("min", T.UINT32, "<u4", [2**32 - 1, 3, 0, 2], [1, 4, 0, 1], [1, 3, 0, 1]),
        ("max", T.INT64, "<i8", [-1, 3], [-2, 2**62], [-1, 2**62]),
        ("inc", T.UINT32, "<u4", [0, 4, 5, 2**32 - 1], [5, 5, 5, 5], [1, 5, 0, 0]),
        ("dec", T.UINT32, "<u4", [0, 4, 5, 6], [5, 5, 5, 5], [5, 3, 4, 5]),
        ("and", T.UINT64, "<u8", [12, 2**63 + 1], [10, 2**63], [8, 2**63]),
        ("or", T.INT32, "<i4", [12, 0, -1, 1], [10, 0, 5, 2], [14, 0, -1, 3]),
        ("xor", T.INT64, "<i8", [12, -1], [10, 5], [6, -6]),
    ],
)
def test_reductions_by_hand(op, data_type, dtype, old, new, expected):
    params, memory = vector(data_type, dtype, old)
    assert emulate.reduce(params, memory.view(np.uint8), np.array(new, dtype).view(np.uint8), (0,), op) == memory.nbytes
    assert memory.tolist() == expected


def patterns(text, dtype):
    """Eight elements or four, from hexadecimal bit patterns."""
    values = [int(word, 16) for word in text.split()]
    return np.array(values * (8 // len(values) if dtype == "<u2" else 1), dtype)


# Half an ulp ties to even; infinity - infinity is the one NaN; only the FTZ type flushes subnormals; a number wins over
# a NaN; -0 is less than +0.
@pytest.mark.parametrize(
    ("op", "data_type", "dtype", "old", "new", "expected"),
    [
        ("add", T.FLOAT16, "<u2", "3c00 7c00 0001 8000", "1000 fc00 0001 0000", "3c00 7fff 0002 0000"),
        ("add", T.BFLOAT16, "<u2", "3f80 7f80 0001 3f81", "3b80 ff80 0001 3b80", "3f80 7fff 0002 3f82"),
        ("add", T.FLOAT32, "<u4", "3f800000 1 7f800000 3", "3f800000 1 ff800000 0", "40000000 2 7fffffff 3"),
        ("add", T.FLOAT32_FTZ, "<u4", "3f800000 1 80000001 3", "3f800000 1 80000001 0", "40000000 0 80000000 0"),
        ("min", T.FLOAT16, "<u2", "0000 7e00 bc00 fe00", "8000 3c00 c000 7e01", "8000 3c00 c000 7fff"),
        ("max", T.BFLOAT16, "<u2", "0000 7fc0 bf80 4000", "8000 ff80 c000 7f80", "0000 ff80 bf80 7f80"),
    ],
)
def test_float_reductions_by_bit_pattern(op, data_type, dtype, old, new, expected):
    params, memory = vector(data_type, dtype, patterns(old, dtype))
    emulate.reduce(params, memory.view(np.uint8), patterns(new, dtype).view(np.uint8), (0,), op)
    assert [hex(bits) for bits in memory] == [hex(bits) for bits in patterns(expected, dtype)]


def test_every_row_counts_where_rows_share_memory():
    params = dataclasses.replace(MATRIX, data_type=T.UINT32, global_dim=(4, 4), global_strides=(0,), box_dim=(4, 4))
    memory = np.zeros(4, np.uint32)
    emulate.reduce(params, memory.view(np.uint8), np.arange(16, dtype=np.uint32).view(np.uint8), (0, 0), "add")
    assert memory.tolist() == [24, 28, 32, 36]


@pytest.mark.parametrize(
    ("op", "data_type", "message"),
    [
        ("mul", T.UINT32, "op='mul' is no TMA reduction; choose one of 'add', 'min'"),
        ("add", T.UINT8, "op='add' has no reduction of data_type UINT8 .* use one of UINT32, INT32, UINT64, FLOAT16"),
        ("inc", T.INT32, "op='inc' has no reduction of data_type INT32 .* use one of UINT32"),
    ],
)
def test_reductions_that_do_not_exist(op, data_type, message):
    params, memory = vector(data_type, np.uint8, [0] * 16)
    with pytest.raises(TensorMapError, match=message):
        emulate.reduce(params, memory, memory, (0,), op)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_type": T.PACKED_16U4_ALIGN16B}, "data_type=16U4_ALIGN16B can only be loaded"),
        ({"swizzle": S.SWIZZLE_128B_ATOM_32B_FLIP_8B}, "swizzle=128B_ATOM_32B_FLIP_8B can only be loaded"),
    ],
)
def test_load_only_maps_refuse_to_store(changes, message):
    with pytest.raises(TensorMapError, match=message):
        emulate.store(dataclasses.replace(MATRIX, **changes), MEMORY.copy(), np.zeros(512, np.uint8), (0, 0))


def test_store_refuses_short_sources_and_read_only_memory():
    with pytest.raises(
        TensorMapError, match=r"smem is an array of 1 dimensions of uint8, 63 long; .* at least 64 bytes"
    ):
        emulate.store(MATRIX, MEMORY.copy(), np.zeros(63, np.uint8), (0, 0))
    frozen = MEMORY.copy()
    frozen.flags.writeable = False
    with pytest.raises(TensorMapError, match=r"memory is a read-only array; .* pass a writeable copy"):
        emulate.store(MATRIX, frozen, np.zeros(64, np.uint8), (0, 0))


def test_extents_multiply_to_the_bytes_delivered():
    assert math.prod(box_extents(MATRIX)) * 2 == tx_bytes(MATRIX) == 64
