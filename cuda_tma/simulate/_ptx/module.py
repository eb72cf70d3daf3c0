"""The types of parsed PTX: a module, its functions and variables, and instructions with their operands.

The terms are those of the PTX ISA ("PTX" is NVIDIA's "Parallel Thread Execution ISA"). All values are frozen. Names are
unique within a function: if a scope declares a variable again, its name is ``name#2``.
"""

from __future__ import annotations

from collections.abc import Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from typing import Protocol

SPECIAL_REGISTER = "%"  # The names of special registers, and of a compiler's registers, begin with a percent sign.

# The table maps each fundamental type to its size in bytes, except for predicates, which have no size. The sizes are
# from the PTX ISA, "Fundamental Types" and "Packed Data Types".
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
        The line and the column, counted from 1; a column of 0 is unknown.
    function : str or None
        The mangled name of the function; None if the PTX does not contain it.
    """

    file: str
    line: int
    column: int
    function: str | None = None


# ---- operands ----


@dataclass(frozen=True, slots=True)
class Register:
    """A register, which is `Function.registers[index]`."""

    index: int


@dataclass(frozen=True, slots=True)
class RegisterName:
    """The name of a register and its type, such as ``b32``, ``f64`` or ``pred``."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Special:
    """A special register without its percent sign, such as ``tid.x`` (PTX ISA, "Special Registers")."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A number: an integer if `type` is empty, otherwise the bits of an f32 or f64."""

    value: int
    type: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function plus an offset, or the name of a list of targets or a prototype."""

    name: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """The operand ``{a, b}``, which is a vector of operands."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """The operand ``p|q``, which consists of two destinations."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Not:
    """The operand ``!p``, which is the negation of a predicate."""

    register: Register


@dataclass(frozen=True, slots=True)
class Group:
    """The operand ``(a, b)``, which contains the arguments or the results of a call."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Label:
    """The target of a branch: `Function.instructions[target]`, or the end of the function."""

    name: str
    target: int


@dataclass(frozen=True, slots=True)
class Sink:
    """The operand ``_``, which discards a result."""


@dataclass(frozen=True, slots=True)
class Address:
    """The operand ``[base+offset]``, or ``[map, {x, y}]`` with coordinates."""

    base: Register | Symbol | Immediate
    offset: int = 0
    coordinates: tuple[Operand, ...] | None = None


Operand = Register | Special | Immediate | Symbol | Vector | Pair | Not | Group | Label | Sink | Address


# ---- the parts of a module ----


@dataclass(frozen=True, slots=True)
class Guard:
    """The guard ``@p`` or ``@!p`` of an instruction."""

    register: Register
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a function.

    `line` is the line of the instruction in the PTX. `places` contains its place in the source, and then the places of
    the inlined calls.
    """

    opcode: tuple[str, ...]
    operands: tuple[Operand, ...] = ()
    guard: Guard | None = None
    places: tuple[Place, ...] = ()
    line: int = 0


# COUNTS maps a performance directive to the largest number of integers that follow the directive.
COUNTS = {
    **dict.fromkeys(("maxntid", "reqntid", "reqnctapercluster"), 3),
    **dict.fromkeys(("maxnreg", "minnctapersm", "maxnctapersm", "maxclusterrank"), 1),
}
_MOST_COUNT = (1 << 31) - 1
MASKS = tuple(0xFF << shift for shift in range(0, 64, 8))


@dataclass(frozen=True, slots=True)
class Reference:
    """The bytes of a variable that contain an address: the address of `symbol` plus `addend`.

    If `generic` is true, the address is a generic address. A `mask`, one of :data:`MASKS`, selects eight bits of the
    address for one byte.
    """

    offset: int
    symbol: str
    addend: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable or a parameter.

    `size_bytes` is 0 if PTX does not specify the size (``extern .shared x[]``). `offset` is the offset of a parameter
    in the block of parameters. `initial` has the length of the variable, with zeros in place of `references`; it is
    None without an initializer. `is_pointer` is true for a parameter with ``.ptr``.
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
    """The results and parameters of an indirect call (PTX ISA, ".callprototype")."""

    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """An ``.entry`` or a ``.func``, which has no instructions if it is only declared.

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
    """The interface of a mapping of names to functions, which may parse a body at its first use."""

    def heads(self) -> tuple[Function, ...]:
        """Return all functions; a function whose body is not parsed has no instructions."""

    def __getitem__(self, name: str, /) -> Function: ...

    def __contains__(self, name: object, /) -> bool: ...

    def __iter__(self) -> Iterator[str]: ...

    def keys(self) -> KeysView[str]: ...

    def values(self) -> ValuesView[Function]: ...

    def get(self, name: str, /) -> Function | None: ...


@dataclass(frozen=True, slots=True)
class Module:
    """A parsed PTX text, with its functions and variables in the order of the text."""

    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    functions: Functions
    variables: Mapping[str, Variable]


def are_counts(directive: str, values: Sequence[int | str]) -> bool:
    """Return whether a directive of :data:`COUNTS` has valid counts; return True for other directives."""
    if directive not in COUNTS:
        return True
    is_number = all(isinstance(each, int) and 1 <= each <= _MOST_COUNT for each in values)
    return 1 <= len(values) <= COUNTS[directive] and is_number
