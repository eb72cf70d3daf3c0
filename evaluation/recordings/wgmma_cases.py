"""Operands that reveal how tensor cores add: the kept bits of a product, the order of sums, and the rounding.

A block contains the operands of one wgmma of m64n8 as bits: A (64, k), B (8, k) and C (64, 8), with the k of one
instruction. Each of its 512 results is an independent sum. The same seed gives the same operands. The module needs only
NumPy.
"""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterator

import numpy as np

ROWS, COLUMNS = 64, 8


@dataclasses.dataclass(frozen=True)
class Format:
    """A floating-point type (PTX ISA, "Alternate Floating-Point Data Formats"). The padding is the low bits that the
    format lacks.
    """

    exponent_bits: int
    mantissa_bits: int
    padding_bits: int = 0
    infinities: bool = True  # The type e4m3 has no infinities, and has one NaN.

    @property
    def itemsize(self) -> int:
        return (1 + self.exponent_bits + self.mantissa_bits + self.padding_bits) // 8

    @property
    def bias(self) -> int:
        return 2 ** (self.exponent_bits - 1) - 1

    @property
    def least(self) -> int:
        """Return the least exponent of a normal number."""
        return 1 - self.bias

    @property
    def most(self) -> int:
        return self.bias + (not self.infinities)

    def bits(self, negative: np.ndarray, exponent: np.ndarray, mantissa: np.ndarray) -> np.ndarray:
        """Return the bits of a number from its parts: (1 + mantissa / 2**mantissa_bits) * 2**exponent, or a subnormal
        below `least`.
        """
        field = np.clip(exponent + self.bias, 0, 2**self.exponent_bits - 1 - self.infinities)
        if not self.infinities:  # The value with the largest mantissa and the largest exponent is NaN.
            below = np.minimum(mantissa, 2**self.mantissa_bits - 2)
            mantissa = np.where(field == 2**self.exponent_bits - 1, below, mantissa)
        number = (negative << self.exponent_bits | field) << self.mantissa_bits | mantissa
        return (number << self.padding_bits).astype(np.uint32)

    @property
    def special(self) -> np.ndarray:
        """Return zeros, one, the largest and least numbers, infinities and a NaN, of both signs."""
        top = (2**self.exponent_bits - 1) << self.mantissa_bits
        whole = 2**self.mantissa_bits
        most = top - 1 if self.infinities else top + whole - 2
        ends = [0, self.bias << self.mantissa_bits, 1, whole - 1, whole, most]
        ends += [top, top + 1, top + whole // 2 + 1] if self.infinities else [top + whole - 1]
        sign = 1 << (self.exponent_bits + self.mantissa_bits)
        return (np.array([*ends, *(sign | end for end in ends)], np.uint32) << self.padding_bits).astype(np.uint32)


FORMATS = {
    "bf16": Format(8, 7),
    "f16": Format(5, 10),
    "tf32": Format(8, 10, padding_bits=13),
    "e4m3": Format(4, 3, infinities=False),
    "e5m2": Format(5, 2),
    "f32": Format(8, 23),
}


@dataclasses.dataclass(frozen=True)
class Form:
    """The types of A, B and the accumulators (f32, f16 or s32), and whether sums of s8 and u8 saturate."""

    a: str
    b: str
    sums: str
    satfinite: bool = False

    def __str__(self) -> str:
        return f"{self.a}.{self.b}.{self.sums}{'.satfinite' * self.satfinite}"

    @property
    def k(self) -> int:
        return 32 // (FORMATS[self.a].itemsize if self.a in FORMATS else 1)


FORMS = [
    *(Form(t, t, "f32") for t in ("bf16", "f16", "tf32", "e4m3", "e5m2")),
    Form("e4m3", "e5m2", "f32"),
    *(Form(t, t, "f16") for t in ("f16", "e4m3", "e5m2")),
    *(Form(a, b, "s32", satfinite) for a, b in (("s8", "s8"), ("u8", "s8")) for satfinite in (False, True)),
]


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    suite: str
    a: np.ndarray  # Each integer of the array contains the bits of one element.
    b: np.ndarray
    c: np.ndarray


def _numbers(format: Format, rng: np.random.Generator, exponent: np.ndarray) -> np.ndarray:
    """Return numbers with these exponents. The sign and the mantissa are random."""
    shape = np.shape(exponent)
    exponent = np.clip(exponent, format.least - 1, format.most)
    return format.bits(rng.integers(0, 2, shape), exponent, rng.integers(0, 2**format.mantissa_bits, shape))


def _reach(format: Format, bound: int) -> tuple[int, int]:
    """Return exponents around 0 that the format can represent."""
    return max(format.least, -bound), min(format.most - 1, bound)


def _sometimes(rng: np.random.Generator, share: float, values: np.ndarray, others: np.ndarray | int) -> np.ndarray:
    return np.where(rng.random(values.shape) < share, values, others).astype(np.uint32)


def _spread(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return products and C of many sizes, some of which are 0. These operands are the final test of a model."""
    bound = 12 if form.sums == "f32" else 6
    a, b = (
        _sometimes(rng, 0.8, _numbers(f, rng, rng.integers(low, high + 1, (rows, form.k))), 0)
        for rows, f in ((ROWS, FORMATS[form.a]), (COLUMNS, FORMATS[form.b]))
        for low, high in [_reach(f, bound)]
    )
    low, high = _reach(FORMATS[form.sums], 28)
    c = _numbers(FORMATS[form.sums], rng, rng.integers(low, high, (ROWS, COLUMNS)))
    return a, b, _sometimes(rng, 0.75, c, 0)


def _alignment(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a large product, its opposite, and a small product at another place. The remaining part of the small
    product shows the number of bits that are kept below the largest term. The small product also shows which places of
    k are added together with C.
    """
    f, g, sums = FORMATS[form.a], FORMATS[form.b], FORMATS[form.sums]
    high = min(12 if form.sums == "f32" else 6, f.most - 1)
    place = rng.permuted(np.tile(np.arange(form.k), (ROWS, 1)), axis=1)[:, :3]
    down = rng.integers(0, min(30, high - f.least + f.mantissa_bits) + 1, ROWS)
    a, row = np.zeros((ROWS, form.k), np.uint32), np.arange(ROWS)
    a[row, place[:, 0]], a[row, place[:, 2]] = (f.bits(np.int64(sign), np.int64(high), np.int64(0)) for sign in (0, 1))
    a[row, place[:, 1]] = _numbers(f, rng, high - down)
    lower = _sometimes(rng, 0.25, rng.integers(0, 13, (COLUMNS, form.k)), 0).astype(np.int64)
    b = g.bits(np.int64(0), np.clip(-lower, g.least, 0), np.int64(0))
    c = _numbers(sums, rng, high - rng.integers(0, 30, (ROWS, COLUMNS)))
    opposite = sums.bits(np.int64(1), np.full((ROWS, COLUMNS), high), np.int64(0))
    return a, b, _sometimes(rng, 0.33, c, _sometimes(rng, 0.5, opposite, 0))


def _rounding(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return one or two products, and a C with all its bits, which is larger or smaller than the products."""
    f, g = FORMATS[form.a], FORMATS[form.b]
    a = np.zeros((ROWS, form.k), np.uint32)
    for number in range(2):
        place = rng.integers(0, form.k, ROWS)
        a[np.arange(ROWS), place] = _sometimes(rng, 1 - number / 2, _numbers(f, rng, rng.integers(-2, 3, ROWS)), 0)
    b = _numbers(g, rng, np.zeros((COLUMNS, form.k), np.int64))
    reach = 30 if form.sums == "f32" else 13
    return a, b, _numbers(FORMATS[form.sums], rng, rng.integers(-reach, reach + 1, (ROWS, COLUMNS)))


def _tiny(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return subnormal elements, products and sums."""
    operands = []
    for rows, f in ((ROWS, FORMATS[form.a]), (COLUMNS, FORMATS[form.b])):
        middle = f.least // 2 if f.exponent_bits == 8 else f.least + 2
        normal = _numbers(f, rng, middle + rng.integers(-8, 9, (rows, form.k)))
        large = _numbers(f, rng, rng.integers(-2, 3, (rows, form.k)))
        subnormal = _numbers(f, rng, np.full((rows, form.k), f.least - 1))
        operands.append(_sometimes(rng, 0.6, normal, _sometimes(rng, 0.5, subnormal, large)))
    sums = FORMATS[form.sums]
    lowest = max(sums.least - 1, 2 * FORMATS[form.a].least - 20)
    c = _numbers(sums, rng, lowest + rng.integers(0, 40 if form.sums == "f32" else 6, (ROWS, COLUMNS)))
    return operands[0], operands[1], _sometimes(rng, 0.6, c, 0)


def _special(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return infinities, NaNs, zeros of both signs and extreme values, in a third of the rows and columns."""

    def drawn(format: Format, shape: tuple[int, int]) -> np.ndarray:
        plain = _sometimes(rng, 0.3, _numbers(format, rng, rng.integers(-1, 2, shape)), 0)
        line = rng.random((shape[0], 1)) < 0.34
        return np.where(line & (rng.random(shape) < 2 / form.k), rng.choice(format.special, shape), plain)

    sums = FORMATS[form.sums]
    c = _sometimes(rng, 0.5, rng.choice(sums.special, (ROWS, COLUMNS)), drawn(sums, (ROWS, COLUMNS)))
    return drawn(FORMATS[form.a], (ROWS, form.k)), drawn(FORMATS[form.b], (COLUMNS, form.k)), c


def _low_bits(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tf32 numbers whose padding is not 0."""
    a, b, c = _spread(form, rng)
    return a | rng.integers(0, 2**13, a.shape, np.uint32), b | rng.integers(0, 2**13, b.shape, np.uint32), c


def _integers(form: Form, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return integers of every value, and sums near the limits of int."""
    a, b = (rng.integers(0, 256, (rows, form.k), np.uint32) for rows in (ROWS, COLUMNS))
    near = rng.integers(0, 2**18, (ROWS, COLUMNS), np.uint32)
    return a, b, _sometimes(rng, 0.5, 2**31 - 1 - near, 2**31 + near)


# SUITES maps a suite of cases to its number of blocks.
SUITES: dict[str, tuple[Callable, int]] = {
    "spread": (_spread, 2), "alignment": (_alignment, 3), "rounding": (_rounding, 3), "tiny": (_tiny, 2),
    "special": (_special, 1), "low bits": (_low_bits, 1), "integers": (_integers, 1),
}  # fmt: skip


def blocks(form: Form, seed: int = 1) -> Iterator[Block]:
    """Yield all blocks of a form, in the order of a recording."""
    integers = form.sums == "s32"
    for suite, (draw, count) in SUITES.items():
        if (suite == "integers") != integers or (suite == "low bits" and form.a != "tf32"):
            continue
        for number in range(count):
            key = zlib.crc32(f"{form.a}.{form.b}.{form.sums}/{suite}/{number}".encode())
            yield Block(suite, *draw(form, np.random.Generator(np.random.PCG64([seed, key]))))
