"""The enumeration of each parameter, and the name of a value."""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from typing import Any

from .. import TensorMapOptions

__all__ = ["ENUMS", "word_of"]

_TYPES = {field.name: field.metadata.get("type", int) for field in fields(TensorMapOptions)}
ENUMS: dict[str, Any] = {name: type_ for name, type_ in _TYPES.items() if issubclass(type_, IntEnum)}


def word_of(parameter: str, value: int) -> str:
    """Return the short name of a value, or an empty string for a value without a name.

    >>> word_of("swizzle", 3), word_of("swizzle", 9)
    ('128B', '')
    """
    return next((member.short_name for member in ENUMS[parameter] if member == value), "")
