"""The enumeration of each parameter, and the member that a value is."""

from __future__ import annotations

from .enums import (
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
    _DriverEnum,
)

PARAMETER_ENUMS: dict[str, type[_DriverEnum]] = {
    "data_type": TensorMapDataType,
    "interleave": TensorMapInterleave,
    "swizzle": TensorMapSwizzle,
    "l2_promotion": TensorMapL2Promotion,
    "oob_fill": TensorMapOOBFill,
    "allocation_class": TensorMapAllocationClass,
    "mode": TensorMapIm2ColWideMode,
}


def member_of(parameter: str, value: int) -> _DriverEnum | None:
    """The member that a parameter's value is; None of other parameters, and of values that the driver has no name for.

    >>> member_of("swizzle", 3), member_of("swizzle", 9), member_of("rank", 3)
    (<TensorMapSwizzle.SWIZZLE_128B: 3>, None, None)
    """
    return next((member for member in PARAMETER_ENUMS.get(parameter, ()) if member == value), None)
