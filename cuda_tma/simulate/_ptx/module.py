"""PTX as values: a module, its functions and variables, each instruction with its operands. Nothing here executes.

The words are the PTX ISA's ("PTX" is NVIDIA's "Parallel Thread Execution ISA"). All values are frozen; names are unique
within a function: a variable that a scope declares anew is called ``name#2``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SPECIAL_REGISTER = "%"  # what their names begin with, and a compiler's registers too

# Bytes of each fundamental type; a predicate has none. PTX, "Fundamental Types", "Packed Data Types".
TYPE_BYTES = {
    **{f"{kind}{8 * size}": size for kind in "bus" for size in (1, 2, 4, 8)},
    **{"f16": 2, "f16x2": 4, "bf16": 2, "bf16x2": 4, "tf32": 4, "f32": 4, "f64": 8, "b128": 16, "pred": 0},
}


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a source, as ``.loc`` of the PTX gives it.

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
    """What a register is called and its type, such as ``b32``, ``f64`` or ``pred``."""

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
    """A variable or function, plus bytes; or the list of targets or the prototype that a branch or call names."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b}``."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """``p|q``: two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """``!p``."""

    register: Register


@dataclass(frozen=True, slots=True)
class Group:
    """``(a, b)``: the arguments, or the results, of a call."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """A place to branch to: `Function.instructions[target]`, or their end."""

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``: a result that nobody wants."""


@dataclass(frozen=True, slots=True)
class Address:
    """``[base+offset]``; with coordinates ``[map, {x, y}]``."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] | None = None


Operand = Register | Special | Immediate | Symbol | Vector | Pair | Not | Group | Label | Sink | Address


# ---- what a module is made of ----


@dataclass(frozen=True, slots=True)
class Guard:
    """``@p`` or ``@!p``."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `line` is that of the PTX; `places` that of the source, then the calls that it is inlined by."""

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    places: tuple[Place, ...] = ()
    line: int = 0


@dataclass(frozen=True, slots=True)
class Reference:
    """Bytes of a variable that hold an address: that of `symbol` plus `addend`, in generic space if so said.

    A `mask` picks eight bits of it, which go into one byte.
    """

    offset: int
    symbol: str
    addend: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, or a parameter. `size_bytes` is 0 where PTX leaves it open (``extern .shared x[]``).

    `offset` is a parameter's place among all: each at the next multiple of its alignment. `initial` is as long as the
    variable, with zeros where `references` go; None without an initialiser. `is_pointer`: a parameter has ``.ptr``.
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
    """What an indirect call gives and takes. PTX, ".callprototype"."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """An ``.entry`` or a ``.func``; without instructions if it is only declared.

    A ``.func`` may take and give registers: parameters with the space ``reg``. `attributes` are the directives behind
    the parameters, without their dot: ``{"maxntid": (256, 1, 1)}``.
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


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX text. Functions and variables are in the order of the text."""

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    functions: Mapping[str, Function]
    variables: Mapping[str, Variable]
