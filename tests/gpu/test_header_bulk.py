"""Tests of copies of contiguous bytes by the device header, on hardware."""

import numpy as np
import pytest

import cuda_tma
from cuda_tma import emulate
from cuda_tma.enums import TensorMapDataType as T

from .header_kernels import FILL, HINTS, WINDOW_BYTES, machine_fixture, name_of, place

pytestmark = pytest.mark.usefixtures("watched")


machine = machine_fixture()


@pytest.mark.parametrize("hint", HINTS)
@pytest.mark.parametrize("size", [16, 4096, WINDOW_BYTES])
def test_bulk_copies(machine, size, hint):
    """The copies transfer bytes to shared memory, with a prefetch, and back to another place. The bytes around that
    place do not change."""
    memory = np.random.default_rng(size).integers(0, 256, 3 * WINDOW_BYTES, np.uint8)
    machine.put("memory", memory)
    statement = f"prefetch_bulk(memory, p.tx_bytes{hint}); load_bulk(tile, memory, p.tx_bytes, full{hint});"
    (window,) = machine.load(statement, [place(tx_bytes=size)], size)
    assert np.array_equal(window, memory[:size])
    machine.store(f"store_bulk(memory + {WINDOW_BYTES}, tile, count{hint});", window)
    memory[WINDOW_BYTES:][:size] = memory[:size]
    assert np.array_equal(machine.get("memory", memory.size), memory)


BULK_TYPES = {
    "u32": T.UINT32, "s32": T.INT32, "u64": T.UINT64, "s64": T.INT64, "f16": T.FLOAT16, "bf16": T.BFLOAT16,
    "f32": T.FLOAT32, "f64": T.FLOAT64, "b32": T.UINT32, "b64": T.UINT64,
}  # fmt: skip
BULK_REDUCTIONS = {
    "add": "u32 s32 u64 f16 bf16 f32 f64", "min": "u32 s32 u64 s64 f16 bf16", "max": "u32 s32 u64 s64 f16 bf16",
    "inc": "u32", "dec": "u32", "and": "b32 b64", "or": "b32 b64", "xor": "b32 b64",
}  # fmt: skip
BULK_PAIRS = [(op, name) for op, names in BULK_REDUCTIONS.items() for name in names.split()]


@pytest.mark.parametrize(("op", "name"), BULK_PAIRS, ids=[f"{op} {name}" for op, name in BULK_PAIRS])
def test_bulk_reductions(machine, op, name):
    """The results of bulk reductions equal reductions through a one-dimensional tensor map, also for infinities and
    NaNs."""
    data_type = BULK_TYPES[name]
    size = 2048
    unit = size // {"16": 1024, "32": 512, "64": 256}[name.lstrip("bfus")]
    rng = np.random.default_rng([ord(c) for c in op + name])
    memory, tile = rng.integers(0, 256, (2, size), np.uint8)
    params = cuda_tma.TiledParams(
        data_type=data_type, global_address=0, global_dim=(size // unit,), global_strides=(), box_dim=(256,),
        element_strides=(1,),
    )  # fmt: skip
    for hint in HINTS[:2]:
        machine.put("memory", memory)
        statement = f"reduce_bulk<Reduction::{name_of(op)}, BulkType::{name}>(memory, tile, count{hint});"
        machine.store(statement, tile)
        expected = memory.copy()
        for start in range(0, size // unit, 256):
            emulate.reduce(params, expected, tile[start * unit :][: 256 * unit], (start,), op)
        got = machine.get("memory", size)
        different = np.flatnonzero(got != expected)
        assert different.size == 0, (
            f"{different.size} bytes differ, first {different[0]}: {memory.view(f'u{unit}')[different[0] // unit]:#x} "
            f"{op} {tile.view(f'u{unit}')[different[0] // unit]:#x} = {got.view(f'u{unit}')[different[0] // unit]:#x}, "
            f"not {expected.view(f'u{unit}')[different[0] // unit]:#x}"
        )


STORE_TWO_GROUPS = """
    store_bulk(memory, tile, 16384);
    commit_group();
    store_bulk(memory + 16384, tile + 16384, 16384);
    commit_group();
"""


def test_wait_group_read(machine):
    """After wait_group_read<1>, the thread may overwrite the first tile while a copy still reads the second tile."""
    tile = np.random.default_rng(3).integers(0, 256, 2 * 16384, np.uint8)
    then = """
        wait_group_read<1>();
        auto words = reinterpret_cast<ulonglong2*>(const_cast<unsigned char*>(tile));
        for (int i = 1023; i >= 0; --i) words[i] = {};   // from its end, which is read last
    """
    for _ in range(5):
        machine.store(STORE_TWO_GROUPS + then, tile)
        assert np.array_equal(machine.get("memory", tile.size), tile)


def test_wait_group(machine):
    """After a wait, the thread reads the stored bytes of the first group of copies in global memory.

    After a second wait, the thread reads the bytes of both groups."""
    tile = np.random.default_rng(4).integers(1, 256, 2 * 16384, np.uint8)
    then = """
        wait_group<1>();
        for (int i = 16383; i >= 0; i -= 1024) out[i] = memory[i];
        wait_group();
        for (int i = 32767; i >= 16384; i -= 1024) out[i] = memory[i];
    """
    for _ in range(5):
        machine.put("memory", np.zeros_like(tile))
        machine.store(STORE_TWO_GROUPS + then, tile)
        assert np.array_equal(machine.get("out", tile.size)[1023::1024], tile[1023::1024])


def test_bulk_multicast(machine):
    """In a cluster of four CTAs, two CTAs each load 256 bytes for other CTAs."""
    memory = np.random.default_rng(1).integers(0, 256, 512, np.uint8)
    machine.put("memory", memory)
    masks = [0b1010, 0b0110, 0, 0]
    windows = np.full((4, 512), FILL, np.uint8)
    for sender, receiver in np.ndindex(2, 4):
        if masks[sender] >> receiver & 1:
            windows[receiver, 256 * sender :][:256] = memory[256 * sender :][:256]
    received = [sum(mask >> receiver & 1 for mask in masks) for receiver in range(4)]
    places = [place(cta_mask=masks[i], tx_bytes=256 * received[i], slot=256 * i) for i in range(4)]
    for hint in HINTS:
        statement = f"if (p.cta_mask) load_bulk_multicast(tile, memory + p.slot, 256, full, p.cta_mask{hint});"
        assert np.array_equal(machine.load(statement, places, 512), windows)


def test_send_bulk(machine):
    """In the test, CTA 0 loads data, and sends the data to CTA 3."""
    memory = np.random.default_rng(2).integers(0, 256, 1024, np.uint8)
    machine.put("memory", memory)
    places = [place(tx_bytes=1024 * (rank in (0, 3))) for rank in range(4)]
    statement = """
        if (cluster_cta_rank() == 0) {
            load_bulk(tile, memory, 1024, full);
            wait_or_trap(full, 0);
            send_bulk(tile, 3, tile, 1024, full);
        }
    """
    fill = np.full(1024, FILL, np.uint8)
    assert np.array_equal(machine.load(statement, places, 1024), [memory, fill, fill, memory])
