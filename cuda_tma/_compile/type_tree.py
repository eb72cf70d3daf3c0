"""What a mangled name says of a type: small values, of which only what a launch asks for is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Builtin", "Function", "Named", "Node", "Pointer", "several"]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A builtin type, by what may be passed for it: "integer", "float" or "bool"."""

    kind: Literal["integer", "float", "bool"]


@dataclass(frozen=True, slots=True)
class Pointer:
    """A pointer, and what it points to."""

    target: Node


@dataclass(frozen=True, slots=True)
class Function:
    """A function's type: of its parameters, the return type left out."""

    parameters: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Named:
    """A class, an enumeration, a namespace, a function or a variable: its whole name, and a template's arguments."""

    path: tuple[str, ...]
    arguments: tuple[Node, ...] | None = None


# An int is a constant, a tuple a template's parameter pack, and None is whatever has no place here.
Node = Builtin | Pointer | Function | Named | int | tuple[Any, ...] | None


def several(node: Node) -> tuple[Node, ...]:
    """The members of a pack, or the node alone."""
    return node if isinstance(node, tuple) else (node,)
