"""The conversion of a parsed module to JSON and back, so that a long PTX text is parsed only once.

The JSON is a list of rows, one for each value. A row consists of a class and of fields, in which numbers refer to
preceding rows. The JSON comes from a disk, so the reader checks the types of all fields, the existence of registers and
labels, and the limits of the parser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from ..._budget import MODULE_BYTES, PARAMETER_BYTES, REGISTERS, VARIABLES
from .functions import Functions
from .module import (
    MASKS,
    TYPE_BYTES,
    Address,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    Module,
    Not,
    Pair,
    Place,
    Prototype,
    Reference,
    Register,
    RegisterName,
    Sink,
    Special,
    Symbol,
    Variable,
    Vector,
    are_counts,
)
from .tokens import Check, Token, not_at_all

__all__ = ["packed", "unpacked"]

_OPERANDS: tuple[type, ...] = (
    Register, Special, Immediate, Symbol, Vector, Pair, Not, Group, Label, Sink, Address,
)  # fmt: skip
_EVERY = 1024  # The reader checks the time limit after every 1,024 rows.
# A stored instruction has at most 1,024 operands, because a function has at most 1,024 parameters.
_MOST_PARTS = 1024


class _Field(NamedTuple):
    """A field of a class, with a function that converts it to JSON and a function that converts it back."""

    pack: Callable[[_Rows, Any], Any]
    unpack: Callable[[_Values, Any], Any]


class _Rows:
    """The rows of a module; equal values share a row, but each instruction has a separate row."""

    def __init__(self) -> None:
        self.rows: list[list[Any]] = []
        self._known: dict[Any, int] = {}

    def add(self, value: Any) -> int:
        """Return the number of the row that contains a value."""
        is_own = isinstance(value, Instruction | Function)
        known = None if is_own else self._known.get(value)
        if known is not None:
            return known
        names = zip(_FIELDS[type(value)], fields(value), strict=True)
        row = [_CLASSES.index(type(value)), *(how.pack(self, getattr(value, each.name)) for how, each in names)]
        self.rows.append(row)
        if not is_own:
            self._known[value] = len(self.rows) - 1
        return len(self.rows) - 1


class _Values:
    """The values that the rows of a JSON text describe.

    Attributes
    ----------
    found : list
        The value of each row.
    parts, register, label : int
        The number of parts of the present value, and the highest register and label among these parts.
    """

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._facts: list[tuple[int, int, int]] = []
        self.parts = self.register = self.label = 0

    def add(self, row: Any) -> None:
        """Append the value that a row describes."""
        number, *given = _list(row)
        of = _CLASSES[_count(number)]
        self.parts, self.register, self.label = 1, -1, -1
        value = of(*[how.unpack(self, each) for how, each in zip(_FIELDS[of], given, strict=True)])
        if of is Register:
            self.register = _count(value.index)
        elif of is Label:
            self.label = _count(value.target)
        elif of is Variable:
            _check_variable(value)
        elif of is Function:
            _check_function(value, self.register, self.label)
        if self.parts > _MOST_PARTS and of is not Function:
            raise ValueError("a value with too many parts")
        self.found.append(value)
        self._facts.append((self.parts, self.register, self.label))

    def get(self, number: Any, classes: tuple[type, ...]) -> Any:
        """Return the value of a preceding row; refuse a value of a class that is not in `classes`."""
        value = self.found[_count(number)]
        if type(value) not in classes:
            raise ValueError("a value of another class")
        parts, register, label = self._facts[number]
        self.parts += parts
        self.register, self.label = max(self.register, register), max(self.label, label)
        return value


def _list(given: Any) -> list[Any]:
    if type(given) is not list:
        raise ValueError("no list")
    return given


def _dict(given: Any) -> dict[str, Any]:
    if type(given) is not dict:
        raise ValueError("no mapping")
    return given


def _count(given: Any) -> int:
    if type(given) is not int or given < 0:
        raise ValueError("no count")
    return given


def _plain(*classes: type) -> _Field:
    def unpack(_: _Values, given: Any) -> Any:
        if type(given) not in classes:
            raise ValueError("a field of another type")
        return given

    return _Field(lambda rows, value: value, unpack)


def _one(*classes: type, optional: bool = False) -> _Field:
    def pack(rows: _Rows, value: Any) -> int | None:
        return None if value is None else rows.add(value)

    def unpack(values: _Values, given: Any) -> Any:
        return None if given is None and optional else values.get(given, classes)

    return _Field(pack, unpack)


def _several(of: _Field, optional: bool = False) -> _Field:
    def pack(rows: _Rows, value: Any) -> list[Any] | None:
        return None if value is None else [of.pack(rows, each) for each in value]

    def unpack(values: _Values, given: Any) -> tuple[Any, ...] | None:
        return None if given is None and optional else tuple([of.unpack(values, each) for each in _list(given)])

    return _Field(pack, unpack)


def _named(of: _Field) -> _Field:
    def pack(rows: _Rows, value: Mapping[str, Any]) -> dict[str, Any]:
        return {name: of.pack(rows, each) for name, each in value.items()}

    def unpack(values: _Values, given: Any) -> dict[str, Any]:
        return {name: of.unpack(values, each) for name, each in _dict(given).items()}

    return _Field(pack, unpack)


def _unpack_bytes(_: _Values, given: Any) -> bytes | None:
    if given is not None and type(given) is not str:
        raise ValueError("no bytes")
    return None if given is None else bytes.fromhex(given)


def _unpack_opcode(_: _Values, given: Any) -> tuple[str, ...]:
    if type(given) is not str:
        raise ValueError("no opcode")
    return tuple(given.split("."))


_INT, _STR, _BOOL = _plain(int), _plain(str), _plain(bool)
_BYTES = _Field(lambda rows, value: None if value is None else value.hex(), _unpack_bytes)
_OPCODE = _Field(lambda rows, value: ".".join(value), _unpack_opcode)
_OPERAND, _VARIABLES = _one(*_OPERANDS), _several(_one(Variable))
_NAMES_OF_ATTRIBUTES = _named(_several(_plain(int, str)))
_FIELDS: dict[type, tuple[_Field, ...]] = {
    Place: (_STR, _INT, _INT, _plain(str, type(None))),
    Register: (_INT,),
    RegisterName: (_STR, _STR),
    Special: (_STR,),
    Immediate: (_INT, _STR),
    Symbol: (_STR, _INT),
    Vector: (_several(_OPERAND),),
    Pair: (_OPERAND, _OPERAND),
    Not: (_one(Register),),
    Group: (_several(_OPERAND),),
    Label: (_STR, _INT),
    Sink: (),
    Address: (_one(Register, Symbol, Immediate), _INT, _several(_OPERAND, optional=True)),
    Guard: (_one(Register), _BOOL),
    Instruction: (_OPCODE, _several(_OPERAND), _one(Guard, optional=True), _several(_one(Place)), _INT),
    Reference: (_INT, _STR, _INT, _BOOL, _plain(int, type(None))),
    Variable: (_STR, _STR, _STR, _INT, _INT, _BYTES, _several(_one(Reference)), _STR, _INT, _BOOL),
    Prototype: (_VARIABLES, _VARIABLES),
    Function: (
        _STR, _STR, _VARIABLES, _VARIABLES, _NAMES_OF_ATTRIBUTES, _STR, _INT, _BOOL, _several(_one(RegisterName)),
        _named(_one(Variable)), _several(_one(Instruction)), _named(_INT), _named(_several(_INT)),
        _named(_one(Prototype)),
    ),
}  # fmt: skip
_CLASSES = [*_FIELDS]


def _check_variable(variable: Variable) -> None:
    size, initial = _count(variable.size_bytes), variable.initial or b""
    if size > MODULE_BYTES or len(initial) > size or variable.align < 1 or variable.offset < 0:
        raise ValueError("a variable of another size")
    for each in variable.references:
        if not 0 <= each.offset <= size - (8 if each.mask is None else 1) or each.mask not in (None, *MASKS):
            raise ValueError("a reference outside its variable, or with another mask")


def _check_function(function: Function, register: int, label: int) -> None:
    """Refuse registers and labels that do not exist, and sizes that the parser never returns."""
    end = len(function.instructions)
    targets = [*function.labels.values(), *(each for listed in function.branch_targets.values() for each in listed)]
    if register >= len(function.registers) or len(function.registers) > REGISTERS:
        raise ValueError("registers that do not exist")
    if label > end or not all(0 <= each <= end for each in targets):
        raise ValueError("labels that do not exist")
    if not {each.type for each in function.registers} <= TYPE_BYTES.keys():
        raise ValueError("registers of an unknown type")
    if not all(are_counts(word, values) for word, values in function.attributes.items()):
        raise ValueError("a directive without counts")
    if any(each.offset + each.size_bytes > PARAMETER_BYTES for each in function.params):
        raise ValueError("too many parameters")


def packed(module: Module, entry: str, bodies: Iterable[str]) -> dict[str, Any]:
    """Return a module as JSON, with the bodies of some functions and only the heads of the other functions."""
    rows, wanted = _Rows(), {*bodies}
    functions = [module.functions[head.name] if head.name in wanted else head for head in module.functions.heads()]
    return {
        "entry": entry,
        "version": [*module.version],
        "target": [*module.target],
        "address_size": module.address_size,
        "functions": [rows.add(each) for each in functions],
        "variables": [rows.add(each) for each in module.variables.values()],
        "bodies": sorted(wanted),
        "rows": rows.rows,
    }


def unpacked(given: Any, read_again: Callable[[], Module], check: Check = not_at_all) -> tuple[Module, str]:
    """Return the module and the entry in a result of :func:`packed`; `read_again` returns the whole module.

    Raises
    ------
    ValueError, LookupError, TypeError
        If the argument is not a result of :func:`packed`.
    """
    given, values = _dict(given), _Values()
    for number, row in enumerate(_list(given["rows"])):
        if not number % _EVERY:
            check()
        values.add(row)
    functions = Functions(lambda head, *_: read_again().functions[head.name])
    bodies = {*_list(given["bodies"])}
    for number in _list(given["functions"]):
        function = values.get(number, (Function,))
        if function.name in bodies or function.declared_only:
            functions.add(function)
        else:
            functions.add_head(function, Token("body", "", function.line), 0)
    variables = {each.name: each for each in (values.get(number, (Variable,)) for number in _list(given["variables"]))}
    if len(variables) > VARIABLES or sum(each.size_bytes for each in variables.values()) > MODULE_BYTES:
        raise ValueError("too many variables")
    named = {each.symbol for variable in variables.values() for each in variable.references}
    addressed = {each.name for each in variables.values() if each.space in ("global", "const")}
    if not named <= addressed | {head.name for head in functions.heads()}:
        raise ValueError("a reference to a name without an address")
    major, minor = map(_count, _list(given["version"]))
    target = tuple(_STR.unpack(values, each) for each in _list(given["target"]))
    entry = _STR.unpack(values, given["entry"])
    if entry not in bodies or functions[entry].kind != "entry":
        raise ValueError("no entry")
    return Module((major, minor), target, _count(given["address_size"]), functions, variables), entry
