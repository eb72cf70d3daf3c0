"""Tests of the cache of results for tensor map parameters. The cached results do not depend on the address, and their
number is limited."""

import dataclasses
import tracemalloc

import numpy as np
import pytest

from cuda_tma import emulate
from cuda_tma import smem as smem
from cuda_tma.emulate import _legal, _memory, _traversal
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.params import TiledParams
from cuda_tma.smem import _layout
from tests.emulate._limits import IM2COL, MATRIX, MEMORY, changed

KEPT = (_layout.rows, _legal._is_legal, _traversal._box, _memory.delivered_mask, _memory._chunk_order)


def test_maps_that_differ_in_the_address_share_cached_results():
    params = changed(
        data_type=T.UINT8,
        global_dim=(16, 256, 57),
        global_strides=(16, 4096),
        box_dim=(16, 64, 28),
        element_strides=(1, 1, 1),
        swizzle=3,
    )
    memory = np.zeros(32 * 1100 + 4096 * 57, np.uint8)
    for kept in KEPT:
        kept.cache_clear()
    emulate.load(params, memory, (0, 0, 0))
    tracemalloc.start()
    try:
        for address in range(0, 32 * 1100, 32):
            emulate.load(changed(params, global_address=address), memory, (0, 0, 0))
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()
    for kept in KEPT:
        assert (kept.cache_info().misses, kept.cache_info().currsize) == (1, 1)
        assert kept.cache_info().hits >= 1100


def test_the_cache_is_bounded():
    assert max(kept.cache_info().maxsize for kept in KEPT[2:]) * _layout.MAX_SMEM_BYTES < 16 << 20
    assert max(kept.cache_info().maxsize for kept in KEPT) <= 1024


def test_the_cache_distinguishes_other_kinds_and_subclasses_of_maps():
    class Mine(TiledParams):
        pass

    mine = Mine(**{field.name: getattr(MATRIX, field.name) for field in dataclasses.fields(MATRIX)})
    assert _layout.rows(mine) == _layout.rows(MATRIX)
    assert _layout.rows(IM2COL) != _layout.rows(changed(IM2COL, channels_per_pixel=32))
    for name, value in (("box_dim", (8, 2)), ("swizzle", 1), ("element_strides", (1, 2)), ("data_type", T.UINT8)):
        assert _layout.rows(changed(**{name: value})) != _layout.rows(MATRIX)


def test_numbers_of_another_kind_leave_no_trace():
    """Equal numbers of different types are one key of the cache. A narrow integer once overflowed, and the wrong result
    was stored for this key."""
    plain = changed(data_type=T.UINT16, global_dim=(64, 64), global_strides=(128,), box_dim=(64, 64))
    for kind in (np.uint8, np.int16, np.int64):
        for kept in KEPT:
            kept.cache_clear()
        narrow = changed(plain, box_dim=(kind(64), kind(64)), element_strides=(kind(1), kind(1)))
        for params in (narrow, plain):
            found = smem.tx_bytes(params), smem.smem_bytes(params)
            assert found == (8192, 8192) and set(map(type, found)) == {int}
            assert emulate.load(params, np.zeros(8192, np.uint8), (0, 0)).tx_bytes == 8192


def test_an_error_is_not_kept_and_no_answer():
    for _ in range(2):
        with pytest.raises(ValueError, match="are not a box"):
            _layout.rows(changed(box_dim=(0, 1)))
    assert (emulate.load(MATRIX, MEMORY, (0, 0)).smem[:16] == MEMORY[:16]).all()
