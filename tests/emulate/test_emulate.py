"""Tests of the emulator against recordings of an H200, and against the definitions of loads, stores and reductions."""

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

from cuda_tma import TensorSpec, create_tensor_map, emulate, params_of
from cuda_tma._data_type import element_bits
from cuda_tma._errors import TensorMapError, TensorMapFault
from cuda_tma.emulate._load import _tfloat32
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import Im2colParams, Im2colWideParams
from cuda_tma.smem import box_extents, smem_bytes, smem_offset, tx_bytes
from cuda_tma.smem._layout import slice_bytes
from cuda_tma.testing import im2col_params, load_cases, tiled_params
from evaluation.recordings.recordings import params_from_recording

RECORDER_FILL = 0xA5
MATRIX = params_of(TensorSpec((6, 24), "uint16"), box_dim=(4, 8))
MEMORY = np.arange(24 * 6, dtype=np.uint16).view(np.uint8)


# Recordings ---------------------------------------------------------------------------------------------------------


def recordings():
    with gzip.open(Path(__file__).parents[1] / "data" / "loads_sm90.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


@pytest.fixture(scope="module")
def recorded_memory():
    """Return the 48 MiB of global memory that the recorder filled."""
    return np.random.Generator(np.random.PCG64(12345)).integers(0, 256, 48 << 20, dtype=np.uint8)


def outcome(row, memory):
    """Return the SHA-256 digests of shared memory and of the written bytes in the recorder's window, or the CUDA
    error."""
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
    """Compute each element's byte offset in shared memory and its global address from the definition. The address is -1
    outside the tensor."""
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
def test_every_element_has_its_swizzled_place(case):
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
    bits = [0x3F801000, 0x3F803000, 0x3F801001, 0x3F800FFF, 0x3F802FFF, 0x00001001, 0xFF7FFFFF]
    rounded = [0x3F800000, 0x3F804000, 0x3F802000, 0x3F800000, 0x3F802000, 0x00002000, 0xFF800000]
    # The conversion does not change infinities and zeros.
    special = [0x7F800000, 0xFF800000, 0x00000000, 0x80000000]
    nans = [0x7F800001, 0xFFC00000, 0xFF800001, 0x7FFFFFFF]
    assert _tfloat32(np.array(bits + special, np.uint32)).tolist() == rounded + special
    assert _tfloat32(np.array(nans, np.uint32)).tolist() == [0x7FFFE000] * 4


@pytest.mark.parametrize("start", [-64, -8, 24, 64])
def test_a_run_outside_the_tensor_reads_nothing(start):
    """The load reads no byte before or after its row, because these bytes belong to other rows or do not exist."""
    for memory in (MEMORY, MEMORY[:0]):
        tile = emulate.load(dataclasses.replace(MATRIX, data_type=T.FLOAT16, oob_fill=1), memory, (start, 2))
        assert (tile.smem.view("<u2") == 0x7FF7).all() and tile.tx_bytes == 64


def test_delivered_elements_are_immutable():
    """The delivered elements are read-only, because all tiles of a tensor map share one array of elements."""
    written = emulate.load(MATRIX, MEMORY, (0, 0)).written
    with pytest.raises(ValueError, match="read-only"):
        written[0] = False


@pytest.mark.parametrize("coordinate", [1, 4, -4, 7])
def test_an_unaligned_start_faults(coordinate):
    with pytest.raises(TensorMapFault, match=rf"coordinates\[0\]={coordinate} is not a multiple of 8 .* use ") as fault:
        emulate.load(MATRIX, MEMORY, (coordinate, 0))
    assert fault.value.cuda_error == "CUDA_ERROR_ILLEGAL_INSTRUCTION"


def test_an_im2col_start_outside_its_box_faults():
    params = im2col()
    with pytest.raises(TensorMapFault, match=r"coordinates\[1\]=7 is outside the pixel box, .* spans -1 to 6"):
        emulate.load(params, np.zeros(4096, np.uint8), (0, 7, 0, 0))


def test_memory_that_is_too_short_faults():
    with pytest.raises(TensorMapFault, match="accesses bytes 96 to 255 of memory, which has 240 bytes") as fault:
        emulate.load(MATRIX, MEMORY[:240], (0, 2))
    assert fault.value.cuda_error == "CUDA_ERROR_ILLEGAL_ADDRESS"
    assert emulate.load(MATRIX, MEMORY[:240], (0, 6)).smem.any() == False  # noqa: E712


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MEMORY, (0,)), r"coordinates=\(0,\) has length 1; it needs length 2"),
        ((MEMORY, (0, 0), (0,)), r"offsets=\(0,\) has length 1; it needs length 0: a tiled access has"),
        ((MEMORY.view(np.uint16), (0, 0)), r"memory is a numpy.ndarray of shape \(144,\) and dtype uint16; pass"),
        ((b"", (0, 0)), "memory is a bytes"),
        ((MEMORY, MEMORY), r"coordinates, a numpy.ndarray of shape \(288,\) and dtype uint8, has .* needs length 2"),
        (
            (MEMORY, MEMORY.reshape(2, 144)),
            r"coordinates is a numpy.ndarray of shape \(2, 144\) and .*; pass 2 integers",
        ),
        ((MEMORY, MEMORY.tolist()), r"coordinates=\(0, 0, 1, 0, 2, 0, \.\.\.\) has length 288; it needs length 2"),
        ((MEMORY, (0.5, 0)), r"coordinates is \(0.5, 0\); pass 2 integers: one for each dimension, innermost first"),
        ((MEMORY, None), "coordinates is None; pass 2 integers"),
        ((MEMORY, (0, 0), MEMORY), r"offsets, a numpy.ndarray of shape \(288,\) .* needs length 0: a tiled access has"),
        ((MEMORY, (0, 0), (), "0"), "base_address is '0'; pass an integer"),
        ((MEMORY, (0, 0), (), MEMORY), r"base_address is a numpy.ndarray of shape \(288,\) .*; pass an integer"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(TensorMapError, match=message):
        emulate.load(MATRIX, *arguments)


def test_a_descriptor_is_not_params_but_has_them(driver, device_tensor):
    descriptor = create_tensor_map(device_tensor((6, 24), dtype="uint16", address=4096), box_dim=(4, 8))
    with pytest.raises(
        TensorMapError, match="params is a cuda_tma.TensorMapDescriptor.*; pass .*`.params` of a descriptor"
    ):
        emulate.load(descriptor, MEMORY, (8, 1), base_address=4096)
    tile = emulate.load(descriptor.params, MEMORY, (8, 1), base_address=4096)
    assert (tile.smem == emulate.load(MATRIX, MEMORY, (8, 1)).smem).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((MEMORY, (2**31, 0)), r"coordinates=\(2147483648, 0\) has a value of more than 32 bits"),
        ((MEMORY, (0, -(10**30))), r"coordinates=\(0, -10{15}.*\) has a value of more than 32 bits"),
    ],
)
def test_coordinates_have_32_bits(arguments, message):
    with pytest.raises(TensorMapError, match=message):
        emulate.load(MATRIX, *arguments)
    for coordinate in (-(2**31), 2**31 - 16):
        assert not emulate.load(MATRIX, MEMORY, (coordinate, coordinate)).smem.any()


