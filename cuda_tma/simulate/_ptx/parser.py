"""The parser of a PTX text, which returns a `Module` (PTX ISA, "PTX Module Directives" and "Directives")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..._budget import MODULE_BYTES, REGISTERS, VARIABLES
from ..._given import shown
from .._errors import ParseError
from .bodies import BODY, tokens_outside, with_places_of_statements
from .body import read_body
from .constants import integer
from .functions import Functions
from .module import COUNTS, Function, Module, Symbol, Variable, are_counts
from .operands import Meaning
from .places import Names, Places
from .tokens import Check, Cursor, Token, not_at_all, tokens
from .variables import LINKAGE, SPACES, parameters, variables

_FUNCTIONS = ("entry", "func")
# The table maps a directive to the largest integer that may follow the directive (PTX ISA 9.0, "Performance-Tuning
# Directives").


def parse(text: str, check: Check = not_at_all) -> Module:
    """Parse the PTX text of a compiler, such as NVRTC or nvcc, into a frozen `Module`.

    Instructions keep their spelling, whether they are supported or not.

    Parameters
    ----------
    text : str
        The whole text.
    check : callable, optional
        A function that the parser calls at intervals; it may raise an exception to end the parsing.

    Returns
    -------
    Module

    Raises
    ------
    ParseError
        If the text is not PTX; the message contains the line.

    See Also
    --------
    read : Parse each function at its first use.

    Examples
    --------
    >>> module = parse(".version 8.0 .target sm_90 .address_size 64 .entry nothing() { ret; }")
    >>> module.functions["nothing"].instructions[0].opcode
    ('ret',)
    """
    module = read(text, check)
    for name in module.functions:
        module.functions[name]
    return module


def read(text: str, check: Check = not_at_all) -> Module:
    """Return a module as `parse` does, but parse each function body at the function's first use.

    The first use raises the errors of the body.
    """
    all_tokens = tokens_outside(text.rstrip("\0"), check)
    return _Reader(Cursor(all_tokens, check), Names(all_tokens)).module()


class _Reader:
    """The declarations of a module, which grow while the text is parsed.

    In PTX, the declaration of a name precedes its uses in function bodies.
    """

    def __init__(self, cursor: Cursor, names: Names):
        self._cursor = cursor
        self._names = names
        self._version = (0, 0)
        self._target: tuple[str, ...] = ()
        self._address_size = 64
        self._functions = Functions(self._with_body)
        self._variables: dict[str, Variable] = {}
        # The dictionary maps each name in the module to the number of names that were declared earlier.
        self._known: dict[str, int] = {}
        self._registers_left, self._left_bytes = REGISTERS, MODULE_BYTES
        self._named: list[tuple[str, int]] = []  # The list contains the names that initializers use, with their lines.

    def module(self) -> Module:
        cursor = self._cursor
        while cursor.token.kind != "end":
            cursor.check()
            if not cursor.take(";"):
                self._directive()
        for name, line in self._named:
            if name not in self._functions and not self._has_address(name):
                raise ParseError(
                    f"an initializer names {shown(name)}, but it may name only functions and variables in .global and "
                    ".const",
                    line,
                )
        return Module(self._version, self._target, self._address_size, self._functions, self._variables)

    def _directive(self) -> None:
        cursor = self._cursor
        if cursor.token.kind != "dotted":
            cursor.refuse("a directive")
        linkage = cursor.next().text[1:] if cursor.text[1:] in LINKAGE else ""
        word = cursor.text[1:]
        if word in _FUNCTIONS:
            self._function(linkage)
        elif word.split("[")[0] in SPACES:
            for variable in variables(cursor, linkage):
                self._add(variable)
        else:
            cursor.next()
            self._setting(word)

    def _add(self, variable: Variable) -> None:
        self._left_bytes -= variable.size_bytes
        if len(self._variables) >= VARIABLES:
            raise ParseError(f"a module may declare at most {VARIABLES} variables", self._cursor.line)
        if self._left_bytes < 0:
            raise ParseError(
                f"the variables take more than {MODULE_BYTES} bytes, the limit of a module in the simulator",
                self._cursor.line,
            )
        self._variables[variable.name] = variable
        self._known.setdefault(variable.name, len(self._known))
        self._named += [(reference.symbol, self._cursor.line) for reference in variable.references]

    def _has_address(self, name: str) -> bool:
        return name in self._variables and self._variables[name].space in ("global", "const")

    def _setting(self, word: str) -> None:
        cursor = self._cursor
        if word == "version":
            major, _, minor = cursor.expect_kind("number").partition(".")
            self._version = (int(major), int(minor))
        elif word == "target":
            target = [cursor.next().text]
            while cursor.take(","):
                target.append(cursor.next().text)
            self._target = tuple(target)
        elif word == "address_size":
            self._address_size = integer(cursor)
        elif word == "file":
            while cursor.token.kind in ("number", "string") or cursor.text == ",":
                cursor.next()
        elif word == "section":
            cursor.next()
            cursor.expect("{")
            cursor.until("}")
        elif word in ("pragma", "alias"):
            cursor.until(";")
        else:
            cursor.refuse(f"something known, not .{word},")

    def _function(self, linkage: str) -> None:
        cursor = self._cursor
        line = cursor.line
        kind = cursor.next().text[1:]
        returns = parameters(cursor)
        name = cursor.expect_kind("name")
        params = parameters(cursor)
        function = Function(name, kind, returns, params, self._attributes(), linkage, line, declared_only=True)
        self._known.setdefault(name, len(self._known))
        if cursor.token.kind == BODY:
            self._functions.add_head(replace(function, declared_only=False), cursor.next(), len(self._known))
        elif cursor.take("{"):  # The parser reports the missing closing brace of the body.
            self._functions.add(self._read(cursor, replace(function, declared_only=False), len(self._known)))
        elif name not in self._functions:
            self._functions.add(function)

    def _with_body(self, head: Function, body: Token, names: int) -> Function:
        text = with_places_of_statements(body.text)
        cursor = Cursor(tokens(text, self._cursor.check, body.line), self._cursor.check)
        cursor.expect("{")
        return self._read(cursor, head, names)

    def _read(self, cursor: Cursor, head: Function, names: int) -> Function:
        known = _Before(self._known, names)
        function = read_body(cursor, head, known, Places(self._names, head.name), self._registers_left)
        self._registers_left -= len(function.registers)
        return function

    def _attributes(self) -> Mapping[str, tuple[int | str, ...]]:
        """Parse directives such as ``.maxntid 256, 1, 1``, up to the body or the semicolon."""
        cursor = self._cursor
        found: dict[str, tuple[int | str, ...]] = {}
        while cursor.token.kind == "dotted":
            word = cursor.next().text[1:]
            values: list[int | str] = []
            while cursor.token.kind in ("number", "string") or cursor.text == ",":
                if cursor.token.kind == "number":
                    values.append(integer(cursor))
                elif not cursor.take(","):
                    values.append(cursor.next().text[1:-1])
            if word == "pragma":
                cursor.expect(";")
            elif not are_counts(word, values):
                most = "one to three integers" if COUNTS[word] == 3 else "one integer"
                raise ParseError(f".{word} has {shown(values)}; write {most}, each at least 1", cursor.line)
            found[word] = tuple(values)
        return found


class _Before:
    """The names of a module that are declared before the body of a function."""

    def __init__(self, known: Mapping[str, int], names: int):
        self._known, self._names = known, names

    def get(self, name: str) -> Meaning | None:
        """Return the meaning of a name; None if no declaration precedes the function."""
        return Symbol(name) if self._known.get(name, self._names) < self._names else None
