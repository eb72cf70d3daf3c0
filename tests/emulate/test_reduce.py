"""Tests of reductions whose sums overflow or are undefined, which raise no floating-point error."""

from itertools import pairwise

import numpy as np
import pytest

from cuda_tma.emulate._reduce import REDUCTIONS
from cuda_tma.enums import TensorMapDataType as T

INFINITY = {T.FLOAT16: 0x7C00, T.BFLOAT16: 0x7F80, T.FLOAT32: 0x7F800000, T.FLOAT64: 0x7FF0 << 48}
BITS = {T.FLOAT16: 16, T.BFLOAT16: 16, T.FLOAT32: 32, T.FLOAT32_FTZ: 32, T.TFLOAT32: 32, T.FLOAT64: 64}


def added(data_type, old, new):
    """Return the bits of a sum of two values, which are given as bits."""
    dtype, operation = REDUCTIONS["add"][data_type]
    unsigned = f"<u{BITS[data_type] // 8}"
    with np.errstate(all="raise"):
        result = operation(*(np.array([bits], unsigned).view(dtype) for bits in (old, new)))
    return int(np.ascontiguousarray(result, dtype).view(unsigned)[0])


@pytest.mark.parametrize("data_type", [*BITS])
def test_sums_beyond_the_largest_number_and_of_infinities(data_type):
    bits = BITS[data_type]
    infinity = INFINITY.get(data_type, INFINITY[T.FLOAT32])
    largest, sign = infinity - 1, 1 << (bits - 1)
    undefined = 0xFFF8 << 48 if data_type == T.FLOAT64 else sign - 1
    assert added(data_type, largest, largest) == infinity
    assert added(data_type, infinity | sign, infinity) == undefined
    assert added(data_type, infinity, infinity) == infinity
    assert added(data_type, largest | sign, largest | sign) == infinity | sign


def test_a_nan_of_an_operand():
    quiet, signaling = 0x7FF8 << 48 | 5, 0x7FF0 << 48 | 7
    assert added(T.FLOAT64, quiet, 0) == quiet and added(T.FLOAT64, 0, signaling) == signaling
    assert added(T.FLOAT64, quiet, signaling) == signaling
    assert added(T.FLOAT32, 0x7F800001, 0) == 0x7FFFFFFF and added(T.BFLOAT16, 0xFFC0, 0) == 0x7FFF


def test_counts_in_a_range():
    def counted(name, old, new):
        dtype, operation = REDUCTIONS[name][T.UINT32]
        return [int(each) for each in operation(np.array(old, dtype), np.array(new, dtype))]

    assert counted("inc", [0, 6, 7, 8, 9], [7] * 5) == [1, 7, 0, 0, 0]
    assert counted("dec", [0, 1, 7, 8, 9], [7] * 5) == [7, 0, 6, 7, 7]


@pytest.mark.parametrize(("data_type", "infinity"), [(T.FLOAT16, 0x7C00), (T.BFLOAT16, 0x7F80)])
def test_the_order_of_16_bit_numbers(data_type, infinity):
    def picked(name, old, new):
        return int(REDUCTIONS[name][data_type][1](np.array([old], np.uint16), np.array([new], np.uint16))[0])

    zero, less = 0x8000, 0x8000 | infinity
    ascending = [less, 0x8001, zero, 0, 1, infinity]
    for low, high in pairwise(ascending):
        assert {picked("min", low, high), picked("min", high, low)} == {low}
        assert {picked("max", low, high), picked("max", high, low)} == {high}
    nan = infinity + 1
    assert picked("min", nan, 5) == picked("max", 5, nan) == 5 and picked("min", nan, nan | 0x8000) == 0x7FFF
