"""The enumeration of each parameter of a tensor map, and the names of its values."""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from typing import Any

from .. import TensorMapOptions

__all__ = ["ENUMS", "word_of"]

_TYPES = {field.name: field.metadata.get("type", int) for field in fields(TensorMapOptions)}
ENUMS: dict[str, Any] = {name: type_ for name, type_ in _TYPES.items() if issubclass(type_, IntEnum)}


def word_of(parameter: str, value: int) -> str:
    """Return the short name of a value of a parameter; the name is empty for an unknown value.

    >>> word_of("swizzle", 3), word_of("swizzle", 9)
    ('128B', '')
    """
    return next((member.short_name for member in ENUMS[parameter] if member == value), "")
