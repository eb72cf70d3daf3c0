"""Results of scalar instructions that PTX leaves undefined, or that ptxas computes differently from PTX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.scalar_sequences import Placed, Step


def may_differ(step: Step, one: int, other: int) -> bool:
    """Return whether two results may differ, because PTX does not define the bits of a NaN from abs, neg, cvt, or an
    f64 instruction."""
    words = step.text.partition(" ")[0].split(".")
    if words[0] not in ("abs", "neg", "cvt") and "f64" not in words:
        return False
    result = next((word for word in words[1:] if word in _NANS), None)
    return result is not None and all(_has_nan(bits, one ^ other, *_NANS[result]) for bits in (one, other))


def loses_sat(step: Placed, steps: Sequence[Placed], used: tuple[int, ...], found: int) -> bool:
    """Return whether an instruction is a mad.hi.sat.s32 that wraps and is next to a product of the same two registers.

    For both instructions, ptxas 12.8, 13.0 and 13.1 emit one IMAD.WIDE from -O1 on, which does not saturate (seen in
    machine code, and on an H200 with driver 580).
    """
    if not step.step.text.startswith("mad.hi.sat.s32"):
        return False
    factors = {step.reads["a"], step.reads["b"]}
    products = (each for each in steps if each is not step and each.step.text.startswith(("mul.", "mad.")))
    shared = any(factors == {each.reads.get("a"), each.reads.get("b")} for each in products)
    a, b, c = (each - ((each & 1 << 31) << 1) for each in used)
    return shared and found == (a * b >> 32) + c & 0xFFFFFFFF


_NANS = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52), "f16x2": (5, 10), "bf16x2": (8, 7)}


def _has_nan(bits: int, differing: int, exponent_bits: int, fraction_bits: int) -> bool:
    """Return whether two results differ only in parts that are NaN."""
    width = 1 + exponent_bits + fraction_bits
    infinity = (1 << exponent_bits) - 1 << fraction_bits
    parts = [(bits >> at & (1 << width) - 1, differing >> at & (1 << width) - 1) for at in range(0, 64, width)]
    return all((part & (1 << width - 1) - 1) > infinity for part, differs in parts if differs)
