"""Tests of stores and reductions in the emulator, against recordings of an H200 and against their definitions."""

import dataclasses
import itertools
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from cuda_tma import TensorSpec, emulate, params_of
from cuda_tma._errors import TensorMapError, TensorMapFault
from cuda_tma.emulate._load import _tfloat32
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import Im2colParams, TiledParams
from cuda_tma.smem import box_extents
from cuda_tma.smem._layout import slice_bytes, unit_bytes
from cuda_tma.testing import store_cases, tiled_params

_ROOT = Path(__file__).parents[2]
sys.path.append(str(_ROOT / "evaluation" / "recordings"))

import recordings  # noqa: E402
from replay_stores import replay  # noqa: E402

FAULT = "CUDA_ERROR_ILLEGAL_INSTRUCTION"
MATRIX = params_of(TensorSpec((6, 24), "float16"), box_dim=(4, 8))
IM2COL = Im2colParams(
    data_type=T.UINT32,
    global_address=0,
    global_dim=(4, 4, 3),
    global_strides=(16, 64),
    pixel_box_lower_corner=(1,),
    pixel_box_upper_corner=(-1,),
    channels_per_pixel=4,
    pixels_per_column=4,
    element_strides=(1, 1, 2),
)


# Recordings ---------------------------------------------------------------------------------------------------------


def outcome(row):
    return row.get("fault") or row["memory_sha256"]


def test_every_recorded_store_and_reduction_agrees_byte_for_byte():
    rows = recordings.read(_ROOT / "tests" / "data" / "stores_sm90.jsonl.gz")
    assert [row for row in rows if outcome(replay(row)) != outcome(row)] == []
    assert len(rows) > 400
    assert {row["op"] for row in rows} >= {"store", *emulate.REDUCTIONS}
    stored = {row["params"]["data_type"] for row in rows if row["op"] == "store" and "fault" not in row}
    assert stored == set(range(13))
    computed = {(row["op"], row["params"]["data_type"]) for row in rows if "fault" not in row}
    assert computed >= {(op, t) for op, types in emulate.REDUCTIONS.items() for t in types}


# Stores -------------------------------------------------------------------------------------------------------------


def visited(params, coordinates):
    """Compute the addresses of all elements of the box inside the tensor from the definition."""
    unit = slice_bytes(params) or unit_bytes(params)
    strides = (unit, *params.global_strides)
    indices = [emulate.tensor_index(params, i, coordinates) for i in np.ndindex(*box_extents(params))]
    inside = [at for at in indices if all(0 <= i < n for i, n in zip(at, params.global_dim, strict=True))]
    starts = {params.global_address + sum(i * s for i, s in zip(at, strides, strict=True)) for at in inside}
    return np.array(sorted(starts), np.int64)[:, None] + np.arange(unit)


