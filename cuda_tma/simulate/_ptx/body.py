"""The parser of a function body, which reads all statements with their scopes and then resolves their names.

A label may be used before its declaration, and each ``{ }`` has its own registers, variables and labels. Inline asm
relies on labels before their declaration, and on separate scopes. Source: PTX ISA, "Instruction Statements" and
"Directive Statements".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from ..._budget import NESTING, REGISTERS
from .._errors import ParseError
from .constants import integer
from .module import (
    TYPE_BYTES,
    Function,
    Guard,
    Instruction,
    Label,
    Place,
    Prototype,
    Register,
    RegisterName,
    Symbol,
    Variable,
)
from .operands import Meaning, operands
from .places import Places
from .tokens import Check, Cursor, Token
from .variables import LINKAGE, parameters, variables

_EVERY = 64  # The parser checks the time limit after every 64 statements.
_VARIABLE_SPACES = (".shared", ".local", ".param", ".const", ".global")


class Known(Protocol):
    """The names that are declared outside a function."""

    def get(self, name: str) -> Meaning | None: ...


@dataclass
class _Scope:
    """The meaning of names in one ``{ }``, and in the scopes that enclose it."""

    outer: _Scope | None
    names: dict[str, Meaning] = field(default_factory=dict)
    module: Known | None = None

    def find(self, name: str) -> Meaning | None:
        scope: _Scope | None = self
        while scope is not None:
            if (meaning := scope.names.get(name)) is not None:
                return meaning
            if scope.module is not None:
                return scope.module.get(name)
            scope = scope.outer
        return None


class _Statement(NamedTuple):
    opcode: Token
    guard: tuple[Token, bool] | None
    operands: list[Token]
    scope: _Scope
    places: tuple[Place, ...]


class _Body:
    """The declarations of a function body, which grow while the body is parsed."""

    def __init__(self, function: Function, known: Known, places: Places, registers_left: int):
        self.places = places
        self._registers_left = registers_left
        # The dictionary maps a name to the last number that was appended to make the name unique.
        self._numbers: dict[str, int] = {}
        self.scope = _Scope(_Scope(None, module=known))
        self.registers: list[RegisterName] = []
        self.variables: dict[str, Variable] = {}
        self.prototypes: dict[str, Prototype] = {}
        self.labels: dict[str, int] = {}
        self.target_lists: list[tuple[str, list[Token], _Scope]] = []
        self.statements: list[_Statement] = []
        for variable in (*function.returns, *function.params):
            if variable.space == "reg":
                self.register(variable.name, variable.type)
            else:
                self.scope.names[variable.name] = Symbol(variable.name)

    def register(self, name: str, type_: str) -> None:
        self.scope.names[name] = Register(len(self.registers))
        self.registers.append(RegisterName(name, type_))

    def reserve_registers(self, count: int, line: int) -> None:
        """Count registers against the limit before their declaration."""
        self._registers_left -= count
        if not 0 <= count <= count + self._registers_left:
            raise ParseError(f"{count} registers are declared here, but a module may declare at most {REGISTERS}", line)

    def unique(self, name: str, taken: Collection[str]) -> str:
        """Return a name that no other scope has declared: the name itself, or the name with a number."""
        found, number = name, self._numbers.get(name, 1)
        while found in taken:
            number += 1
            found = f"{name}#{number}"
        self._numbers[name] = number
        return found


def read_body(cursor: Cursor, function: Function, known: Known, places: Places, registers_left: int) -> Function:
    """Return a function with its parsed body; the cursor is after the opening brace."""
    body = _Body(function, known, places, registers_left)
    depth = 1
    while depth:
        if cursor.take("{"):
            depth += 1
            if depth > NESTING:
                raise ParseError(f"blocks are nested more than {NESTING} deep", cursor.line)
            body.scope = _Scope(body.scope)
        elif cursor.take("}"):
            depth -= 1
            body.scope = body.scope.outer or body.scope
        elif cursor.token.kind == "end":
            cursor.refuse(f"the }} of {function.name}")
        elif not cursor.take(";"):
            if not len(body.statements) % _EVERY:
                cursor.check()
            _read_statement(cursor, body)
    return replace(
        function,
        registers=tuple(body.registers),
        variables=body.variables,
        instructions=tuple(_instructions(body, cursor.check)),
        labels=body.labels,
        branch_targets=dict(_branch_targets(body)),
        prototypes=body.prototypes,
    )


def _read_statement(cursor: Cursor, body: _Body) -> None:
    token = cursor.token
    if token.kind == "dotted":
        _read_directive(cursor, body)
    elif token.kind == "name" and cursor.peek().text == ":":
        cursor.next()
        cursor.next()
        _read_label(cursor, body, token)
    else:
        guard = None
        if cursor.take("@"):
            negated = cursor.take("!")
            guard = (cursor.next(), negated)
        opcode = cursor.token
        cursor.expect_kind("name")
        while cursor.token.kind == "dotted":
            opcode = opcode._replace(text=opcode.text + cursor.next().text)
        body.statements.append(_Statement(opcode, guard, cursor.until(";"), body.scope, body.places.here))


def _read_directive(cursor: Cursor, body: _Body) -> None:
    word = cursor.text
    if word == ".loc":
        cursor.next()
        body.places.read(cursor)
    elif word == ".reg":
        _read_registers(cursor, body)
    elif word[1:] in LINKAGE or word in _VARIABLE_SPACES:
        linkage = cursor.next().text[1:] if word[1:] in LINKAGE else ""
        for variable in variables(cursor, linkage):
            name = body.unique(variable.name, body.variables)
            body.scope.names[variable.name] = Symbol(name)
            body.variables[name] = replace(variable, name=name)
        cursor.expect(";")
    elif word == ".pragma":
        cursor.until(";")
    else:
        cursor.refuse("a statement")


def _read_registers(cursor: Cursor, body: _Body) -> None:
    """Parse a declaration of registers such as ``.reg .b32 a, %r<3>;``."""
    cursor.next()
    if cursor.token.kind != "dotted":
        cursor.refuse("the type of registers")
    type_ = cursor.text[1:]
    if type_ not in TYPE_BYTES:
        cursor.refuse("the type of registers")
    cursor.next()
    while True:
        name = cursor.expect_kind("name")
        if cursor.take("<"):
            count = integer(cursor)
            body.reserve_registers(count, cursor.line)
            cursor.expect(">")
            for number in range(count):
                body.register(f"{name}{number}", type_)
        else:
            body.reserve_registers(1, cursor.line)
            body.register(name, type_)
        if not cursor.take(","):
            break
    cursor.expect(";")


def _read_label(cursor: Cursor, body: _Body, label: Token) -> None:
    """Parse a label, or the list of targets or the prototype that follows the label."""
    name = label.text
    if cursor.take(".branchtargets"):
        unique = body.unique(name, {taken for taken, *_ in body.target_lists})
        body.scope.names[name] = Symbol(unique)
        body.target_lists.append((unique, cursor.until(";"), body.scope))
    elif cursor.take(".callprototype"):
        unique = body.unique(name, body.prototypes)
        body.scope.names[name] = Symbol(unique)
        returns = parameters(cursor)
        cursor.expect("_")
        body.prototypes[unique] = Prototype(returns, parameters(cursor))
        cursor.until(";")
    elif cursor.take(".calltargets"):
        body.scope.names[name] = Symbol(name)
        cursor.until(";")
    else:
        if name in body.scope.names:
            raise ParseError(f"{name} is declared twice in one scope", label.line)
        unique = body.unique(name, body.labels)
        body.labels[unique] = len(body.statements)
        body.scope.names[name] = Label(unique, len(body.statements))


def _instructions(body: _Body, check: Check) -> Iterator[Instruction]:
    for number, statement in enumerate(body.statements):
        if not number % _EVERY:
            check()
        parts = tuple(statement.opcode.text.split("."))
        guard = None
        if statement.guard is not None:
            token, negated = statement.guard
            register = statement.scope.find(token.text)
            if not isinstance(register, Register):
                raise ParseError(f"the guard {token.text} is not a register", token.line)
            guard = Guard(register, negated)
        found = operands(statement.operands, statement.scope.find, statement.opcode.line, parts[0] == "call")
        yield Instruction(parts, found, guard, statement.places, statement.opcode.line)


def _branch_targets(body: _Body) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, listed, scope in body.target_lists:
        targets = []
        for token in listed:
            if token.text != ",":
                label = scope.find(token.text)
                if not isinstance(label, Label):
                    raise ParseError(f"the target {token.text} is not a label", token.line)
                targets.append(label.target)
        yield name, tuple(targets)
