"""Tests of the emulator with illegal tensor maps, boxes that are too large, and addresses beyond 64 bits."""

import dataclasses
import re
import tracemalloc

import numpy as np
import pytest

from cuda_tma import check, emulate
from cuda_tma import smem as smem
from cuda_tma._errors import TensorMapError, TensorMapFault
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle as S
from cuda_tma.params import Im2colWideParams
from cuda_tma.smem import _layout
from tests.emulate._limits import IM2COL, MATRIX, MEMORY, changed

ROW = dataclasses.replace(MATRIX, box_dim=(8, 1))
WIDE = Im2colWideParams(
    **{f.name: getattr(IM2COL, f.name) for f in dataclasses.fields(IM2COL) if "corner" not in f.name},
    pixel_box_lower_corner_width=0,
    pixel_box_upper_corner_width=0,
)
WIDE = dataclasses.replace(WIDE, swizzle=S.SWIZZLE_128B)


# Maps that every driver refuses -------------------------------------------------------------------------------------

EVERY_ACCESS = {
    "load": lambda p, **options: emulate.load(p, MEMORY, (0, 0), **options).tx_bytes,
    "gather4": lambda p, **options: emulate.gather4(p, MEMORY, (0, 0, 1, 2, 3), **options).tx_bytes,
    "store": lambda p, **options: emulate.store(p, MEMORY.copy(), MEMORY, (0, 0), **options),
    "scatter4": lambda p, **options: emulate.scatter4(p, MEMORY.copy(), MEMORY, (0, 0, 1, 2, 3), **options),
    "reduce": lambda p, **options: emulate.reduce(p, MEMORY.copy(), MEMORY, (0, 0), "add", **options),
}


@pytest.mark.parametrize("access", EVERY_ACCESS)
def test_a_map_that_no_driver_takes_is_refused_unless_check_is_off(access):
    odd = changed(ROW, data_type=T.UINT32, global_dim=(10, 6), global_strides=(40,), box_dim=(8, 1))
    with pytest.raises(TensorMapError) as refusal:
        EVERY_ACCESS[access](odd)
    assert str(refusal.value) == (
        "no driver accepts this tensor map:\nglobal_strides[0]=40 must be a multiple of 16. Use 48."
    )
    assert [violation.rule for violation in refusal.value.violations] == ["global_strides_alignment"]
    rows = 4 if access.endswith("4") else 1
    assert EVERY_ACCESS[access](odd, check=False) == rows * 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"global_strides": (50,)}, r"global_strides\[0\]=50 must be a multiple of 16"),
        ({"box_dim": (300, 300)}, r"box_dim\[0\]=300 must be 1 to 256.*\nbox_dim\[1\]=300 must be 1 to 256"),
        ({"box_dim": (0, 16)}, r"box_dim\[0\]=0 must be 1 to 256"),
        ({"box_dim": (-16, 16)}, r"box_dim\[0\]=-16 must be 1 to 256"),
        ({"global_dim": (), "global_strides": (), "box_dim": (), "element_strides": ()}, "rank=0 must be 1 to 5"),
        ({"global_address": 8}, "global_address=8 must be a multiple of 16"),
        ({"global_address": 1 << 64}, "global_address=18446744073709551616 must be 0 to "),
        ({"global_address": -16}, "global_address=-16 must be 0 to"),
        (
            {"global_dim": (24,), "global_strides": (), "box_dim": (8,), "element_strides": (1,), "interleave": 1},
            "rank",
        ),
        ({"oob_fill": 1}, "oob_fill=1 must be"),
        ({"swizzle": 7}, "swizzle=7 must be 0 to 6"),
    ],
)
def test_every_rule_of_the_driver_is_one_of_the_emulator(changes, message):
    params = changed(**changes)
    with pytest.raises(TensorMapError, match=f"^no driver accepts this tensor map:\n{message}"):
        emulate.load(params, MEMORY, (0,) * params.rank)


def test_maps_of_compute_capability_10_are_emulated():
    atoms = changed(swizzle=S.SWIZZLE_128B_ATOM_32B)
    assert check(atoms, (9, 0)) and not check(atoms, (10, 0))
    assert emulate.load(atoms, MEMORY, (0, 0)).tx_bytes == 64


@pytest.mark.parametrize("align", [16, 32])
def test_each_address_is_checked_separately(align):
    """The emulator's cache has one result for all addresses that are equal modulo 32. The emulator must therefore check
    each other address."""
    params = MATRIX if align == 16 else PACKED
    memory = np.zeros(1 << 12, np.uint8)
    for address in (0, 16, 32, 48, 1024, 1040, 8, 40):
        moved = changed(params, global_address=address)
        if address % align:
            with pytest.raises(TensorMapError, match=f"global_address={address} must be a multiple of {align}"):
                emulate.load(moved, memory, (0, 0))
        else:
            assert emulate.load(moved, memory, (0, 0)).tx_bytes == smem.tx_bytes(params)