def whole_chunks(params, elements, size):
    """Return the byte addresses of elements. Without interleave, add the rest of each aligned group of 16 bytes."""
    if params.interleave:
        return elements.ravel()
    chunks = np.unique(elements // 16)[:, None] * 16 + np.arange(16)
    return chunks[chunks < size]


@settings(max_examples=100)
@given(store_cases())
def test_a_stored_tile_reproduces_the_visited_elements_and_changes_no_other_chunk(case):
    params, memory, coordinates = case
    tile = emulate.load(params, memory, coordinates)
    target = np.full_like(memory, 0xCC)
    emulate.store(params, target, tile.smem, coordinates)
    inside = visited(params, coordinates)
    expected = memory[inside]
    if params.data_type in (T.TFLOAT32, T.TFLOAT32_FTZ):
        expected = _tfloat32(expected.view(np.uint32)).view(np.uint8)
    assert (target[inside] == expected).all()
    target[whole_chunks(params, inside, len(target))] = 0xCC
    assert (target == 0xCC).all()


@given(store_cases())
def test_rows_of_whole_chunks_change_no_other_byte(case):
    params, memory, coordinates = case
    if not params.interleave:
        multiple = 16 // unit_bytes(params)
        row = -(-params.global_dim[0] // multiple) * multiple
        params = dataclasses.replace(params, global_dim=(row, *params.global_dim[1:]))
        memory = np.pad(memory, (0, -len(memory) % 16))
    target = np.full_like(memory, 0xCC)
    tile = emulate.load(params, memory, coordinates)
    inside = visited(params, coordinates)
    assert emulate.store(params, target, tile.smem, coordinates) == inside.size
    target[inside] = 0xCC
    assert (target == 0xCC).all()


def test_a_row_is_cut_at_16_bytes_not_at_the_tensor():
    narrow = dataclasses.replace(MATRIX, global_dim=(10, 6), box_dim=(16, 2))
    memory = np.zeros(6 * 48, np.uint8)
    assert emulate.store(narrow, memory, np.arange(1, 65, dtype=np.uint8), (0, 1)) == 2 * 32
    # The store writes 32 bytes of a row, although a row of the tensor has only 20 bytes.
    assert memory[48:96].tolist() == [*range(1, 33), *[0] * 16]
    assert emulate.store(narrow, memory, np.full(64, 99, np.uint8), (8, 5)) == 16
    assert memory[5 * 48 :].tolist() == [0] * 16 + [99] * 16 + [0] * 16


def test_a_chunk_is_dropped_where_memory_ends():
    vector_of_5 = dataclasses.replace(MATRIX, global_dim=(5,), global_strides=(), box_dim=(8,), element_strides=(1,))
    memory = np.zeros(10, np.uint8)
    assert emulate.store(vector_of_5, memory, np.arange(16, dtype=np.uint8), (0,)) == 16
    assert memory.tolist() == list(range(10))
    row = dataclasses.replace(MATRIX, box_dim=(24, 1))
    with pytest.raises(TensorMapFault, match="accesses bytes 0 to 47 of memory, which has 30 bytes"):
        emulate.store(row, np.zeros(30, np.uint8), np.zeros(48, np.uint8), (0, 0))


def test_memory_that_ends_a_whole_chunk_before_the_row_faults():
    vector = dataclasses.replace(MATRIX, global_dim=(24,), global_strides=(), box_dim=(16,), element_strides=(1,))
    for missing in (16, 17, 32):
        short = np.zeros(32 - missing if missing < 32 else 0, np.uint8)
        with pytest.raises(
            TensorMapFault, match=f"accesses bytes 0 to 31 of memory, which has {len(short)} bytes"
        ) as fault:
            emulate.store(vector, short, np.ones(32, np.uint8), (0,))
        assert fault.value.cuda_error == "CUDA_ERROR_ILLEGAL_ADDRESS" and not short.any()
    almost = np.zeros(17, np.uint8)
    assert emulate.store(vector, almost, np.ones(32, np.uint8), (0,)) == 32
    assert almost.all()


def test_the_step_of_images_is_strided():
    memory = np.zeros(3 * 64, np.uint8)
    source = np.repeat(np.arange(1, 5, dtype=np.uint8), 16)
    assert emulate.store(IM2COL, memory, source, (0, 1, 0)) == 4 * 16
    assert memory[::16].reshape(3, 4).tolist() == [[0, 1, 2, 0], [0, 0, 0, 0], [0, 3, 4, 0]]
    assert (emulate.load(IM2COL, memory, (0, 1, 0)).smem == source).all()


def test_base_address_moves_memory_not_the_store():
    moved, base = dataclasses.replace(MATRIX, global_address=0x7F00_0000_0100), 0x7F00_0000_00F0
    source = np.arange(1, 65, dtype=np.uint8)
    expected = np.zeros(16 + 6 * 48, np.uint8)
    emulate.store(MATRIX, expected[16:], source, (8, 1))
    memory = np.zeros_like(expected)
    assert emulate.store(moved, memory, source, (8, 1), base) == 64
    assert memory.tolist() == expected.tolist()
    with pytest.raises(TensorMapFault, match="accesses bytes 80 to 239 of memory, which has 200 bytes"):
        emulate.store(moved, memory[:200], source, (8, 1), base_address=base)
    integers = dataclasses.replace(moved, data_type=T.UINT32, global_dim=(12, 6), box_dim=(4, 4))
    assert emulate.reduce(integers, memory, source, (4, 1), "xor", base) == 64
    assert not memory.any()
    assert emulate.scatter4(dataclasses.replace(moved, box_dim=(8, 1)), memory, source, (8, 1, 2, 3, 4), base) == 64
    assert memory.tolist() == expected.tolist()


def test_scatter4_takes_any_four_rows():
    params = dataclasses.replace(MATRIX, box_dim=(8, 1))
    target = np.zeros(6 * 24, np.uint16)
    source = np.repeat(np.arange(1, 5, dtype=np.uint16), 8)
    assert emulate.scatter4(params, target.view(np.uint8), source.view(np.uint8), (8, 5, 0, 9, 3)) == 3 * 16
    assert target.reshape(6, 24)[:, 8].tolist() == [2, 0, 0, 4, 0, 1]
    assert np.count_nonzero(target) == 24


# Refusals and faults ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "coordinates", "message"),
    [
        (MATRIX, (-8, 0), r"coordinates\[0\]=-8 is negative, but only a load may"),
        (MATRIX, (0, -1), r"coordinates\[1\]=-1 is negative"),
        (MATRIX, (4, 0), r"coordinates\[0\]=4 is not a multiple of 8"),
        (IM2COL, (0, 1, -1), r"coordinates\[2\]=-1 is negative"),
        (IM2COL, (0, 3, 0), r"coordinates\[1\]=3 is outside the pixel box, which spans 1 to 2"),
        (
            dataclasses.replace(IM2COL, pixel_box_lower_corner=(-1,)),
            (0, 1, 0),
            r"pixel_box_lower_corner\[0\]=-1 is outside the tensor, .* lower corners are at least 0",
        ),
        (
            dataclasses.replace(IM2COL, pixel_box_upper_corner=(2,)),
            (0, 1, 0),
            r"pixel_box_upper_corner\[0\]=2 is outside the tensor",
        ),
    ],
)
def test_faults_that_end_a_context(params, coordinates, message):
    memory, smem = np.full(512, 0xCC, np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(TensorMapFault, match=message) as fault:
        emulate.store(params, memory, smem, coordinates)
    assert fault.value.cuda_error == FAULT
    with pytest.raises(TensorMapFault, match=message):
        emulate.reduce(params, memory, smem, coordinates, "add")
    assert (memory == 0xCC).all()


@pytest.mark.parametrize(
    ("op", "data_type", "legal"),
    [
        ("add", T.UINT8, "UINT32, INT32, UINT64, FLOAT16"),
        ("inc", T.INT32, "UINT32"),
        ("xor", T.INT64, "UINT32, INT32, UINT64"),
        ("min", T.FLOAT32, "UINT32, INT32, UINT64, INT64, FLOAT16, BFLOAT16"),
    ],
)
def test_reductions_that_kill_a_context(op, data_type, legal):
    params, memory = vector(data_type, np.uint8, [0] * 16)
    message = f"op='{op}' is not a reduction of data_type {data_type.short_name}; use one of {legal}"
    with pytest.raises(TensorMapFault, match=message) as fault:
        emulate.reduce(params, memory, memory, (0,), op)
    assert fault.value.cuda_error == FAULT


def test_operations_that_do_not_exist():
    params, memory = vector(T.UINT32, np.uint32, [0] * 4)
    with pytest.raises(TensorMapError, match="op='mul' is not known; choose one of 'add', 'min'"):
        emulate.reduce(params, memory.view(np.uint8), memory.view(np.uint8), (0,), "mul")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_type": T.PACKED_16U4_ALIGN16B}, "data_type=16U4_ALIGN16B can only be loaded"),
        ({"swizzle": S.SWIZZLE_128B_ATOM_32B_FLIP_8B}, "swizzle=128B_ATOM_32B_FLIP_8B can only be loaded"),
    ],
)
def test_load_only_maps_refuse_to_store(changes, message):
    with pytest.raises(TensorMapError, match=message):
        emulate.store(dataclasses.replace(MATRIX, **changes), np.zeros(512, np.uint8), np.zeros(512, np.uint8), (0, 0))


