"""Functions for which PTX permits an error; the simulator returns the exact value, rounded to nearest.

Source: PTX ISA, "div", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2" and "tanh".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .floating import narrow, of_type, propagating
from .table import Pure, Spelling, pure

Array = Any  # The type Array includes NumPy arrays and NumPy scalars.

_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "rcp": lambda a: 1.0 / a,
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "lg2": np.log2,
    "ex2": np.exp2,
    "tanh": np.tanh,
}
_HALF = {"ex2": ("f16", "f16x2", "bf16", "bf16x2"), "tanh": ("f16", "f16x2", "bf16", "bf16x2")}


def functions(s: Spelling) -> Pure:
    how = s.choice("approx", "full") if s.root == "div" else s.choice("approx")
    type_ = s.type("f32", *(("f64",) if s.root in ("rcp", "rsqrt") else ()), *_HALF.get(s.root, ()))
    if type_ == "f64":
        function = _FUNCTIONS[s.root]
        compute = _upper_half(function) if s.flag("ftz") else function if s.root == "rsqrt" else s.unknown()
        return replace(pure(f"{s.root}.approx.ftz.f64", "f64", "f64", propagating(compute)), approximate=True)
    ftz = s.root != "tanh" and s.flag("ftz")
    if type_ in ("bf16", "bf16x2") and s.root == "ex2" and not ftz:
        s.unknown()  # The instruction ex2.approx for bf16 requires the modifier .ftz.
    if type_ in ("f16", "f16x2") and ftz:
        s.unknown()
    if s.root == "div":
        function, count = (_quotient if how == "approx" else np.divide), 2
    else:
        function, count = _FUNCTIONS[s.root], 1
    found = of_type(s, s.root, type_, count, lambda format: narrow(format, function, ftz=ftz))
    return replace(found, approximate=True)


def _upper_half(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Return a function that computes the upper 32 bits of a result from the upper 32 bits of a number.

    Subnormal numbers count as zero.
    """
    upper, half = np.uint64(0xFFFFFFFF00000000), np.uint64(1 << 31)

    def flushed(bits: Array) -> Array:
        normal = np.where(bits & np.uint64(0x7FF << 52) != 0, bits, bits & np.uint64(1 << 63))
        return normal.view(np.float64)

    def compute(a: Array) -> Array:
        found = np.asarray(function(flushed(np.asarray(a).view(np.uint64) & upper)))
        finite = np.isfinite(found)
        return np.where(finite, flushed(found.view(np.uint64) + half & upper), found)

    return compute


def _quotient(a: Array, b: Array) -> Array:
    """Return a * (1 / b), where a reciprocal of more than 2 ** 126 is flushed to zero."""
    huge = (np.abs(b) > 2.0**126) & np.isfinite(b)
    return np.where(huge, a * np.copysign(0.0, b), a / b)
