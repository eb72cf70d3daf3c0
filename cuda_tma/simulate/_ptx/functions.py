"""The functions of a PTX module, each of which is parsed at its first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .module import Function
from .tokens import Token

__all__ = ["Functions"]

Read = Callable[[Function, Token, int], Function]


class Functions(Mapping[str, Function]):
    """A mapping of names to functions, in the order of the text.

    Parameters
    ----------
    read : callable
        A function that returns a parsed function. The arguments of `read` are the head, the body and the number of
        names that precede the function.
    """

    def __init__(self, read: Read):
        self._read = read
        self._found: dict[str, Function] = {}
        self._bodies: dict[str, tuple[Token, int]] = {}

    def add(self, function: Function) -> None:
        """Add a function that is only declared, or whose body is already parsed."""
        self._found[function.name] = function
        self._bodies.pop(function.name, None)

    def add_head(self, head: Function, body: Token, names: int) -> None:
        """Add a function whose body is parsed at its first use."""
        self._found[head.name] = head
        self._bodies[head.name] = body, names

    def heads(self) -> tuple[Function, ...]:
        """Return all functions; a function whose body is not parsed has no instructions."""
        return tuple(self._found.values())

    def __getitem__(self, name: str) -> Function:
        body = self._bodies.get(name)
        if body is not None:
            self._found[name] = self._read(self._found[name], *body)
            self._bodies.pop(name, None)
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)