@pytest.mark.parametrize("swapped", list(itertools.combinations(range(5), 2)))
def test_swapped_arguments_are_refused_in_a_few_words(swapped):
    """The error for swapped arguments contains the type, shape and dtype of an array instead of the values."""
    arguments = [IM2COL, np.zeros(4096, np.uint8), np.zeros(2048, np.uint8), (0, 1, 0), 16]
    i, j = swapped
    arguments[i], arguments[j] = arguments[j], arguments[i]
    calls = [
        lambda: emulate.store(*arguments),
        lambda: emulate.reduce(*arguments[:4], "add", arguments[4]),
    ]
    # A swap of the two arrays of bytes changes no type, so no call fails.
    for call in calls if swapped != (1, 2) else []:
        with pytest.raises(TensorMapError) as refusal:
            call()
        assert len(str(refusal.value)) < 250
        assert re.search(r"ndarray of shape \((4096|2048),\) and dtype uint8|is (16|\(0, 1, 0\));", str(refusal.value))


@pytest.mark.parametrize(
    ("op", "given"),
    [
        (np.zeros(4096, np.uint8), "op is a numpy.ndarray of shape (4096,) and dtype uint8"),
        (["add"], "op is ['add']"),
        (None, "op is None"),
    ],
)
def test_invalid_operation(op, given):
    params, memory = vector(T.UINT32, np.uint32, [0] * 4)
    with pytest.raises(TensorMapError, match=re.escape(f"{given}; choose one of 'add', 'min'")):
        emulate.reduce(params, memory.view(np.uint8), memory.view(np.uint8), (0,), op)


