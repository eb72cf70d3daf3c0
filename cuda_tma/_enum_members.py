"""The enumeration of each parameter, and the lookup of the member for a value."""

from __future__ import annotations

from ._option_table import OPTIONS
from .enums import _DriverEnum

PARAMETER_ENUMS: dict[str, type[_DriverEnum]] = {name: row.type for name, row in OPTIONS.items() if row.is_enum}


def member_of(parameter: str, value: int) -> _DriverEnum | None:
    """Return the member for a parameter's value, or None if the enumeration or the member does not exist.

    >>> member_of("swizzle", 3), member_of("swizzle", 9), member_of("rank", 3)
    (<TensorMapSwizzle.SWIZZLE_128B: 3>, None, None)
    """
    return next((member for member in PARAMETER_ENUMS.get(parameter, ()) if member == value), None)
