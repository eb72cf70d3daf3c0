"""The types of parsed PTX: a module, its functions and variables, and instructions with their operands.

The terms are those of the PTX ISA ("PTX" is NVIDIA's "Parallel Thread Execution ISA"). All values are frozen. Names are
unique within a function: if a scope declares a variable again, its name is ``name#2``.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field
from typing import Protocol

SPECIAL_REGISTER = "%"  # the prefix of special registers, and of a compiler's registers

# Bytes of each fundamental type; a predicate has none. PTX, "Fundamental Types", "Packed Data Types".
TYPE_BYTES = {
    **{f"{kind}{8 * size}": size for kind in "bus" for size in (1, 2, 4, 8)},
    **{"f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4, "f32": 4, "f64": 8, "b128": 16, "pred": 0},
}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a source file, from a ``.loc`` directive of the PTX.

    Attributes
    ----------
    file : str
    line, column : int
        From 1; a column of 0 is unknown.
    function : str or None
        The mangled name; None if the PTX does not have it.
    """

    file: str
    line: int
    column: int
    function: str | None = None


# ---- operands ----


@dataclass(frozen=True, slots=True)
class Register:
    """A register of the function: `Function.registers[index]`."""

    index: int


@dataclass(frozen=True, slots=True)
class RegisterName:
    """The name of a register and its type, such as ``b32``, ``f64`` or ``pred``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register, without its percent sign: ``tid.x``. PTX, "Special Registers"."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number: an integer if `type` is empty, else the bits of an f32 or f64."""

    value: int
    type: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function plus an offset, or the target list or prototype of a branch or call."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """The operand ``{a, b}``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The operand ``p|q``: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """The operand ``!p``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Group:
    """The operand ``(a, b)``: the arguments, or the results, of a call."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """The target of a branch: `Function.instructions[target]`, or the end of the function."""

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand ``_``: a discarded result."""


@dataclass(frozen=True, slots=True)
class Address:
    """The operand ``[base+offset]``; with coordinates ``[map, {x, y}]``."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] | None = None


Operand = Register | Special | Immediate | Symbol | Vector | Pair | Not | Group | Label | Sink | Address


# ---- the parts of a module ----


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard ``@p`` or ``@!p``."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `line` is a line of the PTX; `places` are those of the source, then of the inlined calls."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    places: tuple[Place, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """Bytes of a variable that contain an address: that of `symbol` plus `addend`, generic if marked so.

    A `mask` selects eight bits of it, for one byte.
    """

    offset: int
    symbol: str
    addend: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a parameter. `size_bytes` is 0 if PTX leaves it open (``extern .shared x[]``).

    `offset` is a parameter's offset among all, each at the next multiple of its alignment. `initial` has the length of
    the variable, with zeros in place of `references`; None without an initializer. `is_pointer`: a parameter with
    ``.ptr``.
    """

    name: str
    space: str
    type: str
    align: int
    size_bytes: int
    initial: bytes | None = None
    references: tuple[Reference, ...] = ()
    linkage: str = ""
    offset: int = 0
    is_pointer: bool = False


@dataclass(frozen=True, slots=True)
class Prototype:
    """The results and parameters of an indirect call. PTX, ".callprototype"."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """An ``.entry`` or a ``.func``; without instructions if it is only declared.

    Parameters and results of a ``.func`` may be registers, with the space ``reg``. `attributes` are the directives
    after the parameters, without their dot: ``{"maxntid": (256, 1, 1)}``.
    """

    name: str
    kind: str
    returns: tuple[Variable, ...] = ()
    params: tuple[Variable, ...] = ()
    attributes: Mapping[str, tuple[int | str, ...]] = field(default_factory=dict)
    linkage: str = ""
    line: int = 0
    declared_only: bool = False
    registers: tuple[RegisterName, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    instructions: tuple[Instruction, ...] = ()
    labels: Mapping[str, int] = field(default_factory=dict)
    branch_targets: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    prototypes: Mapping[str, Prototype] = field(default_factory=dict)


class Functions(Protocol):
    """Functions by name, in the order of the text; the body of one may be read at its first use."""

    def heads(self) -> tuple[Function, ...]:
        """Return the functions, of which some may have no instructions yet."""

    def __getitem__(self, name: str, /) -> Function: ...

    def __contains__(self, name: object, /) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def keys(self) -> KeysView[str]: ...

    def values(self) -> ValuesView[Function]: ...

    def get(self, name: str, /) -> Function | None: ...


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX text. Functions and variables are in the order of the text."""

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    functions: Functions
    variables: Mapping[str, Variable]