def test_store_refuses_short_sources_and_read_only_memory():
    memory, smem = np.zeros(288, np.uint8), np.zeros(64, np.uint8)
    with pytest.raises(TensorMapError, match="smem has 63 bytes, but the box takes 64"):
        emulate.store(MATRIX, memory, smem[:63], (0, 0))
    with pytest.raises(TensorMapError, match=r"smem is a numpy.ndarray of shape \(4, 16\) and dtype uint8; pass"):
        emulate.store(MATRIX, memory, smem.reshape(4, 16), (0, 0))
    memory.flags.writeable = False
    with pytest.raises(TensorMapError, match=r"memory is a read-only array, but .* pass a writeable copy"):
        emulate.store(MATRIX, memory, smem, (0, 0))


# Reductions ---------------------------------------------------------------------------------------------------------


@given(store_cases(tiled_params(data_types=(T.UINT32, T.INT32, T.UINT64))))
def test_adding_twice_the_tile_triples_memory(case):
    params, memory, coordinates = case
    tile = emulate.load(params, memory, coordinates)
    dtype = "<u8" if params.data_type == T.UINT64 else "<u4"
    tripled, once = memory.copy(), memory.copy()
    for _ in range(2):
        emulate.reduce(params, tripled, tile.smem, coordinates, "add")
    three = emulate.load(params, tripled, coordinates).smem[tile.written]
    assert (three.view(dtype) == 3 * tile.smem[tile.written].view(dtype)).all()
    emulate.reduce(params, once, tile.smem, coordinates, "xor")
    assert not emulate.load(params, once, coordinates).smem.any()


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
        ("xor", T.UINT64, "<u8", [12, 2**64 - 1], [10, 5], [6, 2**64 - 6]),
    ],
)
def test_reductions_by_hand(op, data_type, dtype, old, new, expected):
    params, memory = vector(data_type, dtype, old)
    assert emulate.reduce(params, memory.view(np.uint8), np.array(new, dtype).view(np.uint8), (0,), op) == memory.nbytes
    assert memory.tolist() == expected


