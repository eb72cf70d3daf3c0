"""Logic, shifts and bit fields (PTX ISA, "Logic and Shift Instructions" and "Integer Arithmetic Instructions")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .table import DTYPES, Pure, Spelling, entry, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.

_LOGIC = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


@entry(*_LOGIC)
def logic(s: Spelling) -> Pure:
    type_ = s.type("pred", "b16", "b32", "b64")
    return pure(s.root, type_, f"{type_} {type_}", _LOGIC[s.root])


@entry("not", "cnot")
def complements(s: Spelling) -> Pure:
    type_ = s.type("b16", "b32", "b64") if s.root == "cnot" else s.type("pred", "b16", "b32", "b64")
    if s.root == "cnot":
        return pure("cnot", type_, type_, lambda a: (a == 0).astype(DTYPES[type_]))
    return pure("not", type_, type_, np.invert)


# The number of a function of two bits b and c has the function's result as its bit 2 * b + c.
_OF_TWO: tuple[Callable[[Array, Array], Array], ...] = (
    lambda b, c: b & 0,
    lambda b, c: ~(b | c),
    lambda b, c: ~b & c,
    lambda b, c: ~b,
    lambda b, c: b & ~c,
    lambda b, c: ~c,
    lambda b, c: b ^ c,
    lambda b, c: ~(b & c),
    lambda b, c: b & c,
    lambda b, c: ~(b ^ c),
    lambda b, c: c,
    lambda b, c: ~b | c,
    lambda b, c: b,
    lambda b, c: b | ~c,
    lambda b, c: b | c,
    lambda b, c: ~(b & 0),
)


@entry("lop3")
def logic_of_three(s: Spelling) -> Pure:
    """Return the instruction lop3; bit 4 * a + 2 * b + c of its table is the result for the bits a, b and c."""
    operation = s.choice("and", "or", default="")
    s.type("b32")
    if not operation:
        return pure("lop3", "b32", "b32 b32 b32 b32", _by_table)
    combine = _LOGIC[operation]

    def compute(a: Array, b: Array, c: Array, table: Array, p: Array) -> tuple[Array, Array]:
        value = _by_table(a, b, c, table)
        return value, combine(value != 0, p)

    return pure("lop3", "b32 pred", "b32 b32 b32 b32 pred", compute)


def _by_table(a: Array, b: Array, c: Array, table: Array) -> Array:
    number = int(np.asarray(table).flat[0]) & 0xFF
    with_a, without = _OF_TWO[number >> 4](b, c), _OF_TWO[number & 15](b, c)
    return a & with_a | ~a & without


# ---- shifts ----


@entry("shl", "shr")
def shifts(s: Spelling) -> Pure:
    """Return the instruction shl or shr; a count beyond the width shifts all bits out.

    NumPy computes the same result if the count has the width of the value.
    """
    types = (
        ("b16", "b32", "b64") if s.root == "shl" else ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
    )
    type_ = s.type(*types)
    ufunc = np.left_shift if s.root == "shl" else np.right_shift
    dtype = DTYPES[type_]
    # NumPy reads a shift count above 2 ** 31 as a negative number, which also shifts out all bits.
    if dtype.itemsize == 4:
        return pure(s.root, type_, f"{type_} {type_}", ufunc)
    width = 8 * dtype.itemsize
    return pure(s.root, type_, f"{type_} u32", lambda a, n: ufunc(a, np.minimum(n, width).astype(dtype)))


@entry("shf")
def funnel_shifts(s: Spelling) -> Pure:
    """Return the instruction shf, which shifts the pair (b, a).

    shf.l returns the upper word of the result, and shf.r the lower word.
    """
    left, wrap = s.choice("l", "r") == "l", s.choice("clamp", "wrap") == "wrap"
    s.type("b32")

    def compute(a: Array, b: Array, c: Array) -> Array:
        count = (np.asarray(c) & 31 if wrap else np.minimum(c, 32)).astype(np.uint64)
        both = np.asarray(b).astype(np.uint64) << np.uint64(32) | a
        return (both << count >> np.uint64(32) if left else both >> count).astype(np.uint32)

    return pure("shf", "b32", "b32 b32 u32", compute)


# ---- fields ----


@entry("bfe")
def extract_field(s: Spelling) -> Pure:
    """Return the instruction bfe, which fills bits beyond the most significant bit with a sign.

    The sign is the last bit of the field, or the last bit of the word if the field extends beyond the word.
    """
    type_ = s.type("u32", "u64", "s32", "s64")
    dtype = DTYPES[type_]
    width = 8 * dtype.itemsize

    def compute(a: Array, position: Array, length: Array) -> Array:
        position, length = (np.asarray(each) & 0xFF for each in (position, length))
        field = a >> np.minimum(position, width).astype(dtype)
        if dtype.kind == "u":
            kept = np.where(
                length < width, (np.ones((), dtype) << np.minimum(length, width - 1).astype(dtype)) - 1, ~dtype.type(0)
            )
            return (field & kept).astype(dtype)
        unused = (width - np.clip(length, 1, width)).astype(dtype)
        return np.where(length == 0, 0, np.where(position + length > width, field, field << unused >> unused)).astype(
            dtype
        )

    return pure("bfe", type_, f"{type_} u32 u32", compute)


@entry("bfi")
def insert_field(s: Spelling) -> Pure:
    type_ = s.type("b32", "b64")
    dtype = DTYPES[type_]

    def compute(a: Array, b: Array, position: Array, length: Array) -> Array:
        mask = _ones(length & 0xFF, dtype) << np.minimum(position & 0xFF, 8 * dtype.itemsize).astype(dtype)
        return (b & ~mask) | (a << np.minimum(position & 0xFF, 8 * dtype.itemsize).astype(dtype) & mask)

    return pure("bfi", type_, f"{type_} {type_} u32 u32", compute)


def _ones(count: Array, dtype: np.dtype) -> Array:
    """Return a word whose lowest `count` bits are ones; a larger count means all bits."""
    width = 8 * dtype.itemsize
    every = ~np.zeros_like(count, dtype)
    return np.where(count == 0, np.zeros((), dtype), every >> (width - np.minimum(count, width)).astype(dtype))


@entry("bmsk")
def bit_masks(s: Spelling) -> Pure:
    """Return the instruction bmsk.

    With .clamp, positions and lengths from 32 on cover all bits. With .wrap, only their last five bits count.
    """
    wrap = s.choice("clamp", "wrap") == "wrap"
    s.type("b32")

    def compute(position: Array, length: Array) -> Array:
        if wrap:
            position, length = position & 31, length & 31
        return _ones(np.asarray(length), DTYPES["b32"]) << np.minimum(position, 32).astype(np.uint32)

    return pure("bmsk", "b32", "u32 u32", compute)


@entry("szext")
def extend_sign(s: Spelling) -> Pure:
    """Return the instruction szext, which extends the low bits of a word by their sign or by zeros."""
    wrap = s.choice("clamp", "wrap") == "wrap"
    type_ = s.type("u32", "s32")
    dtype = DTYPES[type_]

    def compute(a: Array, count: Array) -> Array:
        count = np.asarray(count) & 31 if wrap else np.minimum(count, 32)
        unused = (32 - np.maximum(count, 1)).astype(dtype)
        return np.where(count == 0, 0, a << unused >> unused).astype(dtype)

    return pure("szext", type_, f"{type_} u32", compute)


# ---- counting and searching ----


@entry("popc", "clz")
def counts(s: Spelling) -> Pure:
    type_ = s.type("b32", "b64")
    width = 8 * DTYPES[type_].itemsize
    if s.root == "popc":
        return pure("popc", "u32", type_, lambda a: population(a).astype(np.uint32))
    return pure("clz", "u32", type_, lambda a: (width - 1 - highest(a)).astype(np.uint32))


_ONES = np.array([number.bit_count() for number in range(1 << 16)], np.uint8)


def population(value: Array) -> Array:
    """Return the number of bits that are one."""
    value = np.asarray(value)
    steps = range(0, 8 * value.dtype.itemsize, 16)
    return sum(_ONES[value >> value.dtype.type(step) & value.dtype.type(0xFFFF)].astype(np.int64) for step in steps)


def highest(value: Array) -> Array:
    """Return the position of the highest bit that is one; -1 for 0."""
    value = np.asarray(value)
    if value.dtype.itemsize < 8:
        return np.frexp(value.astype(np.float64))[1] - 1
    upper = highest((value >> np.uint64(32)).astype(np.uint32))
    return np.where(upper >= 0, upper + 32, highest(value.astype(np.uint32)))


_NOWHERE = np.uint32(0xFFFFFFFF)


@entry("bfind")
def find_bit(s: Spelling) -> Pure:
    """Return the instruction bfind, which finds the highest one bit, or the highest zero bit of a negative number.

    The result is all ones if the number has no such bit.
    """
    amount = s.flag("shiftamt")
    type_ = s.type("u32", "u64", "s32", "s64")
    dtype = DTYPES[type_]
    unsigned = DTYPES["u" + type_[1:]]

    def compute(a: Array) -> Array:
        place = highest(
            np.asarray(a ^ (a >> dtype.type(8 * dtype.itemsize - 1)) if dtype.kind == "i" else a).astype(unsigned)
        )
        found = 8 * dtype.itemsize - 1 - place if amount else place
        return np.where(place < 0, _NOWHERE, found.astype(np.uint32))

    return pure("bfind", "u32", type_, compute)


@entry("fns")
def find_nth_set(s: Spelling) -> Pure:
    """Return the instruction fns, which finds the n-th one bit from `base` on, downward if n is negative.

    If n is 0, the result is `base` if its bit is one. A result of all ones means that no bit was found.
    """
    s.type("b32")

    def compute(mask: Array, base: Array, offset: Array) -> Array:
        mask, base, offset = np.broadcast_arrays(mask, base, offset)
        places = np.arange(32)
        ones = (mask[..., None] >> places.astype(np.uint32) & 1).astype(bool)
        above = ones & (places >= base[..., None])
        below = ones & (places <= base[..., None])
        nth_above = np.cumsum(above, -1) == offset[..., None]
        nth_below = np.cumsum(below[..., ::-1], -1)[..., ::-1] == -offset[..., None].astype(np.int64)
        exact = ones & (places == base[..., None])
        sign = offset[..., None]
        found = np.where(sign > 0, above & nth_above, np.where(sign < 0, below & nth_below, exact))
        return np.where(found.any(-1), found.argmax(-1).astype(np.uint32), _NOWHERE)

    return pure("fns", "b32", "b32 u32 s32", compute)


@entry("brev")
def reverse(s: Spelling) -> Pure:
    type_ = s.type("b32", "b64")

    def compute(a: Array) -> Array:
        value = np.ascontiguousarray(a)
        bits = np.unpackbits(value[..., None].view(np.uint8)[..., ::-1], axis=-1, bitorder="big")
        return np.packbits(bits, axis=-1, bitorder="little").view(value.dtype)[..., 0].reshape(np.shape(a))

    return pure("brev", type_, type_, compute)


# ---- bytes ----

# For each mode and each selector from 0 to 3, the table contains the bytes of (b, a) that become bytes 0 to 3 (PTX ISA,
# "prmt").
_PERMUTATIONS = {
    "f4e": ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    "b4e": ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    "rc16": ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


@entry("prmt")
def permute(s: Spelling) -> Pure:
    """Return the instruction prmt, whose result consists of four bytes of the eight bytes of (b, a).

    In the general form, bit 3 of a selector replaces the byte by copies of its sign bit.
    """
    mode = s.choice(*_PERMUTATIONS, default="")
    s.type("b32")
    table, nibbles = np.array(_PERMUTATIONS.get(mode, ())), np.arange(0, 16, 4, dtype=np.uint32)

    def compute(a: Array, b: Array, selector: Array) -> Array:
        # If the selector is a constant, the instruction selects the same bytes in every lane.
        if np.ndim(selector) == 0:
            picks = table[selector & 3] if mode else selector >> nibbles & 15
            found = np.stack(np.broadcast_arrays(a, b), -1).view(np.uint8)[..., picks & 7]
        else:
            picks = table[selector & 3] if mode else selector[..., None] >> nibbles & 15
            both = np.asarray(b).astype(np.uint64) << np.uint64(32) | a
            found = (both[..., None] >> (picks & 7).astype(np.uint64) * np.uint64(8)).astype(np.uint8)
        if not mode and (picks & 8).any():
            found = np.where(picks & 8, (found >> 7) * np.uint8(0xFF), found)
        return np.ascontiguousarray(found).view(np.uint32)[..., 0]

    return pure("prmt", "b32", "b32 b32 b32", compute)