@pytest.mark.parametrize("base_address", [10**30, -(10**30), 2**63, 2**62])
def test_a_base_address_far_away_faults(base_address):
    with pytest.raises(TensorMapFault, match="the instruction accesses bytes .* of memory, which has 288 bytes"):
        emulate.load(MATRIX, MEMORY, (0, 0), base_address=base_address)


def test_gather4_names_its_arguments():
    params = dataclasses.replace(MATRIX, box_dim=(16,) * 999)
    with pytest.raises(
        TensorMapError, match=r"params is a cuda_tma.TiledParams of rank 2 with box_dim=\(16, .*\.\.\.\)"
    ):
        emulate.gather4(params, MEMORY, (0, 0, 1, 2, 3))


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64])
def test_coordinates_may_be_an_array(dtype):
    """Coordinates may be integers of any size, because the emulator computes addresses without a limit."""
    tile = emulate.load(MATRIX, MEMORY, np.array([16, 5], dtype))
    assert (tile.smem == emulate.load(MATRIX, MEMORY, (16, 5)).smem).all()
    shifted = emulate.load(im2col(), pixel_memory(), np.array([0, 5, 2, 0], dtype), np.array([1, 1], dtype))
    assert (shifted.smem == emulate.load(im2col(), pixel_memory(), (0, 5, 2, 0), (1, 1)).smem).all()
    assert emulate.tensor_index(MATRIX, np.array([3, 2], dtype), np.array([16, 5], dtype)) == (19, 7)


def test_an_index_has_a_value_for_each_extent():
    with pytest.raises(
        TensorMapError, match=r"index=\(0,\) has length 1; it needs length 2: one for each of box_extents"
    ):
        emulate.tensor_index(MATRIX, (0,), (0, 0))
    with pytest.raises(TensorMapError, match=r"coordinates=\(0, 0, 0\) has length 3; it needs length 2"):
        emulate.tensor_index(MATRIX, (0, 0), (0, 0, 0))


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


# Documented rules without recordings --------------------------------------------------------------------------------


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
    """Return memory in which every pixel of `im2col` contains its own number, so that a tile identifies its pixels."""
    return np.repeat(np.arange(1, 65, dtype=np.uint8), 16)


def test_im2col_walks_w_then_h_then_n():
    tile = emulate.load(im2col(), pixel_memory(), (0, 5, 2, 0), (1, 1))
    # The box covers W from -1 to 6 and H from -1 to 2. With the offsets (1, 1), the box covers W from 0 to 7 and H from
    # 0 to 3.
    assert tile.smem[::16].tolist() == [1 + 3 * 8 + 6, 1 + 3 * 8 + 7, *range(33, 41), 41, 42]


