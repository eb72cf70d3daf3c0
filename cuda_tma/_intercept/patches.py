"""The replacement of a runtime's attributes by an adapter, and the reversal of the replacement."""

from __future__ import annotations

from typing import Any

__all__ = ["Patches"]

_ABSENT = object()


class Patches:
    """The replaced attributes of a runtime, with their old values."""

    def __init__(self) -> None:
        self._old: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, value: Any) -> Any:
        """Replace an attribute. Return its old value, or None if the attribute did not exist."""
        old = vars(owner).get(name, _ABSENT)
        self._old.append((owner, name, old))
        setattr(owner, name, value)
        return None if old is _ABSENT else old

    def undo(self) -> None:
        """Restore the old values of all attributes, in reverse order."""
        while self._old:
            owner, name, old = self._old.pop()
            if old is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, old)
