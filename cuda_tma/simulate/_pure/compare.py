"""Instructions that compare or select values.

Source: PTX ISA, "Comparison and Selection Instructions" and "Half Precision Comparison Instructions".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._matrix.formats import F32, FORMATS
from .table import DTYPES, Pure, Spelling, entry, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.
Comparison = Callable[[Array, Array], Array]

_INTEGERS = ("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64")
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
_ORDERED: dict[str, Comparison] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPERATIONS = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


def _comparison(s: Spelling, type_: str) -> Comparison:
    """Return the comparison that the opcode specifies.

    For floating-point numbers, ne is false for NaN, and the unordered comparisons such as equ and neu are true for NaN.
    """
    if type_ not in _FLOATS:
        among = [*_ORDERED] if type_[0] != "b" else ["eq", "ne"]
        word = s.choice(*among, *(_UNSIGNED if type_[0] == "u" else ()))
        return _ORDERED[_UNSIGNED.get(word, word)]
    word = s.choice(*_ORDERED, *(f"{each}u" for each in _ORDERED), "num", "nan")
    if word == "num":
        return lambda a, b: ~_unordered(a, b)
    if word == "nan":
        return _unordered
    if word == "ne":
        return lambda a, b: (a != b) & ~_unordered(a, b)
    if word.endswith("u"):
        ordered = _ORDERED[word[:-1]]
        return lambda a, b: ordered(a, b) | _unordered(a, b)
    return _ORDERED[word]


def _on_bits(s: Spelling, type_: str, compare: Comparison) -> Comparison:
    """Return a comparison of the bits in registers, which compares both halves of a pair.

    For a pair, the last dimension of the result contains the two halves.
    """
    ftz = type_ in ("f16", "f16x2", "f32") and s.flag("ftz")
    if type_ not in _FLOATS or type_ == "f64" or (type_ == "f32" and not ftz):
        return compare
    format = FORMATS[type_.removesuffix("x2")]

    def decoded(value: Array) -> Array:
        if type_.endswith("x2"):
            value = np.ascontiguousarray(value)[..., None].view(np.uint16).reshape(*np.shape(value), 2)
        value = format.decode(value)
        return format.flush(value) if ftz else value

    return lambda a, b: compare(decoded(a), decoded(b))


@entry("setp")
def set_predicate(s: Spelling) -> Pure:
    """Return the instruction setp: p is the comparison, and q is its negation, each combined with the third source.

    The third source is optional. For pairs, p and q are the results of the lower and the upper half.
    """
    type_ = s.type(*_INTEGERS, *_FLOATS)
    operation = s.choice(*_OPERATIONS, default="")
    compare = _on_bits(s, type_, _comparison(s, type_))
    combine = _OPERATIONS.get(operation)
    sources = f"{type_} {type_}" + (" pred" if combine else "")
    two = s.layout[0] == "p"
    if type_.endswith("x2"):
        if not two:
            s.unknown()
        return pure("setp", "pred pred", sources, _of_halves(compare, combine))
    if not two and combine is None:
        return pure("setp", "pred", sources, compare)

    def compute(a: Array, b: Array, c: Array = None) -> Any:
        found = compare(a, b)
        p, q = (combine(each, c) if combine else each for each in (found, ~found))
        return (p, q) if two else p

    return pure("setp", "pred pred" if two else "pred", sources, compute)


def _of_halves(compare: Comparison, combine: Comparison | None) -> Callable[..., Any]:
    def compute(a: Array, b: Array, c: Array = None) -> Any:
        found = compare(a, b)
        low, high = found[..., 0], found[..., 1]
        return (combine(low, c), combine(high, c)) if combine else (low, high)

    return compute


@entry("set")
def set_value(s: Spelling) -> Pure:
    """Return the instruction set, whose result is all ones or 1.0 if the comparison is true.

    If the comparison is false, the result is 0.
    """
    type_ = s.type(*_INTEGERS, *_FLOATS)
    result = s.type("u16", "s16", "u32", "s32", "f32", "f16", "f16x2", "bf16", "bf16x2")
    if type_.endswith("x2") != result.endswith("x2") and not (type_.endswith("x2") and result in ("u32", "s32")):
        s.unknown()
    if result == "f32" and type_ in ("f16", "bf16"):
        s.unknown()
    operation = s.choice(*_OPERATIONS, default="")
    compare = _on_bits(s, type_, _comparison(s, type_))
    combine = _OPERATIONS.get(operation)
    pairs = type_.endswith("x2")
    true = _true(result, pairs)

    def compute(a: Array, b: Array, c: Array = None) -> Array:
        found = compare(a, b)
        if combine:
            found = combine(found, c[..., None] if pairs else c)
        value = np.where(found, true, np.zeros_like(true))
        return value.view(np.uint32)[..., 0].view(DTYPES[result]) if pairs else value

    return pure("set", result, f"{type_} {type_}" + (" pred" if combine else ""), compute)


def _true(result: str, pairs: bool) -> Array:
    if result[0] in "us":
        return ~np.zeros((), np.uint16 if pairs else DTYPES[result])
    return np.float32(1) if result == "f32" else FORMATS[result.removesuffix("x2")].encode(np.float64(1))


@entry("selp")
def select_by_predicate(s: Spelling) -> Pure:
    type_ = s.type("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
    return pure("selp", type_, f"{type_} {type_} pred", lambda a, b, c: np.where(c, a, b))


@entry("slct")
def select_by_sign(s: Spelling) -> Pure:
    """Return the instruction slct, which selects a if c >= 0, and otherwise b.

    A value of -0 for c counts as 0, and a NaN counts as less than 0.
    """
    by = s.type("s32", "f32")
    type_ = s.type("b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64")
    flush = F32.flush if by == "f32" and s.flag("ftz") else (lambda c: c)
    return pure("slct", type_, f"{type_} {type_} {by}", lambda a, b, c: np.where(flush(c) >= 0, a, b))
