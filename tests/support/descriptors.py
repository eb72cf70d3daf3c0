"""Recorded calls of the driver's encoders, and random legal tensor maps, for tests of the codec and of the rules."""

import gzip
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from hypothesis import strategies as st

from cuda_tma._data_type import element_bits
from cuda_tma.params import Im2colParams, Im2colWideParams, Params, TiledParams
from evaluation.recordings.recordings import params_from_recording

_DATA = Path(__file__).parents[1] / "data"

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


class Recorded(NamedTuple):
    """A call of a driver's encoder."""

    params: Params
    accepted: bool
    # The field contains no bytes if the driver refused the map.
    raw: bytes
    compute_capability: tuple[int, int]

    @property
    def is_judged(self):
        """Return whether the driver's verdict is valid. Driver 580 accepts im2col wide maps on compute capability 9.0,
        which does not support them."""
        return self.compute_capability >= (10, 0) or not isinstance(self.params, Im2colWideParams)


@cache
def golden():
    """Return the recorded calls of all architectures, from ``evaluation/recordings/record_encodes.py``."""
    return [_recorded(row) for path in sorted(_DATA.glob("encode_sm*.jsonl.gz")) for row in _rows(path)]


def _rows(path):
    with gzip.open(path, "rt") as lines:
        return [json.loads(line) for line in lines]


def _recorded(row):
    params = params_from_recording(row["params"])
    if "allocation_class" in row:
        params = replace(params, allocation_class=row["allocation_class"]["effective"])
    raw = bytes.fromhex(row["descriptor"] or "")
    return Recorded(params, row["result"] == 0, raw, tuple(row.get("compute_capability", (9, 0))))


# For each data type, the table contains the number of elements in 16 bytes, or the divisor that packed types need.
_UNITS = {data_type: 128 // element_bits(data_type) for data_type in range(14)} | {14: 128, 15: 128}

_TRANSFER_BITS = 228 * 1024 * 8
# For each swizzle, the first table contains the largest number of bytes in a row. For each rank, corners of an im2col
# box are in [-limit, limit).
_SPANS = {0: 2048, 1: 32, 2: 64} | dict.fromkeys((3, 4, 5, 6), 128)
_CORNER_LIMIT = {3: 32768, 4: 128, 5: 16}


def _draw_array(draw, low, high, count):
    return tuple(draw(st.integers(low, high)) for _ in range(count))


def _draw_common(draw, rank, data_type, swizzle, interleaves):
    return {
        "data_type": data_type,
        "global_address": 32 * draw(st.integers(0, 2**59 - 1)),
        "global_dim": (128 * draw(st.integers(1, 2**23)), *_draw_array(draw, 1, 2**31 - 70000, rank - 1)),
        "global_strides": tuple(32 * n for n in _draw_array(draw, 0, 2**35 - 1, rank - 1)),
        "element_strides": _draw_array(draw, 1, 8, rank),
        "interleave": draw(st.sampled_from(interleaves)),
        "swizzle": swizzle,
        "l2_promotion": draw(st.integers(0, 3)),
        "oob_fill": int(6 <= data_type <= 12 and draw(st.booleans())),
        "allocation_class": draw(st.integers(1, 2)),
    }


def _draw_row(draw, data_type, swizzle, interleave):
    """Draw the number of elements in a row of the box."""
    unit = _UNITS[data_type]
    span = _SPANS[0 if interleave else swizzle] * 8 // element_bits(data_type)
    return unit if data_type >= 14 else unit * draw(st.integers(1, max(1, min(256, span) // unit)))


def _draw_pixels(draw, common):
    channels = _draw_row(draw, common["data_type"], common["swizzle"], common["interleave"])
    room = _TRANSFER_BITS // element_bits(common["data_type"]) // channels
    return {"channels_per_pixel": channels, "pixels_per_column": draw(st.integers(1, min(1024, room)))}


def _draw_corners(draw, limit, common):
    """Draw corners with at least one pixel between them. The driver pairs the corners with extents from dimension 0 on
    in an interleaved layout, and otherwise from dimension 1 on."""
    rank = len(common["global_dim"])
    extents = common["global_dim"][0 if common["interleave"] else 1 :][: rank - 2]
    lower = _draw_array(draw, -limit, limit - 1, rank - 2)
    least = [max(-limit, low + 1 - extent) for low, extent in zip(lower, extents, strict=True)]
    return lower, tuple(draw(st.integers(low, limit - 1)) for low in least)


@st.composite
def legal_params(draw, compute_capability=(9, 0)):
    """Draw legal tiled and im2col params over the whole range of every field, without a call of `check`."""
    later = compute_capability >= (10, 0)
    data_type = draw(st.sampled_from(range(16 if later else 13)))
    swizzle = draw(st.sampled_from((0, 3, 4) if data_type >= 13 else range(7 if later else 4)))
    if draw(st.booleans()):
        rank = draw(st.integers(3, 5))
        common = _draw_common(draw, rank, data_type, swizzle, (0, 1, 2) if data_type < 15 else (0,))
        limit = _CORNER_LIMIT[rank]
        lower, upper = _draw_corners(draw, limit, common)
        corners = {"pixel_box_lower_corner": lower, "pixel_box_upper_corner": upper}
        return Im2colParams(**common, **corners, **_draw_pixels(draw, common))
    rank = draw(st.integers(1, 5))
    common = _draw_common(draw, rank, data_type, swizzle, (0, 1, 2) if rank >= 3 and data_type < 15 else (0,))
    box = [_draw_row(draw, data_type, swizzle, common["interleave"])]
    room = _TRANSFER_BITS // element_bits(data_type) // box[0]
    for _ in range(rank - 1):
        box.append(draw(st.integers(1, min(256, room))))
        room //= box[-1]
    return TiledParams(box_dim=tuple(box), **common)


@st.composite
def legal_wide_params(draw):
    """Draw im2col wide params for compute capability 10.0, with corners in the range of plain im2col maps."""
    rank, data_type = draw(st.integers(3, 5)), draw(st.sampled_from(range(16)))
    common = _draw_common(draw, rank, data_type, draw(st.sampled_from((3, 4))), (0, 1, 2) if data_type < 15 else (0,))
    lower, upper = sorted(_draw_array(draw, -_CORNER_LIMIT[rank], _CORNER_LIMIT[rank] - 1, 2))
    corners = {"pixel_box_lower_corner_width": lower, "pixel_box_upper_corner_width": upper}
    return Im2colWideParams(**common, **corners, **_draw_pixels(draw, common), mode=draw(st.integers(0, 1)))
