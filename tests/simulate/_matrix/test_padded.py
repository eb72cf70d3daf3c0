"""Tests of padded elements of 4 and 6 bits, whose values equal those of ml_dtypes for every code."""

import ml_dtypes
import numpy as np
import pytest

from cuda_tma.simulate._matrix.padded import PADDED, decoded_padded

TYPES = {"e2m1": ml_dtypes.float4_e2m1fn, "e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn}


@pytest.mark.parametrize("type_", sorted(TYPES))
def test_each_code_in_its_piece(type_):
    assert {*TYPES} == PADDED
    bits = 4 if type_ == "e2m1" else 6
    codes = np.arange(1 << bits, dtype=np.uint8).reshape(-1, 16)
    # The bits of the padding are 1, because the instruction ignores them.
    pieces = np.full((len(codes), 16), 0xFF, np.uint8)
    digits = np.unpackbits(codes[..., None], axis=-1, bitorder="little")[..., :bits]
    pieces[:, : 2 * bits] = np.packbits(digits.reshape(len(codes), -1), axis=-1, bitorder="little")
    assert np.array_equal(decoded_padded(pieces.ravel(), type_), codes.ravel().view(TYPES[type_]).astype(np.float64))
