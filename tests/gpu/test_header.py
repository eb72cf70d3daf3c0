"""Tests of the device header's copies through tensor maps, for which hardware and the emulator give the same bytes.

This file and the other test_header_*.py run every function of the header that compute capability 9.0 has. The files
also run under ``compute-sanitizer --tool memcheck --report-api-errors no``. test_products.py and test_wgmma.py test
tensor cores; multimem.cuh, which needs a multicast object, is only compiled.
"""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import cuda_tma
from cuda_tma import emulate
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle
from cuda_tma.smem import pattern, smem_bytes
from cuda_tma.smem._layout import chunk_elements
from cuda_tma.testing import assert_tile_equal, im2col_params, load_cases, store_cases, tiled_params

from .header_kernels import FILL, HINTS, WINDOW_BYTES, coordinates_of, machine_fixture, name_of, offsets_of, place

pytestmark = pytest.mark.usefixtures("watched")

# The pattern of a swizzle repeats at multiples of its span.
SLOT_BYTES = 1024
FITS = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
)
FORMS = [("tiled", rank) for rank in range(1, 6)] + [("im2col", rank) for rank in range(3, 6)]
every_form = pytest.mark.parametrize(("mode", "rank"), FORMS, ids=[f"{mode} {rank}" for mode, rank in FORMS])
PAIRS = [(op, data_type) for op, types in emulate.REDUCTIONS.items() for data_type in types]


machine = machine_fixture(
    "device header: {launches} launches of {kernels} kernels leave what the emulator leaves (loads, with prefetch and "
    "without, stores, reductions, multicast in clusters of 2 and 4; ranks 1 to 5, tiled and im2col)"
)


def of_form(mode, rank, inside=False):
    """Return tensor map parameters of one mode and rank."""
    params = tiled_params(min_rank=rank) if mode == "tiled" else im2col_params(inside=inside)
    return params.filter(lambda chosen: chosen.rank == rank)


def is_im2col(params):
    return isinstance(params, cuda_tma.Im2colParams)


def form(name, params):
    """Return the name of the header's function for given parameters, with the coordinates and offsets in C++."""
    at, offsets = coordinates_of(params.rank), offsets_of(params.rank)
    return (f"{name}_im2col", at, f", {offsets}") if is_im2col(params) else (name, at, "")


def with_surroundings(memory, seed=0):
    """Return the tensor's memory and some following bytes, which a store must not change."""
    return np.concatenate([memory, np.random.default_rng(seed).integers(0, 256, 256, np.uint8)])


# Loads --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prefetched", [False, True], ids=["", "prefetched"])
@every_form
def test_loads(machine, mode, rank, prefetched):
    """The test loads tiles with each cache hint. A prefetch of the tile and the descriptor does not change the loaded
    bytes."""

    @settings(FITS, max_examples=30)
    @given(load_cases(of_form(mode, rank)), st.sampled_from(HINTS))
    def check(case, hint):
        params, memory, coordinates, offsets = case
        expected = emulate.load(params, memory, coordinates, offsets, fill=FILL)
        assume(expected.smem.size <= WINDOW_BYTES)
        load, at, more = form("load", params)
        prefetch, _, _ = form("prefetch", params)
        statement = f"{load}(tile, map, full, {at}{more}{hint});"
        if prefetched:
            statement = f"prefetch_tensor_map(map); {prefetch}(map, {at}{more}{hint}); {statement}"
        machine.put("memory", memory)
        where = place(coordinates, offsets, tx_bytes=expected.tx_bytes)
        (window,) = machine.load(statement, [where], expected.smem.size, params)
        assert_tile_equal(params, window, expected, coordinates, offsets)
        # The copy wrote no byte outside the tile.
        assert np.array_equal(window, expected.smem)

    check()


@pytest.mark.parametrize("mode", ["SWIZZLE_32B", "SWIZZLE_64B", "SWIZZLE_128B"])
def test_swizzled_reads_the_tile_back(machine, mode):
    """Byte b of row r of a swizzled tile is at swizzled<Mode>(r, b), and as_tensor_map() returns the map."""
    span = pattern(TensorMapSwizzle[mode]).span_bytes
    memory = np.random.default_rng(span).integers(0, 256, 32 * span, np.uint8)
    params = cuda_tma.params_of(cuda_tma.TensorSpec((32, span), "uint8"), box_dim=(32, span), swizzle=mode)
    statement = f"""
        load(tile, as_tensor_map(map), full, Coordinates{{0, 0}});
        wait_or_trap(full, 0);
        for (int i = 0; i < {32 * span}; ++i) memory[65536 + i] = tile[swizzled<{mode}>(i / {span}, i % {span})];
    """
    machine.put("memory", memory)
    (window,) = machine.load(statement, [place(tx_bytes=memory.size)], memory.size, params)
    assert np.array_equal(machine.get("memory", 65536 + memory.size)[65536:], memory)
    assert not np.array_equal(window, memory)


