"""The enumerations of the driver, with the driver's values and cuda.core's names.

The source is ``cuda.h`` of CUDA 13.5, ``CUtensorMap*_enum``. cuda.core 1.2 has the same names, except the packed data
types and the ``SWIZZLE_128B_ATOM_*`` modes.
"""

from __future__ import annotations

import enum
import operator

__all__ = [
    "TensorMapAllocationClass",
    "TensorMapDataType",
    "TensorMapIm2ColWideMode",
    "TensorMapInterleave",
    "TensorMapL2Promotion",
    "TensorMapOOBFill",
    "TensorMapSwizzle",
]

# A short name is the name of a member without its prefix, such as "128B" for SWIZZLE_128B.
_PREFIXES = ("SWIZZLE_", "INTERLEAVE_", "L2_", "PACKED_")


class _DriverEnum(enum.IntEnum):
    @property
    def short_name(self) -> str:
        """The short name for users, such as ``"128B"`` for ``SWIZZLE_128B``."""
        for prefix in _PREFIXES:
            if self.name.startswith(prefix):
                return self.name.removeprefix(prefix)
        return self.name

    @classmethod
    def parse(cls, value: object, argument: str):
        """Return the member that a name, a driver value or another member stands for.

        Parameters
        ----------
        value : member, int or str
            A member of this enum or of cuda.core's enum of the same name, a driver value of any integer type, or a
            name. A full or short name may be in any case (``"SWIZZLE_128B"``, ``"128b"``).
        argument : str
            The user's name of the argument, which the error contains.

        Raises
        ------
        TypeError
            If `value` is a member of another enum, or is neither an int nor a str.
        ValueError
            If no member has the value or the name. The message lists the short names.

        Examples
        --------
        >>> TensorMapSwizzle.parse("128B", "swizzle")
        <TensorMapSwizzle.SWIZZLE_128B: 3>
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, enum.Enum) and type(value).__name__ != cls.__name__:
            raise TypeError(f"{argument}={value!r} is a {type(value).__name__}; {argument} takes a {cls.__name__}")
        if isinstance(value, str):
            member = _by_name(cls).get(value.upper())
        else:
            number = _number(value)
            if number is None:
                kind = type(value).__name__
                raise TypeError(
                    f"{argument} takes a {cls.__name__}, its driver value or its name, not {kind} {value!r}"
                )
            member = next((m for m in cls if m == number), None)
        if member is None:
            names = ", ".join(f'"{m.short_name}"' for m in cls)
            raise ValueError(f"{argument}={value!r} is not a {cls.__name__}; choose one of {names}")
        return member


def _number(value: object) -> int | None:
    """Return the value as an integer, also for NumPy's integers, or None for True and False."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _by_name(cls: type[_DriverEnum]) -> dict[str, _DriverEnum]:
    full = {name.upper(): member for name, member in cls.__members__.items()}
    return {member.short_name.upper(): member for member in cls} | full


class TensorMapDataType(_DriverEnum):
    """``CUtensorMapDataType``: the type that an element has for the TMA unit.

    Names in Python cannot start with a digit. The driver's ``16U4_ALIGN8B`` is therefore ``PACKED_16U4_ALIGN8B``, with
    the short name ``"16U4_ALIGN8B"``.
    """

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12
    PACKED_16U4_ALIGN8B = 13
    PACKED_16U4_ALIGN16B = 14
    PACKED_16U6_ALIGN16B = 15


class TensorMapInterleave(_DriverEnum):
    """``CUtensorMapInterleave``: the layouts NC/8HWC8 (16 bytes) and NC/16HWC16 (32 bytes), or no interleave."""

    NONE = 0
    INTERLEAVE_16B = 1
    INTERLEAVE_32B = 2


class TensorMapSwizzle(_DriverEnum):
    """``CUtensorMapSwizzle``: the permutation of the chunks in a row of shared memory."""

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3
    SWIZZLE_128B_ATOM_32B = 4
    SWIZZLE_128B_ATOM_32B_FLIP_8B = 5
    SWIZZLE_128B_ATOM_64B = 6


class TensorMapL2Promotion(_DriverEnum):
    """``CUtensorMapL2promotion``: the size to which the hardware widens a fetch into L2."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3


class TensorMapOOBFill(_DriverEnum):
    """``CUtensorMapFloatOOBfill``: the value (zero or NaN) of elements outside the tensor in a load."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1
    NAN = 1


class TensorMapIm2ColWideMode(_DriverEnum):
    """``CUtensorMapIm2ColWideMode``: the mode im2col along W, or im2col along W in steps of 128."""

    W = 0
    W128 = 1


class TensorMapAllocationClass(_DriverEnum):
    """``CUtensorMapAllocClass``: the distance within which TMA may compute addresses out of bounds.

    The classes exist from compute capability 10.0 and CUDA 13.5 on. The classes are documented, but not verified on
    hardware. SMALL (4 KiB) is always safe. LARGE (128 KiB) is faster, and needs an allocation of at least
    ``CU_DEVICE_ATTRIBUTE_TENSOR_MAP_LARGE_TENSOR_MIN_SIZE`` bytes around the first byte of the tensor. With AUTO, the
    driver chooses the class. A map contains SMALL or LARGE, and never AUTO.
    """

    AUTO = 0
    SMALL = 1
    LARGE = 2
