"""The table of instructions that depend only on their sources; `lookup` returns the function of an instruction.

An entry belongs to one spelling of an opcode, such as ``add.rn.ftz.f32``. The builder for the first word of the opcode
removes the supported modifiers one by one. If modifiers remain, the spelling is not supported, and `lookup` returns
None.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from .._ptx import TYPE_BYTES, Immediate, Instruction, Operand, Pair, Special, Symbol, Vector

BIT = np.dtype(np.bool_)
_KINDS = {"b": "u", "u": "u", "s": "i"}

# The table maps a PTX type to the NumPy type of an operand, which is an unsigned integer for f16, bf16, tf32 and packed
# types.
DTYPES: dict[str, np.dtype] = {
    name: np.dtype(f"{_KINDS.get(name[0], 'u') if name not in ('f32', 'f64') else 'f'}{size}")
    for name, size in TYPE_BYTES.items()
    if 0 < size <= 8
} | {name: np.dtype(np.uint32) for name in ("u16x2", "s16x2")}
DTYPES |= {"pred": BIT, "b128": np.dtype(np.complex128), "e4m3x2": np.dtype(np.uint16), "e5m2x2": np.dtype(np.uint16)}
DTYPES["f32x2"] = np.dtype(np.uint64)


@dataclass(frozen=True)
class Pure:
    """One spelling of an instruction as a function of its sources.

    Attributes
    ----------
    section : str
        The title of the section in the PTX ISA.
    results, sources : tuple of numpy.dtype
        The type of each operand, where each element of a vector or pair is one operand. A source is the low bits of its
        register. A result fills its register: it is sign-extended if its dtype is signed, otherwise zero-extended.
    compute : callable
        The function ``compute(*sources)``, whose arguments are scalars and arrays of one shape. The function returns an
        array, or a tuple of several results. The function does not change a source, but may return a source. The caller
        uses ``np.errstate(all="ignore")``.
    warp : bool
        Whether lanes read the registers of other lanes. The sources are then ``[warps, 32]`` and follow ``active``, the
        executing lanes.
    carry_in, carry_out : bool
        Whether CC.CF is an additional last source, or an additional last result.
    approximate : bool
        Whether PTX permits an error, so that the bits of the result may differ on hardware.
    fault : callable or None
        The function ``fault(active, *sources)`` of an instruction of warps. The function returns a description of a
        source with an invalid value, the rule and the remedy, or an empty text.
    """

    section: str
    results: tuple[np.dtype, ...]
    sources: tuple[np.dtype, ...]
    compute: Callable[..., Any]
    warp: bool = False
    carry_in: bool = False
    carry_out: bool = False
    approximate: bool = False
    fault: Callable[..., str] | None = None


class Unknown(Exception):
    """The exception for a spelling that the table does not contain."""


# The assembler ptxas also accepts .relu, .rn and .satfinite after the types, and CUTLASS uses this order.
_AT_WILL = ("relu", "rn", "satfinite")


class Spelling:
    """The modifiers of an opcode, from which a builder removes the modifiers that it supports."""

    def __init__(self, opcode: tuple[str, ...], layout: tuple[str, ...]):
        self.root = opcode[0]
        # The layout of an operand is "" for a plain operand, "v4" for a vector, "p" for a pair, or "@" for an address.
        self.layout = layout
        words = list(opcode[1:])
        end = next((i for i in range(len(words), 0, -1) if words[i - 1] not in _AT_WILL), 0)
        self.words = words[end:] + words[:end]

    def flag(self, word: str) -> bool:
        """Remove a modifier, and return whether it was present."""
        if word not in self.words:
            return False
        self.words.remove(word)
        return True

    def choice(self, *words: str, default: str | None = None) -> str:
        """Remove and return the one modifier that is in `words`; without `default`, a modifier is required."""
        found = [word for word in self.words if word in words]
        if len(found) > 1 or not (found or default is not None):
            self.unknown()
        if not found:
            return str(default)
        self.words.remove(found[0])
        return found[0]

    def type(self, *among: str) -> str:
        """Remove and return the last modifier, which must be one of the given types."""
        if not self.words or self.words[-1] not in among:
            self.unknown()
        return self.words.pop()

    def unknown(self) -> NoReturn:
        raise Unknown


Builder = Callable[[Spelling], Pure]
_BUILDERS: dict[str, Builder] = {}


def entry(*roots: str) -> Callable[[Builder], Builder]:
    """Return a decorator that registers the builder of all opcodes that begin with the given words."""

    def register(builder: Builder) -> Builder:
        assert not _BUILDERS.keys() & {*roots}
        _BUILDERS.update(dict.fromkeys(roots, builder))
        return builder

    return register


def pure(section: str, results: str, sources: str, compute: Callable[..., Any], **rest: Any) -> Pure:
    """Return a `Pure` whose operand types are texts: ``pure("shl", "b32", "b32 u32", ...)``."""
    given, taken = (tuple(DTYPES[name] for name in names.split()) for names in (results, sources))
    return Pure(section, given, taken, compute, **rest)


def lookup(instruction: Instruction) -> Pure | None:
    """Return the function of an instruction; None if the table does not contain the instruction.

    Examples
    --------
    >>> import numpy as np
    >>> from cuda_tma.simulate._ptx import Immediate, Instruction, Register
    >>> shift = lookup(Instruction(("shl", "b32"), (Register(0), Register(1), Immediate(4))))
    >>> assert shift is not None
    >>> shift.section, shift.compute(np.array([1, 2], np.uint32), np.uint32(4))
    ('shl', array([16, 32], dtype=uint32))
    """
    found = _built(instruction.opcode, tuple(_layout(operand) for operand in instruction.operands))
    if found is None or _spread(instruction.operands) != len(found.results) + len(found.sources):
        return None
    return found


@lru_cache(maxsize=4096)
def _built(opcode: tuple[str, ...], layout: tuple[str, ...]) -> Pure | None:
    builder = _BUILDERS.get(opcode[0])
    if builder is None:
        return None
    spelling = Spelling(opcode, layout)
    try:
        found = builder(spelling)
    except Unknown:
        return None
    return None if spelling.words else found


def _layout(operand: Operand) -> str:
    if isinstance(operand, Vector):
        return f"v{len(operand.elements)}"
    if isinstance(operand, Pair):
        return "p"
    return "@" if isinstance(operand, Symbol | Special) else ""


def _spread(operands: tuple[Operand, ...]) -> int:
    return sum(len(each.elements) if isinstance(each, Vector) else 1 + isinstance(each, Pair) for each in operands)


def immediate(operand: Immediate, dtype: np.dtype) -> Any:
    """Return a number in the PTX as a scalar of a dtype.

    An integer wraps. A floating-point number becomes the nearest number of the dtype, or its bits for an integer of the
    same width.
    """
    if not operand.type:
        if dtype.kind == "f":
            return dtype.type(operand.value)
        if dtype == BIT:
            return np.bool_(operand.value)
        if dtype.itemsize > 8:
            raise ValueError(f"a number has 8 bytes, but the operand has {dtype.itemsize}")
        bits = operand.value & (1 << 8 * dtype.itemsize) - 1
        return np.array(bits, f"u{dtype.itemsize}").view(dtype)[()]
    width = 4 if operand.type == "f32" else 8
    number = np.array(operand.value, f"u{width}").view(f"f{width}")
    if dtype.kind == "f":
        return number.astype(dtype)[()]
    if dtype.itemsize != width:
        raise ValueError(f"a number of type {operand.type} has {width} bytes, but the operand has {dtype.itemsize}")
    return number.view(dtype)[()]
