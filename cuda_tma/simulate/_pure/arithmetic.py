"""The opcodes that integers and floating-point numbers share; the type of an instruction selects one of the two."""

from __future__ import annotations

from typing import Any

from .._matrix.formats import F32, FORMATS
from . import approximate, floating, integer
from .table import Builder, Pure, Spelling, entry, pure

# From sm_100 on, the instructions add, sub and fma accept f16 or bf16 sources with f32.
_WIDENED = (["f32", "f16"], ["f32", "bf16"])


def _either(of_integers: Builder, of_floats: Builder) -> Builder:
    return lambda s: (of_floats if s.words and s.words[-1] in floating.ARITHMETIC else of_integers)(s)


def _or_mixed(builder: Builder, narrow: int) -> Builder:
    """Return a builder that also accepts mixed precision: the first `narrow` sources and the last source become f32.

    Source: PTX ISA, "Mixed Precision Floating Point Instructions".
    """

    def build(s: Spelling) -> Pure:
        if s.words[-2:] not in _WIDENED:
            return builder(s)
        source = s.type("f16", "bf16")
        if "ftz" in s.words:
            s.unknown()
        wide, decode = builder(s), FORMATS[source].decode

        def compute(*given: Any) -> Any:
            widened = (F32.encode(decode(each)) for each in given[:narrow])
            return wide.compute(*widened, *given[narrow:])

        return pure(s.root, "f32", f"{source} " * narrow + "f32", compute)

    return build


entry("add", "sub")(_or_mixed(_either(integer.sums, floating.sums), 1))
entry("fma")(_or_mixed(floating.sums_of_products, 2))
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
