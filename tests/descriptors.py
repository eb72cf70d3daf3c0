"""What the tests of codec, rules, explain and diff share: golden encoder calls, and legal tensor maps to vary."""

import gzip
import json
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from cuda_tma.data_type import element_bits
from cuda_tma.params import Im2colParams, TiledParams
from cuda_tma.rules import check
from cuda_tma.testing import params_from_recording

_GOLDEN = Path(__file__).parent / "data" / "encode_sm90.jsonl.gz"

LEGAL = TiledParams(
    data_type=7,
    global_address=4096,
    global_dim=(64, 48, 40),
    global_strides=(256, 12288),
    box_dim=(32, 16, 2),
    element_strides=(1, 1, 1),
    swizzle=3,
)
LEGAL_IM2COL = Im2colParams(
    data_type=9,
    global_address=4096,
    global_dim=(64, 48, 40, 8),
    global_strides=(128, 6144, 245760),
    pixel_box_lower_corner=(-1, -2),
    pixel_box_upper_corner=(1, 3),
    channels_per_pixel=64,
    pixels_per_column=100,
    element_strides=(1, 1, 1, 1),
)


@cache
def golden():
    """(params, whether the driver accepted them, the driver's bytes or None, mode)."""
    with gzip.open(_GOLDEN, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    return [
        (
            params_from_recording(r["params"]),
            r["result"] == 0,
            bytes.fromhex(r["descriptor"] or ""),
            r["params"]["kind"],
        )
        for r in rows
    ]


# number of elements of a whole 16 bytes, or what the packed types demand
_UNITS = {data_type: 128 // element_bits(data_type) for data_type in range(14)} | {14: 128, 15: 128}


@st.composite
def legal_params(draw, compute_capability=(9, 0)):
    """Tiled and im2col params over the whole range of every field, of which those that `check` refuses are dropped."""
    data_type = draw(st.sampled_from(range(16 if compute_capability >= (10, 0) else 13)))
    im2col = draw(st.booleans())
    rank = draw(st.integers(3 if im2col else 1, 5))
    array = lambda low, high, count: tuple(draw(st.integers(low, high)) for _ in range(count))  # noqa: E731
    unit = _UNITS[data_type]
    inner = unit if data_type >= 14 else unit * draw(st.integers(1, 256 // unit))
    common = {
        "data_type": data_type,
        "global_address": 32 * draw(st.integers(0, 2**59 - 1)),
        "global_dim": (128 * draw(st.integers(1, 2**25)), *array(1, 2**31 - 70000, rank - 1)),
        "global_strides": tuple(32 * n for n in array(0, 2**35 - 1, rank - 1)),
        "element_strides": array(1, 8, rank),
        "interleave": draw(st.integers(0, 2)) if rank >= 3 and data_type < 15 else 0,
        "swizzle": draw(st.sampled_from((0, 3, 4) if data_type >= 13 else range(4))),
        "l2_promotion": draw(st.integers(0, 3)),
        "oob_fill": int(6 <= data_type <= 12 and draw(st.booleans())),
    }
    if not im2col:
        params = TiledParams(box_dim=(inner, *array(1, 9, rank - 1)), **common)
    else:
        limit = {3: 32768, 4: 128, 5: 16}[rank]
        params = Im2colParams(
            pixel_box_lower_corner=array(-limit, limit - 1, rank - 2),
            pixel_box_upper_corner=array(-limit, limit - 1, rank - 2),
            channels_per_pixel=inner,
            pixels_per_column=draw(st.integers(1, 110)),
            **common,
        )
    return params


def accepted(params, compute_capability=(9, 0)):
    return check(params, compute_capability) == ()