PACKED = changed(data_type=T.PACKED_16U4_ALIGN16B, global_dim=(128, 6), global_strides=(64,), box_dim=(128, 4))


# Invalid boxes and oversized boxes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"box_dim": (0, 16)},
            r"box_dim=\(0, 16\) and element_strides=\(1, 1\) are not a box of rank 2; give one of ea",
        ),
        ({"box_dim": (-16, 16)}, r"box_dim=\(-16, 16\) and .* are not a box of rank 2"),
        ({"box_dim": (16, -1)}, r"box_dim=\(16, -1\) and .* are not a box of rank 2"),
        ({"element_strides": (1, -1)}, r".* and element_strides=\(1, -1\) are not a box of rank 2"),
        ({"element_strides": (0, 1)}, r".* and element_strides=\(0, 1\) are not a box of rank 2"),
        ({"global_dim": (24,)}, r"box_dim=\(8, 4\) and .* are not a box of rank 1"),
        (
            {"global_dim": (), "global_strides": (), "box_dim": (), "element_strides": ()},
            r"box_dim=\(\) and element_strides=\(\) are not a box of rank 0; .* from 1 on, for each of 1 or more",
        ),
        (
            {"global_dim": (24,), "global_strides": (), "box_dim": (8,), "element_strides": (1,), "interleave": 1},
            r"box_dim=\(8,\) and .* are not a box of rank 1; .* for each of 2 or more dimensions with an inter",
        ),
        (
            {"data_type": T.PACKED_16U4_ALIGN8B, "box_dim": (8, 4)},
            "a row of the box has 8 elements of 16U4_ALIGN8B; ",
        ),
    ],
)
def test_invalid_box(changes, message):
    params = changed(**changes)
    calls = [
        smem.tx_bytes,
        smem.smem_bytes,
        _layout.rows,
        lambda p: smem.bank_conflicts(p, "row"),
        lambda p: emulate.load(p, MEMORY, (0,) * p.rank, check=False),
    ]
    if "data_type" not in changes:
        calls += [smem.box_extents, lambda p: emulate.tensor_index(p, (0,) * p.rank, (0,) * p.rank)]
    for call in calls:
        with pytest.raises(TensorMapError, match=f"^{message}"):
            call(params)


@pytest.mark.parametrize("changes", [{"channels_per_pixel": 0}, {"pixels_per_column": 0}, {"pixels_per_column": -5}])
def test_invalid_column(changes):
    given = {"channels_per_pixel": 16, "pixels_per_column": 12} | changes
    message = "channels_per_pixel={} and pixels_per_column={} are not a column; give 1 or more".format(*given.values())
    for params in (changed(IM2COL, **changes), changed(WIDE, **changes)):
        for call in (smem.box_extents, smem.smem_bytes, lambda p: emulate.load(p, MEMORY, (0,) * 4, check=False)):
            with pytest.raises(TensorMapError, match=f"^{message}"):
                call(params)


GIANT = changed(
    data_type=T.UINT8,
    global_dim=(256,) * 5,
    global_strides=(256, 1 << 16, 1 << 24, 1 << 32),
    box_dim=(256,) * 5,
    element_strides=(1,) * 5,
)
# The driver accepts the map DENSE, because it computes floor(7 / 8) = 0 elements in dimension 4.
DENSE = changed(GIANT, box_dim=(256, 256, 256, 256, 7), element_strides=(1, 1, 1, 1, 8))


@pytest.mark.parametrize(
    ("call", "size"),
    [
        (lambda: emulate.load(GIANT, MEMORY, (0,) * 5, check=False), 1 << 40),
        (lambda: emulate.load(DENSE, MEMORY, (0,) * 5), 1 << 32),
        (lambda: emulate.store(DENSE, MEMORY.copy(), MEMORY, (0,) * 5), 1 << 32),
        (lambda: emulate.reduce(changed(DENSE, data_type=T.UINT32), MEMORY.copy(), MEMORY, (0,) * 5, "or"), 1 << 34),
        (lambda: emulate.load(changed(IM2COL, pixels_per_column=1 << 39), MEMORY, (0,) * 4, check=False), 1 << 43),
        (lambda: emulate.load(WIDE, MEMORY, (0,) * 4, (65535, 0)), (12 + 65535) * 128),
        (lambda: smem.bank_conflicts(GIANT, "column"), 1 << 40),
        (lambda: smem.worst_read(DENSE, "row"), 1 << 32),
    ],
)
def test_a_box_beyond_shared_memory_is_refused_before_anything_is_made(call, size):
    tracemalloc.start()
    try:
        with pytest.raises(TensorMapError) as refusal:
            call()
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert str(refusal.value) == (
        f"the box takes {size} bytes of shared memory, but a thread block has at most 232448; "
        "divide the box among several loads"
    )