def patterns(text, dtype):
    """Return elements from hexadecimal bit patterns, repeated until they fill 16 bytes."""
    values = [int(word, 16) for word in text.split()]
    return np.array(values * (8 // len(values) if dtype == "<u2" else 1), dtype)


_NANS = "7ff0000000000001 fff8000000000002"
# The reduction of two NaNs returns the NaN from shared memory. The sum of infinity and -infinity is NaN.
_TWO_NANS = "fff0000000000001 fff8000000000000"


# The reduction rounds a tie to the even value. The sum of infinity and -infinity is the canonical NaN. Only the FTZ
# types flush subnormals. The reduction does not change a NaN of FLOAT64. The minimum and maximum of a number and a NaN
# are the number. -0 is less than +0.
@pytest.mark.parametrize(
    ("op", "data_type", "dtype", "old", "new", "expected"),
    [
        ("add", T.FLOAT16, "<u2", "3c00 7c00 0001 8000", "1000 fc00 0001 0000", "3c00 7fff 0002 0000"),
        ("add", T.BFLOAT16, "<u2", "3f80 7f80 0001 3f81", "3b80 ff80 0001 3b80", "3f80 7fff 0002 3f82"),
        ("add", T.FLOAT32, "<u4", "3f800000 1 7f800000 3", "3f800000 1 ff800000 0", "40000000 2 7fffffff 3"),
        ("add", T.TFLOAT32, "<u4", "3f800001 1 7f800001 3", "3f800000 1 3f800000 0", "40000000 2 7fffffff 3"),
        ("add", T.FLOAT32_FTZ, "<u4", "3f800000 1 80000001 3", "3f800000 1 80000001 0", "40000000 0 80000000 0"),
        ("add", T.TFLOAT32_FTZ, "<u4", "3f800000 1 7f800000 3", "3f800000 1 ff800000 0", "40000000 0 7fffffff 0"),
        ("add", T.FLOAT64, "<u8", "1 3ff0000000000000", "2 bff0000000000000", "3 0"),
        ("add", T.FLOAT64, "<u8", "7ff0000000000001 fff0000000000000", "1 fff8000000000002", _NANS),
        ("add", T.FLOAT64, "<u8", "7ff8000000000000 7ff0000000000000", "fff0000000000001 fff0000000000000", _TWO_NANS),
        ("min", T.FLOAT16, "<u2", "0000 7e00 bc00 fe00", "8000 3c00 c000 7e01", "8000 3c00 c000 7fff"),
        ("min", T.FLOAT16, "<u2", "3c00 bc00 4000 0000", "fe00 7e00 fe01 7e01", "3c00 bc00 4000 0000"),
        ("max", T.BFLOAT16, "<u2", "3f80 bf80 4000 8000", "7fc0 ffc0 7fc1 7f81", "3f80 bf80 4000 8000"),
        ("max", T.BFLOAT16, "<u2", "0000 7fc0 bf80 4000", "8000 ff80 c000 7f80", "0000 ff80 bf80 7f80"),
    ],
)
def test_float_reductions_by_bit_pattern(op, data_type, dtype, old, new, expected):
    params, memory = vector(data_type, dtype, patterns(old, dtype))
    emulate.reduce(params, memory.view(np.uint8), patterns(new, dtype).view(np.uint8), (0,), op)
    assert [hex(bits) for bits in memory] == [hex(bits) for bits in patterns(expected, dtype)]


def test_every_row_counts_if_rows_share_memory():
    params = dataclasses.replace(MATRIX, data_type=T.UINT32, global_dim=(4, 4), global_strides=(0,), box_dim=(4, 4))
    memory = np.zeros(4, np.uint32)
    emulate.reduce(params, memory.view(np.uint8), np.arange(16, dtype=np.uint32).view(np.uint8), (0, 0), "add")
    assert memory.tolist() == [24, 28, 32, 36]


@pytest.mark.parametrize("stride", [16, 32, 48])
def test_every_row_counts_if_rows_share_a_part_of_memory(stride):
    params = dataclasses.replace(
        MATRIX, data_type=T.UINT32, global_dim=(8, 4), global_strides=(stride,), box_dim=(8, 4)
    )
    memory = np.zeros(3 * stride // 4 + 8, np.uint32)
    source = np.arange(1, 33, dtype=np.uint32)
    expected = memory.copy()
    for row in range(4):
        expected[row * stride // 4 :][:8] += source[8 * row :][:8]
    assert emulate.reduce(params, memory.view(np.uint8), source.view(np.uint8), (0, 0), "add") == 128
    assert memory.tolist() == expected.tolist()
