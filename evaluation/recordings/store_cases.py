"""Random TMA stores and reductions for ``record_stores.py``; some are documented, and others may fault.

A case contains ``params`` (driver order, ``global_offset`` in place of the address), ``coordinates``, and ``op``
("store", a reduction, or "load"). The fields ``values`` and ``smem_seed`` determine the bytes in global and shared
memory (:func:`replay_stores.content`). Cases with a known outcome come first. The rare cases follow, which may end in a
fault or in an undocumented result.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from recordings import params_from_recording
from replay_stores import FLOATS, MEMORY_BYTES

from cuda_tma._data_type import ELEMENTS, element_bits
from cuda_tma._limits import TMA_SINCE
from cuda_tma._swizzle_pattern import SPAN_BYTES
from cuda_tma.emulate import REDUCTIONS
from cuda_tma.enums import TensorMapDataType as T
from cuda_tma.smem import smem_bytes
from cuda_tma.smem._layout import chunk_elements, tensor_bytes

SMEM_LIMIT_BYTES = 64 << 10
OPS = ("store", *REDUCTIONS, "load")
_SM90_TYPES = tuple(t for t in T if ELEMENTS[t].since == TMA_SINCE)
_LARGEST_DIM = (0, 300, 80, 24, 12, 8)  # The tuple _LARGEST_DIM contains the largest extent for each rank.
_LARGEST_BOX = (0, 1, 33, 9, 5, 4)
_WIDEST_BYTES = 256  # Without a swizzle, a row of a box has at most 256 bytes.


# Parameters ---------------------------------------------------------------------------------------------------------


def _strides(rng, inner_bytes: int, dims: list[int], multiple: int) -> list[int]:
    strides: list[int] = []
    for extent in dims[:-1]:
        size = strides[-1] * extent if strides else inner_bytes * extent
        strides.append((-(-size // multiple) + int(rng.integers(0, 3))) * multiple)
    return strides


def _tensor(rng, data_type: T, rank: int, interleave: int) -> dict:
    strided = rng.random() < 0.3
    dims = [int(rng.integers(1, _LARGEST_DIM[rank])) for _ in range(rank)]
    unit = 16 * interleave or element_bits(data_type) // 8
    return {
        "data_type": int(data_type),
        "rank": rank,
        "global_offset": 1024 * int(rng.integers(0, 8)),
        "global_dim": dims,
        "global_strides": _strides(rng, unit, dims, 32 if interleave == 2 else 16),
        "element_strides": [int(rng.choice([1, 2, 3])) if strided else 1 for _ in range(rank)],
        "interleave": interleave,
        "l2_promotion": int(rng.integers(0, 4)),
        "oob_fill": 0,
    }


def _inner(rng, data_type: T, span_bytes: int) -> int:
    """Return a number of elements that is a multiple of 16 bytes, within the span and the driver's limit of 256
    elements.
    """
    return min(256, int(rng.integers(1, span_bytes // 16 + 1)) * 16 // (element_bits(data_type) // 8))


def tiled(rng, data_type: T, *, usual: bool = True) -> dict:
    """Return random tiled parameters. If `usual` is false, combine an interleave with a swizzle that it does not
    permit.
    """
    interleave = int(rng.choice([0, 0, 0, 1, 2] if usual else [1, 2]))
    rank = int(rng.integers(3 if interleave else 1, 6))
    swizzle = (int(rng.integers(0, 4)), 0, 1)[interleave]
    if not usual:
        swizzle = int(rng.choice([s for s in range(4) if s != swizzle]))
    outer = [int(rng.integers(1, _LARGEST_BOX[rank])) for _ in range(rank - 1)]
    return _tensor(rng, data_type, rank, interleave) | {
        "kind": "tiled",
        "box_dim": [_inner(rng, data_type, 16 * interleave or SPAN_BYTES.get(swizzle, _WIDEST_BYTES)), *outer],
        "swizzle": swizzle,
    }


def im2col(rng, data_type: T, *, inside: bool = True, interleave: int = 0) -> dict:
    """Return random im2col parameters. With `inside`, the pixel box is within the tensor, as PTX ISA requires for
    stores.
    """
    rank = int(rng.integers(4 if interleave else 3, 6))
    swizzle = (int(rng.integers(0, 4)), 0, 1)[interleave]
    p = _tensor(rng, data_type, rank, interleave)
    spatial = _spatial(p)
    reach = 0 if inside else 2
    lower = [int(rng.integers(-reach, 1 + min(2, n - 1))) for n in spatial]
    least = [max(-2, low + 1 - n) for low, n in zip(lower, spatial, strict=True)]
    return p | {
        "kind": "im2col",
        "pixel_box_lower_corner": lower,
        "pixel_box_upper_corner": [int(rng.integers(n, 1 + reach)) for n in least],
        "channels_per_pixel": _inner(rng, data_type, 16 * interleave or SPAN_BYTES.get(swizzle, 128)),
        "pixels_per_column": int(rng.integers(1, 64)),
        "swizzle": swizzle,
    }


def _first_spatial(p: dict) -> int:
    return 0 if p["interleave"] else 1


def _spatial(p: dict) -> list[int]:
    return p["global_dim"][_first_spatial(p) :][: p["rank"] - 2]


def _multiple(p: dict) -> int:
    """Return the required divisor of the innermost coordinate."""
    return 1 if p["interleave"] else chunk_elements(p["data_type"])


def start(rng, p: dict) -> list[int]:
    """Return coordinates at which the box is partly inside the tensor, or just outside."""
    at = [n if rng.random() < 0.05 else int(rng.integers(0, n)) for n in p["global_dim"]]
    at[0] = at[0] // _multiple(p) * _multiple(p)
    if p["kind"] == "im2col":
        corners = zip(p["pixel_box_lower_corner"], p["pixel_box_upper_corner"], _spatial(p), strict=True)
        first = _first_spatial(p)
        at[first : first + p["rank"] - 2] = [int(rng.integers(low, n + up)) for low, up, n in corners]
    return at


# Cases --------------------------------------------------------------------------------------------------------------


def _case(rng, p: dict, op: str, coordinates: list[int] | None = None) -> dict:
    kinds = ["random"]
    if op in REDUCTIONS and T(p["data_type"]) in FLOATS:
        kinds += ["tiny", FLOATS[T(p["data_type"])]]
    values = str(rng.choice(kinds))
    return {"params": p, "coordinates": coordinates or start(rng, p), "op": op, "values": values}


def _any(rng) -> tuple[str, T]:
    """Return an operation (a store in two of five cases), and a type with a known result."""
    op = "store" if rng.random() < 0.4 else str(rng.choice(list(REDUCTIONS)))
    return op, T(int(rng.choice(_SM90_TYPES if op == "store" else tuple(REDUCTIONS[op]))))


def _known(rng) -> dict:
    op, data_type = _any(rng)
    return _case(rng, (tiled if rng.random() < 0.7 else im2col)(rng, data_type), op)


def _negative(rng) -> dict:
    """Make one coordinate negative.

    In im2col mode, this coordinate is the coordinate of the channels or of the image.
    """
    op, data_type = _any(rng)
    p = (tiled if rng.random() < 0.7 else im2col)(rng, data_type)
    at = start(rng, p)
    d = int(rng.integers(0, p["rank"])) if p["kind"] == "tiled" else int(rng.choice([0, p["rank"] - 1]))
    at[d] = -int(rng.integers(1, 4)) * (_multiple(p) if d == 0 else 1)
    return _case(rng, p, op, at)


def _unaligned(rng) -> dict:
    op, data_type = _any(rng)
    p = (tiled if rng.random() < 0.7 else im2col)(rng, data_type)
    at = start(rng, p)
    at[0] += int(rng.integers(0, _multiple(p)))
    return _case(rng, p, op, at)


def _box_outside(rng) -> dict:
    op, data_type = _any(rng)
    return _case(rng, im2col(rng, data_type, inside=False, interleave=int(rng.choice([0, 0, 1, 2]))), op)


def _start_outside_box(rng) -> dict:
    op, data_type = _any(rng)
    p = im2col(rng, data_type)
    at = start(rng, p)
    spatial = int(rng.integers(0, p["rank"] - 2))
    before, behind = p["pixel_box_lower_corner"][spatial] - 1, p["pixel_box_upper_corner"][spatial]
    at[1 + spatial] = before if before >= 0 else _spatial(p)[spatial] + behind
    return _case(rng, p, op, at)


def _special_sums(rng) -> dict:
    """Return sums of infinities and NaNs."""
    data_type = T(int(rng.choice(list(FLOATS))))
    return _case(rng, tiled(rng, data_type), "add") | {"values": FLOATS[data_type]}


def _foreign_swizzle(rng) -> dict:
    return _case(rng, tiled(rng, T(int(rng.choice(_SM90_TYPES))), usual=False), "store")


def _interleaved_im2col(rng) -> dict:
    op, data_type = _any(rng)
    return _case(rng, im2col(rng, data_type, interleave=int(rng.integers(1, 3))), op)


def _load_strided(rng) -> dict:
    """Return an im2col load with a stride in every kind of dimension, including the dimension of images."""
    data_type = T(int(rng.choice(_SM90_TYPES)))
    interleave = int(rng.choice([0, 0, 1, 2]))
    p = im2col(rng, data_type, inside=False, interleave=interleave)
    p["element_strides"] = [int(rng.integers(1, 4)) for _ in range(p["rank"])]
    return _case(rng, p, "load")


RARE: tuple[Callable[..., dict], ...] = (
    _negative,
    _unaligned,
    _box_outside,
    _start_outside_box,
    _special_sums,
    _foreign_swizzle,
    _interleaved_im2col,
    _load_strided,
)


def _unknown_pairs(rng) -> list[dict]:
    """Return one case for each operation and type for which the emulator has no result."""
    pairs = [(op, t) for op in REDUCTIONS for t in _SM90_TYPES if t not in REDUCTIONS[op]]
    return [_case(rng, tiled(rng, data_type), op) for op, data_type in pairs]


def fits(case: dict) -> bool:
    """Return whether the tensor and the box fit into the recorder's memory and shared memory."""
    p = params_from_recording(case["params"])
    return p.global_address + tensor_bytes(p) + 16 <= MEMORY_BYTES and smem_bytes(p) <= SMEM_LIMIT_BYTES


def cases(count: int, rare: int, seed: int) -> list[dict]:
    """Return `count` cases with a known outcome, and `rare` cases of each entry of `RARE`. Omit cases that do
    not fit."""
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = [_known(rng) for _ in range(count)] + _unknown_pairs(rng)
    drawn += [draw(rng) for _ in range(rare) for draw in RARE]
    return [case | {"smem_seed": n} for n, case in enumerate(filter(fits, drawn))]
