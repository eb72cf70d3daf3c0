"""Tests of the maps that CuTe DSL 4.8.1 encodes without the driver, for 128 x 128 elements of 4 bits.

The bytes are from launches of CUTLASS's dense_blockscaled_gemm_persistent.py, which `cuda-tma sanitize --record` wrote.
The last 64 bytes of these maps are different in each launch, and are zeros in the test.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from cuda_tma import TensorMapDataType, decode, encode

MAPS = {
    TensorMapDataType.PACKED_16U4_ALIGN16B: (
        "00400500100000002266040004000000000200000000000000000000000000007f0000007f"
        "0000000000000000000000000000000000007f7f00000000000000",
        (128, 128, 1),
    ),
    TensorMapDataType.PACKED_16U4_ALIGN8B: (
        "0000000010000000a265040004000000000200000000000000000000000000007f0000007f"
        "000000000000000000000000000000000000ff7f00000000000000",
        (256, 128, 1),
    ),
}


@pytest.mark.parametrize("data_type", MAPS, ids=lambda each: each.name)
def test_one_bit_of_the_first_64_bytes_is_not_that_of_encode(data_type):
    digits, box = MAPS[data_type]
    raw = bytes.fromhex(digits) + bytes(64)
    params = decode(raw)
    assert params.data_type == data_type
    assert (params.global_dim, params.global_strides, params.box_dim) == ((128, 128, 1), (64, 8192), box)
    assert params.swizzle == 3
    assert params.unexplained[0] == (2, 2)
    encoded = bytes(encode(replace(params, unexplained=())))
    assert [(at, raw[at] ^ encoded[at]) for at in range(64) if raw[at] != encoded[at]] == [(8, 2)]
