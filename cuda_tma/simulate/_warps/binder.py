"""The conversion of operands to functions, which happens once for each instruction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._errors import UnsupportedInstruction
from .._ptx import (
    TYPE_BYTES,
    Address,
    Immediate,
    Instruction,
    Not,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Vector,
)
from .._pure import immediate
from .code import Code
from .group import Group
from .lanes import Lanes, count
from .program import Program
from .registers import VIEW
from .spaces import RANK_SHIFT
from .special import special

__all__ = ["Address64", "Binder", "Read", "Write", "dtype_of"]

# A Read function returns an array with a value for each lane, or one value for all lanes.
Read = Callable[[Group[Any], Lanes], Any]
# The first argument of a Write function is a group of lanes, or the context of a group.
Write = Callable[[Any, Lanes, Any], None]
Address64 = Callable[[Group[Any], Lanes], np.ndarray]

_LARGEST = 16  # The largest register has 16 bytes.
U32, U64, I64, BOOL = np.dtype(np.uint32), np.dtype(np.uint64), np.dtype(np.int64), np.dtype(bool)
_KINDS = {"b": "u", "u": "u", "s": "i", "f": "f"}
_SPECIAL_TYPES = {
    "pred": BOOL,
    "bf16": np.dtype(np.uint16),
    "bf16x2": U32,
    "f16x2": U32,
    "b128": np.dtype(np.complex128),
}


def dtype_of(ptx_type: str) -> np.dtype:
    """Return the NumPy type for the values of a PTX type.

    Values of packed types and of bf16 are unsigned integers that contain the bits.
    """
    if ptx_type in _SPECIAL_TYPES:
        return _SPECIAL_TYPES[ptx_type]
    if ptx_type not in TYPE_BYTES:
        raise ValueError(f"{ptx_type} is not a type of PTX")
    return np.dtype(f"{_KINDS[ptx_type[0]]}{TYPE_BYTES[ptx_type]}")


class Binder:
    """One instruction of a function, and the conversion of its operands to functions.

    Attributes
    ----------
    program, code
    instruction : Instruction
    pc : int
        The index of the instruction in its function.
    """

    def __init__(self, program: Program, code: Code, instruction: Instruction, pc: int):
        self.program, self.code, self.instruction, self.pc = program, code, instruction, pc

    def unsupported(self, reason: str = "") -> UnsupportedInstruction:
        """Return the error for a form of the instruction that the simulator does not support."""
        # The last of an instruction's places is in the kernel itself, and the other places are in inlined functions.
        where = [f"{place.file}:{place.line}" for place in self.instruction.places[-1:]]
        of = ", ".join([*filter(None, [reason]), *where])
        return UnsupportedInstruction(".".join(self.instruction.opcode), self.instruction.line, of)

    # ---- sources ----

    def read(self, operand: Operand, dtype: np.dtype) -> Read:
        """Return a function that reads an operand as `dtype`: the low bits of a register, a number, or an address."""
        if isinstance(operand, Register):
            return self._register(operand, dtype)
        if isinstance(operand, Immediate):
            value = immediate(operand, dtype)
            return lambda group, lanes: value
        if isinstance(operand, Not):
            inner = self.read(operand.register, dtype)
            return lambda group, lanes: ~inner(group, lanes)
        if isinstance(operand, Special):
            return self._special(operand, dtype)
        if isinstance(operand, Symbol):
            return self._symbol(operand, dtype)
        raise self.unsupported(f"{type(operand).__name__} as a source")

    def _register(self, operand: Register, dtype: np.dtype) -> Read:
        size, row = self.row(operand, dtype)
        if size == dtype.itemsize or dtype == BOOL:
            view = VIEW[dtype]
            return lambda group, lanes: group.views[view][row, lanes]
        if size < dtype.itemsize:
            whole = VIEW[np.dtype(f"u{size}")]
            return lambda group, lanes: group.views[whole][row, lanes].astype(dtype)
        whole, low = VIEW[np.dtype(f"u{size}")], np.dtype(f"u{dtype.itemsize}")
        return lambda group, lanes: group.views[whole][row, lanes].astype(low).view(dtype)

    def row(self, operand: Register, dtype: np.dtype) -> tuple[int, int]:
        """Return the size of a register in bytes, and the row of the register.

        A predicate is refused as a number, and a number as a predicate.
        """
        size, row = self.code.register_rows[operand.index]
        if (size == 0) != (dtype == BOOL):
            raise self.unsupported(
                "of a number in a predicate's place" if size else "of a predicate in a number's place"
            )
        if size == _LARGEST and dtype.itemsize < size:
            raise self.unsupported(f"of a register of {8 * size} bits")
        return size, row

    def _special(self, operand: Special, dtype: np.dtype) -> Read:
        look = special(operand.name)
        if look is None:
            raise self.unsupported(f"special register %{operand.name}")
        return lambda group, lanes: look(group, lanes).astype(dtype)

    def _symbol(self, operand: Symbol, dtype: np.dtype) -> Read:
        look = self.symbol(operand)
        return lambda group, lanes: look(group, lanes).astype(dtype)

    def symbol(self, operand: Symbol) -> Address64:
        """Return the address of a variable in its own state space, or the address of a function."""
        name, offset = operand.name, operand.offset
        if name in self.program.shared:
            place = _signed(self.program.shared[name] + offset)
            return lambda group, lanes: (group.parts.geometry.rank_of_lane[lanes] << RANK_SHIFT) + place
        if name in self.code.locals:
            place = self.code.locals[name] + offset
            return lambda group, lanes: np.full(count(lanes), _signed(group.context.local_base + place), np.int64)
        fixed = self._fixed(name)
        if fixed is None:
            raise self.unsupported(f"no variable {name}")
        fixed = _signed(fixed + offset)
        return lambda group, lanes: np.full(count(lanes), fixed, np.int64)

    def _fixed(self, name: str) -> int | None:
        if self.code.function.kind == "entry":
            for variable in self.code.function.params:
                if variable.name == name:
                    return variable.offset
        return self.program.addresses.get(name)

    def membermask(self, operand: Operand) -> Read | int:
        """Return a function that reads a mask of the threads of a warp; for a constant full mask, return its number."""
        whole = 0xFFFFFFFF
        if isinstance(operand, Immediate) and operand.value & whole == whole:
            return whole
        return self.read(operand, U32)

    def flat(self, operands: tuple[Operand, ...]) -> list[Operand]:
        """Return the operands in order; the elements of a vector or pair replace the vector or pair."""
        found: list[Operand] = []
        for operand in operands:
            if isinstance(operand, Vector):
                found += self.flat(operand.elements)
            elif isinstance(operand, Pair):
                found += [operand.first, operand.second]
            else:
                found.append(operand)
        return found

    def address(self, operand: Operand) -> Address64:
        """Return a function that computes the address ``[base+offset]`` in its state space for each lane."""
        if not isinstance(operand, Address):
            raise self.unsupported("an address that is not in brackets")
        offset = _signed(operand.offset)
        if isinstance(operand.base, Symbol):
            return self.symbol(Symbol(operand.base.name, operand.base.offset + offset))
        if isinstance(operand.base, Immediate):
            fixed = _signed(operand.base.value + offset)
            return lambda group, lanes: np.full(count(lanes), fixed, np.int64)
        size, row = self.row(operand.base, I64)
        view = VIEW[np.dtype(f"u{size}")]
        if size == 8:
            view = VIEW[I64]
            return lambda group, lanes: group.views[view][row, lanes] + offset
        most = (1 << 8 * size) - 1  # The sum of base and offset wraps around at the width of the register.
        return lambda group, lanes: (group.views[view][row, lanes].astype(np.int64) + offset) & most

    # ---- results ----

    def write(self, operand: Operand, dtype: np.dtype) -> Write:
        """Return a function that writes `dtype` values to a register.

        A signed value is sign-extended, and any other value is zero-extended.
        """
        if isinstance(operand, Sink):
            return _drop
        if not isinstance(operand, Register):
            raise self.unsupported(f"{type(operand).__name__} as a result")
        size, row = self.row(operand, dtype)
        if size == dtype.itemsize or dtype == BOOL:
            view = VIEW[dtype]
        elif dtype.kind == "f":
            return self._write_bits(operand, dtype)
        else:
            view = VIEW[np.dtype(f"{dtype.kind}{size}")]

        def write(group: Group[Any], lanes: Lanes, values: Any) -> None:
            group.views[view][row, lanes] = values

        return write

    def _write_bits(self, operand: Register, dtype: np.dtype) -> Write:
        bits = np.dtype(f"u{dtype.itemsize}")
        inner = self.write(operand, bits)
        return lambda group, lanes, values: inner(group, lanes, np.asarray(values, dtype).view(bits))


def _signed(address: int) -> int:
    """Return an address as a signed number of 64 bits, as NumPy needs it."""
    return (address + (1 << 63)) % (1 << 64) - (1 << 63)


def _drop(group: Group[Any], lanes: Lanes, values: Any) -> None:
    """Discard a result whose operand is ``_``."""
