"""The adapters, each by the module whose import loads it."""

from __future__ import annotations

from collections.abc import Callable

from .session import Session, current

__all__ = ["loaded"]

_ADAPTERS: dict[str, Callable[[Session], None]] = {}  # functions that import their adapter when they are called


def loaded(name: str) -> None:
    """Install the adapter of a module that has just been imported."""
    session = current()
    if session is not None and name in _ADAPTERS:
        _ADAPTERS[name](session)
