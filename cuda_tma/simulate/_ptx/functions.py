"""The functions of a module, each of which is parsed at its first use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .module import Function
from .tokens import Token

__all__ = ["Functions"]

Read = Callable[[Function, Token, int], Function]


class Functions(Mapping[str, Function]):
    """Functions by name, in the order of the text.

    Parameters
    ----------
    read : callable
        Returns a function with its body; takes its head, its body and the number of names that precede it.
    """

    def __init__(self, read: Read):
        self._read = read
        self._found: dict[str, Function] = {}
        self._bodies: dict[str, tuple[Token, int]] = {}

    def add(self, function: Function) -> None:
        """Add a function that is only declared, or has its body."""
        self._found[function.name] = function
        self._bodies.pop(function.name, None)

    def add_head(self, head: Function, body: Token, names: int) -> None:
        """Add a function whose body is read later."""
        self._found[head.name] = head
        self._bodies[head.name] = body, names

    def heads(self) -> tuple[Function, ...]:
        """Return the functions, of which some may have no instructions yet."""
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