def test_an_index_steps_as_the_load_does():
    """In the driver's arguments, dimension 0 has a stride only in an interleaved layout."""
    strided = dataclasses.replace(MATRIX, element_strides=(2, 3))
    assert emulate.tensor_index(strided, (5, 1), (8, 1)) == (13, 4)
    slices = dataclasses.replace(
        MATRIX,
        global_dim=(8, 6, 2),
        global_strides=(128, 768),
        element_strides=(2, 3, 1),
        interleave=1,
        box_dim=(8, 4, 1),
    )
    assert emulate.tensor_index(slices, (3, 0, 0), (1, 1, 0)) == (7, 1, 0)


def test_an_index_of_an_interleaved_column_names_the_pixel():
    """The test's tensor has the dimensions (W, H, slice of channels, N), and each value is the index of a pixel."""
    params = im2col(global_dim=(8, 4, 3, 2), interleave=1)
    places = [emulate.tensor_index(params, (pixel,), (5, 2, 1, 0), (1, 0)) for pixel in (0, 1, 2, 9, 10)]
    # After the last row of an image, the coordinate H starts again at -1 in the next image.
    assert places == [(6, 2, 1, 0), (7, 2, 1, 0), (0, -1, 1, 1), (7, -1, 1, 1), (0, 0, 1, 1)]


def wide(**changes):
    fields = {name: getattr(im2col(), name) for name in im2col().__dataclass_fields__ if "corner" not in name}
    corners = {"pixel_box_lower_corner_width": 0, "pixel_box_upper_corner_width": 0}
    return Im2colWideParams(**fields | {"swizzle": S.SWIZZLE_128B} | corners | changes)


def test_im2col_wide_keeps_h_and_appends_a_halo():
    tile = emulate.load(wide(pixels_per_column=5), pixel_memory(), (0, 6, 2, 0), (2, 1))
    column = [tile.smem[smem_offset(wide(pixels_per_column=7), (0, pixel))] for pixel in range(7)]
    assert column == [1 + 2 * 8 + 7, 0, *(32 + 1 + 2 * 8 + w for w in (1, 2, 3)), 32 + 16 + 5, 32 + 16 + 6]
    assert tile.tx_bytes == 7 * 16


def wide_column(params, coordinates, offsets, pixels):
    tile = emulate.load(params, pixel_memory(), coordinates, offsets)
    return [int(tile.smem[smem_offset(wide(pixels_per_column=pixels), (0, pixel))]) for pixel in range(pixels)]


def test_im2col_wide_strides_its_halo_too():
    strided = wide(pixels_per_column=3, element_strides=(1, 3, 1, 1))
    row = 1 + 2 * 8
    assert wide_column(strided, (0, 3, 2, 0), (1, 0), 4) == [row + 3, row + 6, 32 + row, 32 + row + 3]


def test_im2col_wide_may_start_left_of_its_box():
    """An im2col wide load may start outside the pixel box. The load then enters the box, and starts each new row at the
    edge of the box."""
    inner = wide(pixels_per_column=6, pixel_box_lower_corner_width=4, pixel_box_upper_corner_width=-1)
    row = 1 + 2 * 8
    assert wide_column(inner, (0, 2, 2, 0), (), 6) == [*(row + w for w in (2, 3, 4, 5, 6)), 32 + row + 4]
    with pytest.raises(TensorMapFault, match=r"coordinates\[1\]=7 is outside the pixel box, .* spans 4 to 6"):
        emulate.load(inner, pixel_memory(), (0, 7, 2, 0))


def test_im2col_wide_w128_has_a_halo_after_every_32_pixels():
    tile = emulate.load(wide(mode=1), pixel_memory(), (0, 0, 0, 0), (3, 0))
    assert tile.tx_bytes == 4 * (32 + 3) * 16
    with pytest.raises(TensorMapError, match="interleave=1 was passed for an im2col-wide map"):
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


def test_gather4_takes_any_four_rows():
    params = dataclasses.replace(MATRIX, box_dim=(8, 1))
    tile = emulate.gather4(params, MEMORY, (8, 5, 0, 9, 3))
    rows = tile.smem.view(np.uint16).reshape(4, 8)
    assert rows[:, 0].tolist() == [5 * 24 + 8, 8, 0, 3 * 24 + 8]
    deep = dataclasses.replace(params, global_dim=(24, 6, 1), global_strides=(48, 288), box_dim=(8, 1, 1))
    for wrong in (MATRIX, dataclasses.replace(params, interleave=1), deep, im2col()):
        with pytest.raises(TensorMapError, match="whose box is one row"):
            emulate.gather4(wrong, MEMORY, (0, 0, 1, 2, 3))
        with pytest.raises(TensorMapError, match="whose box is one row"):
            emulate.scatter4(wrong, MEMORY.copy(), MEMORY, (0, 0, 1, 2, 3))
    with pytest.raises(TensorMapFault, match=r"coordinates\[0\]=4 is not a multiple of 8 elements"):
        emulate.gather4(params, MEMORY, (4, 0, 1, 2, 3))
    with pytest.raises(TensorMapError, match=r"coordinates=\(0, 0\) has length 2; it needs length 5: \(column, row,"):
        emulate.gather4(params, MEMORY, (0, 0))


def test_extents_multiply_to_the_bytes_delivered():
    assert math.prod(box_extents(MATRIX)) * 2 == tx_bytes(MATRIX) == 64