def test_the_largest_box_is_emulated_and_no_larger_one():
    """The largest box that the emulator accepts has 227 KiB, although the driver also accepts a box of 228 KiB."""
    largest = changed(
        MATRIX, data_type=T.UINT8, global_dim=(256, 256, 4), global_strides=(256, 65536), box_dim=(256, 227, 4)
    )
    largest = changed(largest, element_strides=(1, 1, 1))
    memory = np.ones(4 * 65536, np.uint8)
    assert emulate.load(largest, memory, (0, 0, 0)).smem.sum() == _layout.MAX_SMEM_BYTES == 227 * 1024
    larger = changed(largest, box_dim=(256, 228, 4))
    assert not check(larger)
    with pytest.raises(TensorMapError, match="the box takes 233472 bytes of shared memory"):
        emulate.load(larger, memory, (0, 0, 0))
    rows = changed(larger, global_dim=(256, 4096), global_strides=(256,), element_strides=(1, 1), box_dim=(256, 1))
    assert emulate.gather4(rows, memory, (0, 0, 1, 2, 3)).tx_bytes == 1024


@pytest.mark.parametrize("name", ["global_dim", "global_strides", "element_strides", "box_dim"])
def test_without_a_check_numbers_are_those_that_fields_can_hold(name):
    params = changed(**{name: ((1 << 40) + 1,) if name == "global_strides" else (16, (1 << 40) + 1)})
    with pytest.raises(TensorMapError, match=rf"^{name}=.*1099511627777.* has more than 40 bits, the most"):
        emulate.load(params, MEMORY, (0, 0), check=False)
    if name != "box_dim":
        fits = changed(**{name: (1 << 40,) if name == "global_strides" else (16, 1 << 40)})
        tile = emulate.load(changed(fits, box_dim=(8, 1)), MEMORY, (0, 0), check=False)
        assert (tile.smem == MEMORY[:16]).all()


# Fill ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (256, "fill=256 is not a byte; pass 0 to 255"),
        (-1, "fill=-1 is not a byte; pass 0 to 255"),
        (1.5, "fill is 1.5; pass an integer"),
        (float("nan"), "fill is nan; pass an integer"),
        ("a", "fill is 'a'; pass an integer"),
        (None, "fill is None; pass an integer"),
    ],
)
def test_invalid_fill(fill, message):
    """The emulator refuses an invalid fill even if the box has no elements outside the tensor."""
    for params in (MATRIX, changed(swizzle=3)):
        with pytest.raises(TensorMapError, match=f"^{re.escape(message)}$"):
            emulate.load(params, MEMORY, (0, 0), fill=fill)
    with pytest.raises(TensorMapError, match=f"^{re.escape(message)}$"):
        emulate.gather4(ROW, MEMORY, (0, 0, 1, 2, 3), fill=fill)


@pytest.mark.parametrize("fill", [0, 255, np.uint8(255), True])
def test_a_fill_is_any_byte(fill):
    tile = emulate.load(changed(swizzle=1), MEMORY, (0, 0), fill=fill)
    assert (tile.smem[~tile.written] == int(fill)).all()
    rows = emulate.gather4(changed(ROW, swizzle=1), MEMORY, (0, 0, 1, 2, 3), fill=fill)
    assert (rows.smem[~rows.written] == int(fill)).all() and rows.written.sum() == 64


# Addresses beyond 64 bits -------------------------------------------------------------------------------------------

# FAR is the largest legal stride in bytes.
FAR = (1 << 40) - 16
TALL = changed(global_dim=(24, 1 << 32), global_strides=(FAR,))
CUBE = changed(
    global_dim=(8,) + (1 << 32,) * 4, global_strides=(FAR,) * 4, box_dim=(8, 1, 1, 1, 2), element_strides=(1,) * 5
)
TALL_IM2COL = changed(IM2COL, global_dim=(16, 8, 4, 1 << 32), global_strides=(16, 128, FAR))


