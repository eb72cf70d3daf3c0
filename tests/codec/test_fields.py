"""Tests of the table of a tensor map's fields, which share no bit, and follow the order of the encoder's arguments."""

import pytest

from cuda_tma._errors import TensorMapError
from cuda_tma.codec._fields import BEYOND_PARAMS, IM2COL, RANK, SWIZZLE_REPEAT_BYTES, TRANSFER_BYTES, fields
from cuda_tma.params import Im2colParams, Im2colWideParams, Params, TiledParams

MODES = [(TiledParams, r) for r in range(1, 6)] + [(m, r) for m in (Im2colParams, Im2colWideParams) for r in (3, 4, 5)]


@pytest.mark.parametrize("mode,rank", MODES)
def test_no_bit_belongs_to_two_fields(mode, rank):
    table = (IM2COL, RANK, *fields(mode, rank), TRANSFER_BYTES, SWIZZLE_REPEAT_BYTES, *BEYOND_PARAMS)
    bits = [(w, b) for f in table for w, low, width in f.pieces for b in range(low, low + width)]
    assert len(bits) == len(set(bits))


@pytest.mark.parametrize("mode,rank", MODES)
def test_every_parameter_but_the_mode_of_im2col_wide_has_its_fields(mode, rank):
    named = {f.name for f in fields(mode, rank)} | ({"global_strides"} if rank == 1 else set())
    assert set(mode.__dataclass_fields__) - named == {"unexplained"} | ({"mode"} if mode is Im2colWideParams else set())
    assert {f.index for f in fields(mode, rank) if f.name == "global_dim"} == set(range(rank))
    assert {f.index for f in fields(mode, rank) if f.name == "global_strides"} == set(range(rank - 1))


def test_a_parameter_without_a_table_is_refused():
    with pytest.raises(
        TensorMapError, match="params must be TiledParams, Im2colParams or Im2colWideParams, not Params"
    ):
        fields(Params, 3)
    with pytest.raises(TensorMapError, match="rank 2 cannot be encoded in a tensor map; Im2colParams has rank 3 to 5"):
        fields(Im2colParams, 2)
