"""Instructions that exchange values between the lanes of a warp: shfl, vote, match, redux, activemask.

Source: PTX ISA, "shfl.sync", "vote.sync", "match.sync", "redux.sync" and "activemask". Sources are [warps, 32].
`active` contains the lanes that execute the instruction together. Every executing lane is in the mask, and has the same
mask.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .._matrix.formats import F32
from .floating import extreme
from .table import DTYPES, Pure, Spelling, entry, pure

Array = Any

WARP = 32
_LANES = np.arange(WARP)
_BITS = np.uint32(1) << np.arange(WARP, dtype=np.uint32)


def ballot(lanes: Array) -> Array:
    """Return booleans [..., 32] as one word for each warp."""
    return np.where(lanes, _BITS, np.uint32(0)).sum(-1, dtype=np.uint32)


def _in_mask(mask: Array) -> Array:
    """Return the lanes of masks, [warps, 32], as booleans [warps, lane with the mask, lane in the mask]."""
    return mask[..., None] & _BITS != 0


@entry("shfl")
def shuffle(s: Spelling) -> Pure:
    """Return the instruction shfl, by which a lane reads the value a of another lane.

    If the other lane is outside its segment, the lane reads its own value and p is false. The low bits of c contain the
    clamp value. Bits 8 to 12 of c select the bits of a lane's number that determine its segment.
    """
    if not s.flag("sync"):
        s.unknown()
    mode = s.choice("up", "down", "bfly", "idx")
    s.type("b32")
    two = s.layout[0] == "p"

    def compute(active: Array, a: Array, b: Array, c: Array, mask: Array) -> Any:
        source, inside = shuffle_sources(mode, b, c)
        value = np.take_along_axis(np.broadcast_to(a, active.shape), np.broadcast_to(source, active.shape), axis=-1)
        return (value, inside) if two else value

    return pure("shfl.sync", "b32 pred" if two else "b32", "b32 b32 b32 b32", compute, warp=True)


def shuffle_sources(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """Return the source lane of each lane, and whether the source lane is in its segment.

    If the source lane is outside the segment, the lane reads its own value.
    """
    lane, b, clamp = _LANES, np.asarray(b).astype(np.int64) & 31, np.asarray(c).astype(np.int64) & 31
    segment = np.asarray(c).astype(np.int64) >> 8 & 31
    last, first = (lane & segment) | (clamp & ~segment), lane & segment
    other, inside = _other(mode, lane, b, first, last, segment)
    return np.where(inside, other, lane) & 31, inside


def _other(mode: str, lane: Array, b: Array, first: Array, last: Array, segment: Array) -> tuple[Array, Array]:
    if mode == "up":
        return lane - b, lane - b >= last  # In the mode "up" of shfl, the clamp value is the first lane of the segment.
    if mode == "down":
        return lane + b, lane + b <= last
    other = lane ^ b if mode == "bfly" else first | b & ~segment
    return other, other <= last


@entry("vote")
def vote(s: Spelling) -> Pure:
    if not s.flag("sync"):
        s.unknown()
    mode = s.choice("all", "any", "uni", "ballot")
    type_ = s.type("b32" if mode == "ballot" else "pred")

    def compute(active: Array, a: Array, mask: Array) -> Array:
        members = _in_mask(mask) & active[:, None, :]
        a = np.broadcast_to(a, active.shape)[:, None, :]
        if mode == "ballot":
            return ballot(members & a)
        every, some = (a | ~members).all(-1), (a & members).any(-1)
        return {"all": every, "any": some, "uni": every | ~some}[mode]

    return pure("vote.sync", type_, "pred b32", compute, warp=True)


@entry("match")
def match(s: Spelling) -> Pure:
    """Return the instruction match, which finds the lanes of the mask with the same value.

    match.all returns the mask if the values of all lanes are equal, and otherwise 0.
    """
    mode = s.choice("any", "all")
    if not s.flag("sync"):
        s.unknown()
    type_ = s.type("b32", "b64")
    two = s.layout[0] == "p"
    if two and mode == "any":
        s.unknown()

    def compute(active: Array, a: Array, mask: Array) -> Any:
        members = _in_mask(mask) & active[:, None, :]
        a = np.broadcast_to(a, active.shape)
        equal = ballot(members & (a[:, :, None] == a[:, None, :]))
        if mode == "any":
            return equal
        together = equal == ballot(members)
        found = np.where(together, equal, np.uint32(0))
        return (found, together) if two else found

    return pure("match.sync", "b32 pred" if two else "b32", f"{type_} b32", compute, warp=True)


_REDUCTIONS: dict[str, tuple[np.ufunc, int]] = {
    "add": (np.add, 0),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


@entry("redux")
def reduce(s: Spelling) -> Pure:
    """Return the instruction redux, which reduces a over the lanes of the mask, for example to a sum; sums wrap."""
    if not s.flag("sync"):
        s.unknown()
    operation = s.choice("add", "min", "max", "and", "or", "xor")
    if s.words[-1:] == ["f32"]:
        return _float_extreme(s, operation)
    type_ = s.type("b32") if operation in ("and", "or", "xor") else s.type("u32", "s32")
    dtype = DTYPES[type_]
    limits = np.iinfo(dtype)
    extremes: dict[str, tuple[np.ufunc, int]] = {"min": (np.minimum, limits.max), "max": (np.maximum, limits.min)}
    ufunc, neutral = extremes.get(operation) or _REDUCTIONS[operation]
    nothing = np.array(neutral, np.int64).astype(dtype)

    def compute(active: Array, a: Array, mask: Array) -> Array:
        members = _in_mask(mask) & active[:, None, :]
        return ufunc.reduce(
            np.where(members, np.broadcast_to(a, active.shape)[:, None, :], nothing), axis=-1, dtype=dtype
        )

    return pure("redux.sync", type_, f"{type_} b32", compute, warp=True)


def _float_extreme(s: Spelling, operation: str) -> Pure:
    """Return the redux of f32, which is a min or max, or with .abs of magnitudes; only .NaN propagates a NaN."""
    s.type("f32")
    if operation not in ("min", "max"):
        s.unknown()
    magnitudes, of_two = s.flag("abs"), extreme(operation, s.flag("NaN"), False)

    def compute(active: Array, a: Array, mask: Array) -> Array:
        members = _in_mask(mask) & active[:, None, :]
        values = F32.decode(np.broadcast_to(np.abs(a) if magnitudes else a, active.shape))[:, None, :]
        neutral = np.inf if operation == "min" else -np.inf
        given = np.where(members, values, neutral)
        only_nan = (np.isnan(values) | ~members).all(axis=-1)
        found = functools.reduce(of_two, np.moveaxis(given, -1, 0))
        return F32.encode(np.where(only_nan, np.nan, found))

    return pure("redux.sync", "f32", "f32 b32", compute, warp=True)


@entry("activemask")
def active_mask(s: Spelling) -> Pure:
    s.type("b32")

    def compute(active: Array) -> Array:
        return np.broadcast_to(ballot(active)[:, None], active.shape)

    return pure("activemask", "b32", "", compute, warp=True)
