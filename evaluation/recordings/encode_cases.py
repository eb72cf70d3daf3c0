"""Cases for ``record_encodes.py``, which are random arguments of the driver's three encoders, legal or at boundaries.

About half of the cases are legal. In the other cases, one to three arguments are at or beyond a boundary. An argument
at a boundary is a value of `BOUNDARIES`, a neighbor of a legal value, or a value at which a sum or product of several
arguments becomes too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from cuda_tma._data_type import ELEMENTS, element_bits, is_floating, is_packed
from cuda_tma._limits import CORNER_LIMIT, MAX_RANK, MAX_TRANSFER_BYTES
from cuda_tma._swizzle_pattern import SPAN_BYTES
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.enums import TensorMapSwizzle

Arguments = dict[str, Any]
WIDE_CORNERS = ("pixel_box_lower_corner_width", "pixel_box_upper_corner_width")
CORNERS = ("pixel_box_lower_corner", "pixel_box_upper_corner")
_CORNER_EDGES = tuple(n + d for limit in CORNER_LIMIT.values() for n in (-limit, limit - 1) for d in (-1, 0, 1))
BOUNDARIES: dict[str, tuple[int, ...]] = {
    "data_type": tuple(range(len(T) + 1)),
    "rank": tuple(range(MAX_RANK + 2)),
    "global_address": (0, 8, 16, 32, 2**40 + 16, 2**57 - 32),
    "global_dim": (0, 1, 2, 3, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 1, 2**40),
    "global_strides": (0, 8, 16, 32, 2**39, 2**40 - 32, 2**40 - 16, 2**40, 2**40 + 16, 2**44),
    "box_dim": (0, 1, 2, 4, 8, 16, 32, 64, 128, 192, 255, 256, 257),
    "element_strides": (0, 1, 2, 7, 8, 9),
    **dict.fromkeys((*CORNERS, *WIDE_CORNERS), _CORNER_EDGES),
    "channels_per_pixel": (0, 1, 8, 16, 32, 64, 128, 192, 255, 256, 257),
    "pixels_per_column": (0, 1, 255, 256, 1023, 1024, 1025),
    "interleave": tuple(range(4)),
    "mode": tuple(range(3)),
    "swizzle": tuple(range(len(TensorMapSwizzle) + 1)),
    "l2_promotion": tuple(range(5)),
    "oob_fill": tuple(range(3)),
}
_WHOLE, _PACKED = [t for t in T if not is_packed(t)], [t for t in T if is_packed(t)]
NUDGES = (-32, -16, -8, -1, 1, 8, 16, 32)


def _log_uniform(rng: Random, most: int) -> int:
    """Return a number from 1 to `most`, so that small and large numbers are equally likely."""
    return min(most, int(2 ** rng.uniform(0, (most + 1).bit_length())))


def _row(rng: Random, data_type: T, interleave: int, swizzle: int) -> int:
    """Return the number of elements in a row of the box. A row is a multiple of 16 bytes, and at most as wide as the
    swizzle span.
    """
    if ELEMENTS[data_type].row_elements:
        return ELEMENTS[data_type].row_elements
    unit = ELEMENTS[data_type].chunk_elements
    most_bytes = 256 * 8 if interleave else SPAN_BYTES.get(swizzle, 256 * 8)
    return unit * rng.randint(1, max(1, min(256, most_bytes * 8 // element_bits(data_type)) // unit))


def _legal_common(rng: Random, rank: int) -> Arguments:
    """Return the arguments that the three modes share."""
    data_type = rng.choice(_WHOLE * 4 + _PACKED)
    interleave = rng.choice((0, 0, 1, 2)) if rank >= 3 and ELEMENTS[data_type].can_interleave else 0
    dims = [_log_uniform(rng, 1 << rng.choice((8, 12, 31))) for _ in range(rank)]
    dims[0] = dims[0] + -dims[0] % 128 if is_packed(data_type) else dims[0]
    unit = 32 if interleave == 2 or is_packed(data_type) else 16
    strides = [rng.randrange(0, 2**40, unit) for _ in range(rank - 1)]
    if rng.random() < 0.7:  # In 70 percent of the cases, the strides are those of a contiguous or padded tensor.
        size = dims[0] * element_bits(data_type) // 8
        for i, dim in enumerate(dims[1:]):
            strides[i] = size = min(-(-size // unit) * unit + rng.choice((0, 0, unit)), 2**40 - unit)
            size *= dim
    return {
        "data_type": int(data_type),
        "rank": rank,
        "global_address": rng.randrange(0, 1 << rng.choice((47, 57)), 32),
        "global_dim": dims,
        "global_strides": strides,
        "element_strides": [rng.choice((1, 1, 1, 2, 3, 5, 8)) for _ in range(rank)],
        "interleave": interleave,
        "swizzle": rng.choice((0, 3, 4) if is_packed(data_type) else (0, 1, 2, 3) * 6 + (4, 5, 6)),
        "l2_promotion": rng.randrange(4),
        "oob_fill": int(is_floating(data_type) and rng.random() < 0.5),
    }


def legal_tiled(rng: Random) -> Arguments:
    p = _legal_common(rng, rng.randint(1, MAX_RANK))
    box = [_row(rng, T(p["data_type"]), p["interleave"], p["swizzle"])]
    room = MAX_TRANSFER_BYTES * 8 // element_bits(p["data_type"]) // box[0]
    for _ in range(p["rank"] - 1):
        box.append(_log_uniform(rng, min(256, room)))
        room //= box[-1]
    return {"kind": "tiled"} | p | {"box_dim": box}


def _legal_pixels(rng: Random, p: Arguments) -> Arguments:
    channels = _row(rng, T(p["data_type"]), p["interleave"], p["swizzle"])
    room = MAX_TRANSFER_BYTES * 8 // element_bits(p["data_type"]) // channels
    return {"channels_per_pixel": channels, "pixels_per_column": _log_uniform(rng, min(1024, room))}


def legal_im2col(rng: Random) -> Arguments:
    """Return legal arguments of an im2col map. The driver pairs the corners with global_dim[1:], or with global_dim[0:]
    if the layout is interleaved. Small corners are always legal.
    """
    p = _legal_common(rng, rng.randint(3, MAX_RANK))
    limit = rng.choice((4, CORNER_LIMIT[p["rank"]]))
    lower = [rng.randint(-limit, limit - 1) for _ in range(p["rank"] - 2)]
    upper = [rng.randint(-limit, limit - 1) for _ in lower]
    return {"kind": "im2col"} | p | dict(zip(CORNERS, (lower, upper), strict=True)) | _legal_pixels(rng, p)


def legal_im2col_wide(rng: Random) -> Arguments:
    p = _legal_common(rng, rng.randint(3, MAX_RANK))
    p |= {name: rng.randint(-8, 7) for name in WIDE_CORNERS}
    p["swizzle"] = rng.choice((p["swizzle"], TensorMapSwizzle.SWIZZLE_64B, TensorMapSwizzle.SWIZZLE_128B))
    return {"kind": "im2col_wide"} | p | {"mode": rng.randrange(2)} | _legal_pixels(rng, p)


def _edge(rng: Random, p: Arguments) -> None:
    """Set one argument so that a rule about several arguments is just satisfied, or just violated."""
    over, room = rng.randrange(2), MAX_TRANSFER_BYTES * 8 // element_bits(p["data_type"])
    # The corners make the pixel box empty, or are one element from an empty box.
    if p["kind"] == "im2col" and rng.random() < 0.5:
        i = rng.randrange(p["rank"] - 2)
        upper = p[CORNERS[0]][i] - p["global_dim"][i + rng.randrange(2)] + over
        p[CORNERS[1]][i] = max(-(2**31), upper)
    elif p["kind"] != "tiled":  # The transfer is the largest valid transfer, or is larger by the smallest step.
        p["pixels_per_column"] = room // max(1, p["channels_per_pixel"]) + over
    elif p["rank"] > 1:
        for box, step in zip(p["box_dim"][:-1], p["element_strides"], strict=False):
            room //= max(1, box // max(1, step))
        p["box_dim"][-1] = (room + over) * max(1, p["element_strides"][-1])


def _changed(rng: Random, name: str, value: int) -> int:
    if rng.random() < 0.5 or len(BOUNDARIES[name]) <= 8:
        return rng.choice(BOUNDARIES[name])
    near = value + rng.choice(NUDGES)
    return near if name in (*CORNERS, *WIDE_CORNERS) else max(0, near)


def at_boundary(rng: Random, p: Arguments) -> Arguments:
    """Change one to three arguments of `p`."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice([name for name in BOUNDARIES if p.get(name, []) != []])
        if rng.random() < 0.15:
            _edge(rng, p)
        elif isinstance(p[name], list):
            index = rng.randrange(len(p[name]))
            p[name][index] = _changed(rng, name, p[name][index])
        else:
            p[name] = _changed(rng, name, p[name])
        if p["rank"] != len(p["global_dim"]) or p["data_type"] not in ELEMENTS:
            break  # Further changes would need arrays that match the rank, and a known size of an element.
    return p


LEGAL = {"tiled": legal_tiled, "im2col": legal_im2col, "im2col_wide": legal_im2col_wide}


def cases(count: int, seed: int) -> Iterator[Arguments]:
    rng = Random(seed)
    for _ in range(count):
        p = LEGAL[rng.choices(list(LEGAL), (0.7, 0.2, 0.1))[0]](rng)
        yield p if rng.random() < 0.3 else at_boundary(rng, p)