@pytest.mark.parametrize(
    ("call", "reached"),
    [
        (lambda: emulate.load(TALL, MEMORY, (0, 1 << 24)), (FAR << 24, FAR * ((1 << 24) + 3) + 15)),
        (lambda: emulate.load(TALL, MEMORY, (0, 2**31 - 1)), (FAR * (2**31 - 1), FAR * (2**31 + 2) + 15)),
        (
            lambda: emulate.load(changed(TALL, global_address=1 << 60), MEMORY, (0, 0)),
            (1 << 60, (1 << 60) + 3 * FAR + 15),
        ),
        (
            lambda: emulate.load(changed(TALL, global_address=(1 << 64) - 16), MEMORY, (0, 0)),
            ((1 << 64) - 16, (1 << 64) + 3 * FAR - 1),
        ),
        (
            lambda: emulate.load(CUBE, MEMORY, (0,) + (2**31 - 1,) * 4),
            (4 * FAR * (2**31 - 1), FAR * (4 * (2**31 - 1) + 1) + 15),
        ),
        (
            lambda: emulate.gather4(changed(TALL, box_dim=(8, 1)), MEMORY, (0, 0, 1, 2, 1 << 30)),
            (0, FAR * (1 << 30) + 15),
        ),
        (
            lambda: emulate.load(TALL_IM2COL, MEMORY, (0, 0, 0, 1 << 30)),
            (FAR * (1 << 30), FAR * (1 << 30) + 11 * 16 + 15),
        ),
        (lambda: emulate.store(TALL, MEMORY.copy(), MEMORY, (0, 1 << 24)), (FAR << 24, FAR * ((1 << 24) + 3) + 15)),
        (
            lambda: emulate.scatter4(changed(TALL, box_dim=(8, 1)), MEMORY.copy(), MEMORY, (0, 0, 1, 2, 1 << 30)),
            (0, FAR * (1 << 30) + 15),
        ),
    ],
)
def test_an_access_far_beyond_memory_faults(call, reached):
    first, last = reached
    with pytest.raises(TensorMapFault, match=f"the instruction accesses bytes {first} to {last} of memory, which has"):
        call()


def test_an_access_outside_the_tensor_is_filled_however_far():
    low, high = -(2**31), 2**31 - 16
    strided = changed(MATRIX, global_strides=(FAR,))
    for at in ((0, high), (0, low), (high, high), (low, low)):
        assert not emulate.load(strided, MEMORY, at).smem.any()
        nan = changed(strided, data_type=T.FLOAT16, oob_fill=1)
        assert (emulate.load(nan, MEMORY, at).smem.view("<u2") == 0x7FF7).all()
    assert not emulate.gather4(changed(strided, box_dim=(8, 1)), MEMORY, (0, high, low, high, low)).smem.any()
    images = changed(IM2COL, global_strides=(16, 128, FAR))
    for image in (low, high):
        assert not emulate.load(images, MEMORY, (0, 0, 0, image)).smem.any()
    target = MEMORY.copy()
    assert emulate.store(strided, target, MEMORY, (0, high)) == 0
    assert (target == MEMORY).all()


def test_a_part_of_a_tensor_of_more_than_64_bits_is_read():
    """The first bytes of the tensor are in memory, and a load of these bytes needs no other bytes."""
    tile = emulate.load(changed(TALL, box_dim=(8, 1)), MEMORY, (8, 0))
    assert (tile.smem == MEMORY[16:32]).all()
    cube = emulate.load(changed(CUBE, box_dim=(8, 1, 1, 1, 1)), MEMORY, (0,) * 5, base_address=0)
    assert (cube.smem == MEMORY[:16]).all()
    pixels = emulate.load(changed(TALL_IM2COL, pixels_per_column=3), MEMORY, (0, 2, 0, 0))
    assert (pixels.smem == MEMORY[32:80]).all()
    same = emulate.gather4(changed(TALL, box_dim=(8, 1)), MEMORY, (8, 0, 0, -1, 0))
    assert (same.smem.reshape(4, 16)[[0, 1, 3]] == MEMORY[16:32]).all() and not same.smem[32:48].any()


def test_memory_may_have_any_address():
    high = changed(global_address=(1 << 64) - 4096)
    tile = emulate.load(high, MEMORY, (8, 1), base_address=(1 << 64) - 4096)
    assert (tile.smem == emulate.load(MATRIX, MEMORY, (8, 1)).smem).all()


# Offsets ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [IM2COL, WIDE])
@pytest.mark.parametrize("offsets", [(-1, 0), (0, -1), (65536, 0), (0, 65536)])
def test_offsets_have_16_bits_and_no_sign(params, offsets):
    with pytest.raises(TensorMapError, match=re.escape(f"offsets={offsets} has a value outside 0 to 65535, ")):
        emulate.load(params, MEMORY, (0, 0, 0, 0), offsets)
    with pytest.raises(TensorMapError, match="has a value outside 0 to 65535"):
        emulate.tensor_index(params, (0, 0), (0, 0, 0, 0), offsets)


def test_the_largest_offset_moves_every_pixel_out():
    assert not emulate.load(IM2COL, MEMORY, (0, 0, 0, 0), (65535, 0)).smem.any()
