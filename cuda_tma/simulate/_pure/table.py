"""The table of instructions that depend only on their sources; `lookup` returns an instruction as a function.

An entry is built for a spelling, such as ``add.rn.ftz.f32``. The builder for the root of the opcode removes the
supported modifiers one by one. If modifiers remain, the spelling is not supported, and `lookup` returns None.
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

# The type of an operand's bits. f16, bf16, tf32 and packed values are the unsigned integers of their bits.
DTYPES: dict[str, np.dtype] = {
    name: np.dtype(f"{_KINDS.get(name[0], 'u') if name not in ('f32', 'f64') else 'f'}{size}")
    for name, size in TYPE_BYTES.items()
    if 0 < size <= 8
} | {name: np.dtype(np.uint32) for name in ("u16x2", "s16x2")}
DTYPES |= {"pred": BIT, "b128": np.dtype(np.complex128), "e4m3x2": np.dtype(np.uint16), "e5m2x2": np.dtype(np.uint16)}
DTYPES["f32x2"] = np.dtype(np.uint64)


@dataclass(frozen=True)
class Pure:
    """One instruction as a function of its sources.

    Attributes
    ----------
    section : str
        The title of the section in the PTX ISA.
    results, sources : tuple of numpy.dtype
        One for each operand, with vectors and pairs spread. A source is the low bits of its register; a result fills
        its register, zero-extended, or sign-extended if its dtype is signed.
    compute : callable
        ``compute(*sources)``: arrays of one shape, or scalars among them, to one array, or to a tuple if there are
        several results. It writes to none of its sources, but may return one. Call it under
        ``np.errstate(all="ignore")``.
    warp : bool
        Whether lanes read other lanes: sources are then ``[warps, 32]``, after ``active``, the executing lanes.
    carry_in, carry_out : bool
        Whether CC.CF is an additional source, or an additional result: the last.
    approximate : bool
        Whether PTX permits an error, so that hardware may return other bits.
    """

    section: str
    results: tuple[np.dtype, ...]
    sources: tuple[np.dtype, ...]
    compute: Callable[..., Any]
    warp: bool = False
    carry_in: bool = False
    carry_out: bool = False
    approximate: bool = False


class Unknown(Exception):
    """A spelling that is not in the table."""


# ptxas accepts them also after the types, as CUTLASS writes them.
_AT_WILL = ("relu", "rn", "satfinite")


class Spelling:
    """The modifiers of an opcode, from which a builder takes those that it supports."""

    def __init__(self, opcode: tuple[str, ...], layout: tuple[str, ...]):
        self.root = opcode[0]
        self.layout = layout  # of each operand: "" if it is plain, "v4" a vector, "p" a pair, "@" an address
        words = list(opcode[1:])
        end = next((i for i in range(len(words), 0, -1) if words[i - 1] not in _AT_WILL), 0)
        self.words = words[end:] + words[:end]

    def flag(self, word: str) -> bool:
        """Take a modifier; return whether it is present."""
        if word not in self.words:
            return False
        self.words.remove(word)
        return True

    def choice(self, *words: str, default: str | None = None) -> str:
        """Take the one modifier of these; without a default, it is required."""
        found = [word for word in self.words if word in words]
        if len(found) > 1 or not (found or default is not None):
            self.unknown()
        if not found:
            return str(default)
        self.words.remove(found[0])
        return found[0]

    def type(self, *among: str) -> str:
        """Take the last modifier, which must be one of these types."""
        if not self.words or self.words[-1] not in among:
            self.unknown()
        return self.words.pop()

    def unknown(self) -> NoReturn:
        raise Unknown


Builder = Callable[[Spelling], Pure]
_BUILDERS: dict[str, Builder] = {}


def entry(*roots: str) -> Callable[[Builder], Builder]:
    """Register the builder of all opcodes with these roots."""

    def register(builder: Builder) -> Builder:
        assert not _BUILDERS.keys() & {*roots}
        _BUILDERS.update(dict.fromkeys(roots, builder))
        return builder

    return register


def pure(section: str, results: str, sources: str, compute: Callable[..., Any], **rest: bool) -> Pure:
    """Return a `Pure` whose operands are passed as types: ``pure("shl", "b32", "b32 u32", ...)``."""
    given, taken = (tuple(DTYPES[name] for name in names.split()) for names in (results, sources))
    return Pure(section, given, taken, compute, **rest)


def lookup(instruction: Instruction) -> Pure | None:
    """Return the instruction as a function, or None if it is not in this table.

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
    """Return a number of the PTX as a scalar of this dtype.

    Integers wrap. A floating-point number becomes the nearest of the dtype; for an integer of the same width, its bits.
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