# Stores and reductions ----------------------------------------------------------------------------------------------


def check_saved(machine, case, name, hint="", op=None, seed=0):
    """Run a store or reduction through the header on hardware, and in the emulator, and compare the memory."""
    params, memory, coordinates = case
    size = smem_bytes(params)
    assume(size <= WINDOW_BYTES)
    tile = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    memory = with_surroundings(memory)
    machine.put("memory", memory)
    form_name, at, _ = form(name, params)
    template = f"<Reduction::{name_of(op)}>" if op else ""
    machine.store(f"{form_name}{template}(map, {at}, tile{hint});", tile, place(coordinates), params)
    if op:
        emulate.reduce(params, memory, tile, coordinates, op)
    else:
        emulate.store(params, memory, tile, coordinates)
    different = np.flatnonzero(machine.get("memory", memory.size) != memory)
    assert different.size == 0, f"{different.size} bytes of memory differ, first {different[0]}: {params} {coordinates}"


@every_form
def test_stores(machine, mode, rank):
    @settings(FITS, max_examples=30)
    @given(store_cases(of_form(mode, rank, inside=True)), st.sampled_from(HINTS), st.integers(0, 2**16))
    def check(case, hint, seed):
        check_saved(machine, case, "store", hint, seed=seed)

    check()


@pytest.mark.parametrize(("op", "data_type"), PAIRS, ids=[f"{op} {t.name}" for op, t in PAIRS])
def test_reductions(machine, op, data_type):
    """The test covers each reduction operation with each of its data types, in the tiled and im2col modes of several
    ranks."""
    params = st.one_of(tiled_params(data_types=[data_type]), im2col_params(data_types=[data_type], inside=True))
    hints = st.sampled_from(HINTS[:2] if data_type == T.UINT32 else HINTS[:1])

    @settings(FITS, max_examples=12)
    @given(store_cases(params), hints, st.integers(0, 2**16))
    def check(case, hint, seed):
        check_saved(machine, case, "reduce", hint, op, seed)

    check()


# Clusters -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ctas", [2, 4])
@every_form
def test_multicast(machine, mode, rank, ctas):
    """Each CTA of the cluster loads a tile into its own slot in the shared memory of every CTA in its mask."""
    masks = st.lists(st.integers(1, 2**ctas - 1), min_size=ctas, max_size=ctas)

    @settings(FITS, max_examples=15)
    @given(load_cases(of_form(mode, rank)), masks, st.sampled_from(HINTS[1:3]))
    def check(case, masks, hint):
        params, memory, coordinates, offsets = case
        slot = -(-smem_bytes(params) // SLOT_BYTES) * SLOT_BYTES
        assume(ctas * slot <= WINDOW_BYTES)
        step = 1 if rank > 1 else chunk_elements(params.data_type)
        starts = [(*coordinates[:-1], coordinates[-1] + i * step) for i in range(ctas)]
        tiles = [emulate.load(params, memory, start, offsets, fill=FILL) for start in starts]
        windows = np.full((ctas, ctas * slot), FILL, np.uint8)
        tx_bytes = [0] * ctas
        for sender, receiver in np.ndindex(ctas, ctas):
            if masks[sender] >> receiver & 1:
                windows[receiver, sender * slot :][: tiles[sender].smem.size] = tiles[sender].smem
                tx_bytes[receiver] += tiles[sender].tx_bytes
        load, at, more = form("load", params)
        machine.put("memory", memory)
        places = [place(starts[i], offsets, masks[i], tx_bytes[i], i * slot) for i in range(ctas)]
        statement = f"{load}_multicast(tile, map, full, {at}{more}, p.cta_mask{hint});"
        assert np.array_equal(machine.load(statement, places, ctas * slot, params), windows)

    check()


def test_a_planted_wrong_byte_is_caught(machine):
    """The test changes one byte of the emulator's tile, so that the comparison fails."""
    params = cuda_tma.params_of(cuda_tma.TensorSpec((4, 64), "uint8"), box_dim=(2, 64))
    memory = np.random.default_rng(5).integers(0, 256, 256, np.uint8)
    machine.put("memory", memory)
    statement = f"load(tile, map, full, {coordinates_of(2)});"
    (window,) = machine.load(statement, [place((0, 1), tx_bytes=128)], 128, params)
    tile = emulate.load(params, memory, (0, 1))
    assert_tile_equal(params, window, tile, (0, 1))
    tile.smem[77] ^= 1
    with pytest.raises(AssertionError, match=r"1 of 128 delivered bytes differ, first at box index \(13, 1\)"):
        assert_tile_equal(params, window, tile, (0, 1))
