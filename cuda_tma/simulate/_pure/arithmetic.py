"""The opcodes that integers and floating-point numbers share; the type selects one of the two."""

from __future__ import annotations

from . import approximate, floating, integer
from .table import Builder, Pure, Spelling, entry


def _either(of_integers: Builder, of_floats: Builder) -> Builder:
    return lambda s: (of_floats if s.words and s.words[-1] in floating.ARITHMETIC else of_integers)(s)


entry("add", "sub")(_either(integer.sums, floating.sums))
entry("mul")(_either(integer.products, floating.products))
entry("mad")(_either(integer.sums_of_products, floating.sums_of_products))
entry("abs", "neg")(_either(integer.magnitudes, floating.magnitudes))
entry("min", "max")(_either(integer.extremes, floating.extremes))


def _rounded_or_approximate(rounded: Builder) -> Builder:
    return lambda s: (approximate.functions if {"approx", "full"} & {*s.words} else rounded)(s)


entry("div")(_either(integer.quotients, _rounded_or_approximate(floating.quotients)))
entry("rcp")(_rounded_or_approximate(floating.reciprocals))
entry("sqrt")(_rounded_or_approximate(floating.roots))


@entry("rsqrt", "sin", "cos", "lg2", "ex2", "tanh")
def approximations(s: Spelling) -> Pure:
    return approximate.functions(s)
