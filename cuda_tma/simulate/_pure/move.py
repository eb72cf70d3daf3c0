"""The instruction mov, which copies a value between registers, and packs or unpacks vectors (PTX ISA, "mov")."""

from __future__ import annotations

from typing import Any

import numpy as np

from .table import Pure, Spelling, entry, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.

_TYPES = (*(f"{kind}{width}" for kind in "bus" for width in (16, 32, 64)), "f32", "f64", "pred", "f16", "bf16")
_WIDTHS = {"b16": 16, "b32": 32, "b64": 64}


@entry("mov")
def moves(s: Spelling) -> Pure:
    """Return the instruction mov for registers; the first element of a vector contains the low bits.

    Another function binds addresses and special registers.
    """
    type_ = s.type(*_TYPES, "b128")
    if len(s.layout) != 2 or s.layout[1] == "@":
        s.unknown()
    to, source = (int(each[1:]) if each.startswith("v") else 0 for each in s.layout)
    if not to and not source:
        return pure("mov", type_, type_, lambda a: a)
    if type_ == "b128" and {to, source} == {0, 2}:
        return pure("mov", "b64 b64", type_, _halves) if to else pure("mov", type_, "b64 b64", _joined)
    width = _WIDTHS.get(type_, 0) // (to or source)
    if (to and source) or width not in (8, 16, 32):
        s.unknown()
    parts = " ".join([f"b{width}"] * (to or source))
    if to:
        return pure("mov", parts, type_, _unpack(to, width))
    return pure("mov", type_, parts, _pack(width, np.dtype(f"u{_WIDTHS[type_] // 8}")))


def _halves(a: Array) -> tuple[Array, Array]:
    """Return the halves of items of 16 bytes, which NumPy represents as complex numbers of two floats."""
    whole = np.asarray(a)
    return whole.real.copy().view(np.uint64), whole.imag.copy().view(np.uint64)


def _joined(low: Array, high: Array) -> Array:
    whole = np.empty(np.broadcast(low, high).shape, np.complex128)
    whole.real[...], whole.imag[...] = np.asarray(low).view(np.float64), np.asarray(high).view(np.float64)
    return whole


def _unpack(count: int, width: int) -> Any:
    narrow = np.dtype(f"u{width // 8}")

    def compute(a: Array) -> tuple[Array, ...]:
        return tuple((a >> a.dtype.type(width * part)).astype(narrow) for part in range(count))

    return compute


def _pack(width: int, dtype: np.dtype) -> Any:
    def compute(*parts: Array) -> Array:
        word = parts[0].astype(dtype)
        for place, part in enumerate(parts[1:], 1):
            word = word | part.astype(dtype) << dtype.type(width * place)
        return word

    return compute
