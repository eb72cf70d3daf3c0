"""The data types of tensor maps, their properties, and their dtypes.

Sizes are in bits, because some types have 4 or 6 bits.

The package represents a dtype by its *name* (``"float32"``, ``"float8_e4m3fn"``), in the spelling that NumPy,
ml_dtypes, torch and JAX share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._errors import TensorMapError
from ._limits import TMA_EXTENDED_SINCE, TMA_SINCE
from .enums import TensorMapDataType as T
from .enums import TensorMapInterleave
from .enums import TensorMapSwizzle as S

__all__ = [
    "DLPACK_DTYPES",
    "DLPACK_NAMES",
    "ELEMENTS",
    "GROUP_ELEMENTS",
    "Element",
    "data_type_of",
    "dtype_name",
    "element_bits",
    "is_floating",
    "is_packed",
    "numpy_dtype",
    "parse_data_type",
]

_DRIVER_NAMES = {*T.__members__, *(member.short_name for member in T)}
GROUP_ELEMENTS = 16  # In shared memory, packed elements form groups of 16 elements.


@dataclass(frozen=True, slots=True)
class Element:
    """The properties of one data type.

    Attributes
    ----------
    bits : int
        Bits of one element in global memory.
    code : int
        The code in a tensor map. Bits 0-3 contain the format, and bit 4 selects rounding to TFLOAT32.
    is_floating : bool
        Whether the driver treats the type as a floating-point type, for which the NaN fill is legal.
    since : (int, int)
        The first compute capability that supports the type.
    group_bytes : (int, int) or None
        The bytes of 16 packed elements without and with their gap in shared memory; None for other types.
    address_align_bytes : int
        The divisor of the tensor's address and strides, in bytes; see `align_bytes`.
    dim_multiple : int
        The divisor of the innermost extent.
    row_elements : int or None
        The only legal width of a box's row; None if every multiple of 16 bytes is legal.
    swizzles, wide_swizzles : tuple of TensorMapSwizzle or None
        The legal modes, and the legal modes of im2col-wide maps; None if all modes are legal.
    can_interleave, can_store : bool
        Whether interleaved layouts accept the type, and whether stores accept it. All loads accept the type.
    """

    bits: int
    code: int
    is_floating: bool = False
    since: tuple[int, int] = TMA_SINCE
    group_bytes: tuple[int, int] | None = None
    address_align_bytes: int = 16
    dim_multiple: int = 1
    row_elements: int | None = None
    swizzles: tuple[S, ...] | None = None
    wide_swizzles: tuple[S, ...] | None = None
    can_interleave: bool = True
    can_store: bool = True

    @property
    def smem_bits(self) -> int:
        """Bits of one element in shared memory, including its share of the gap in a packed group."""
        return self.group_bytes[1] * 8 // GROUP_ELEMENTS if self.group_bytes else self.bits

    @property
    def chunk_elements(self) -> int:
        """The length of each row of the box, in elements, must be a multiple of this number.

        Without interleave, the innermost coordinate must also be a multiple of this number.
        """
        return self.row_elements or math.lcm(128, self.bits) // self.bits

    def align_bytes(self, interleave: int) -> int:
        """Return the alignment of the address and strides (cuTensorMapEncodeTiled, globalAddress and globalStrides)."""
        return 32 if interleave == TensorMapInterleave.INTERLEAVE_32B else self.address_align_bytes


# The properties are from the CUDA 13.5 driver API, cuTensorMapEncode*. The module codec/_fields contains the codes. The
# rules for rows and stores of packed types are from PTX ISA 9.0, "Restriction on Tensor Copy instructions".
ELEMENTS: dict[int, Element] = {
    T.UINT8: Element(8, code=0),
    T.UINT16: Element(16, code=1),
    T.UINT32: Element(32, code=2),
    T.INT32: Element(32, code=3),
    T.UINT64: Element(64, code=4),
    T.INT64: Element(64, code=5),
    T.FLOAT16: Element(16, code=6, is_floating=True),
    T.FLOAT32: Element(32, code=7, is_floating=True),
    T.FLOAT64: Element(64, code=9, is_floating=True),
    T.BFLOAT16: Element(16, code=10, is_floating=True),
    T.FLOAT32_FTZ: Element(32, code=8, is_floating=True),
    T.TFLOAT32: Element(32, code=7 | 16, is_floating=True),
    T.TFLOAT32_FTZ: Element(32, code=8 | 16, is_floating=True),
    T.PACKED_16U4_ALIGN8B: Element(4, code=11, since=TMA_EXTENDED_SINCE, group_bytes=(8, 8), dim_multiple=2),
    T.PACKED_16U4_ALIGN16B: Element(
        4,
        code=12,
        since=TMA_EXTENDED_SINCE,
        group_bytes=(8, 16),
        address_align_bytes=32,
        dim_multiple=128,
        row_elements=128,
        swizzles=(S.NONE, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B),
        wide_swizzles=(S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B),
        can_store=False,
    ),
    T.PACKED_16U6_ALIGN16B: Element(
        6,
        code=13,
        since=TMA_EXTENDED_SINCE,
        group_bytes=(12, 16),
        address_align_bytes=32,
        dim_multiple=128,
        row_elements=128,
        swizzles=(S.NONE, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B, S.SWIZZLE_128B_ATOM_64B),
        wide_swizzles=(S.SWIZZLE_64B, S.SWIZZLE_128B, S.SWIZZLE_128B_ATOM_32B),
        can_interleave=False,
    ),
}

# Each row contains a name of a dtype, the bits of an element in memory, and the default data type. TMA copies elements
# of any other type as unsigned integers of the same size, because a copy does not interpret values.
_DTYPES = {
    "bool": (8, T.UINT8),
    "uint8": (8, T.UINT8),
    "int8": (8, T.UINT8),
    "uint16": (16, T.UINT16),
    "int16": (16, T.UINT16),
    "uint32": (32, T.UINT32),
    "int32": (32, T.INT32),
    "uint64": (64, T.UINT64),
    "int64": (64, T.INT64),
    "float16": (16, T.FLOAT16),
    "bfloat16": (16, T.BFLOAT16),
    "float32": (32, T.FLOAT32),
    "float64": (64, T.FLOAT64),
    "complex64": (64, T.UINT64),
    "float8_e3m4": (8, T.UINT8),
    "float8_e4m3": (8, T.UINT8),
    "float8_e4m3b11fnuz": (8, T.UINT8),
    "float8_e4m3fn": (8, T.UINT8),
    "float8_e4m3fnuz": (8, T.UINT8),
    "float8_e5m2": (8, T.UINT8),
    "float8_e5m2fnuz": (8, T.UINT8),
    "float8_e8m0fnu": (8, T.UINT8),
}

# DLPACK_NAMES maps (DLPack type code, bits, lanes) to a name (dlpack.h 1.1, DLDataTypeCode).
DLPACK_NAMES = {
    **{(0, bits, 1): f"int{bits}" for bits in (8, 16, 32, 64)},
    **{(1, bits, 1): f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{(2, bits, 1): f"float{bits}" for bits in (16, 32, 64)},
    (4, 16, 1): "bfloat16",
    (5, 64, 1): "complex64",
    (5, 128, 1): "complex128",
    (6, 8, 1): "bool",
    (7, 8, 1): "float8_e3m4",
    (8, 8, 1): "float8_e4m3",
    (9, 8, 1): "float8_e4m3b11fnuz",
    (10, 8, 1): "float8_e4m3fn",
    (11, 8, 1): "float8_e4m3fnuz",
    (12, 8, 1): "float8_e5m2",
    (13, 8, 1): "float8_e5m2fnuz",
    (14, 8, 1): "float8_e8m0fnu",
    (17, 4, 2): "float4_e2m1fn_x2",
}
DLPACK_DTYPES = {name: dtype for dtype, name in DLPACK_NAMES.items()}

# _SHORT_NAMES contains the short names of PTX and other libraries. The table omits NumPy's short names, because "f8"
# means 8 bytes in NumPy.
_SHORT_NAMES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "fp64": "float64",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}
_TFLOAT32 = "tf32"


def element_bits(data_type: int) -> int:
    """Return the bits of one element in global memory.

    >>> element_bits(T.BFLOAT16), element_bits(T.PACKED_16U6_ALIGN16B)
    (16, 6)
    """
    return ELEMENTS[data_type].bits


def is_packed(data_type: int) -> bool:
    """Return whether elements are smaller than a byte (the 16U4 and 16U6 types)."""
    return element_bits(data_type) < 8


def is_floating(data_type: int) -> bool:
    """Return whether the driver calls the type a floating-point type, for which the NaN fill is legal."""
    return ELEMENTS[data_type].is_floating


def float_dtype(data_type: int) -> str | None:
    """Return the dtype of a floating-point type's values; None for other types.

    >>> float_dtype(T.TFLOAT32), float_dtype(T.BFLOAT16), float_dtype(T.UINT16)
    ('float32', 'bfloat16', None)
    """
    if not is_floating(data_type):
        return None
    return "bfloat16" if data_type == T.BFLOAT16 else f"float{element_bits(data_type)}"


def data_type_of(dtype_name: str, argument: str = "data_type") -> T:
    """Return the default data type of a dtype; errors name `argument`.

    Raises
    ------
    TensorMapError
        If no type has that element size, or if the user must choose a type (``float4_e2m1fn_x2``).
    """
    if dtype_name == "float4_e2m1fn_x2":
        raise TensorMapError(
            f'a float4_e2m1fn_x2 tensor can be moved in three ways; pass {argument}= to choose one: "UINT8" (each byte '
            'with its two elements unchanged; box_dim and coordinates count bytes), "16U4_ALIGN8B" (16 elements in 8 '
            'bytes of shared memory, no gaps; box_dim and coordinates count 4-bit elements), "16U4_ALIGN16B" (16 '
            "elements in 8 bytes, then a gap of 8 bytes, for tensor cores of compute capability 10 that also read fp8; "
            "box_dim and coordinates count 4-bit elements)"
        )
    if dtype_name not in _DTYPES:
        raise TensorMapError(
            f"the elements are {dtype_name}, which has no tensor-map data type. TMA moves elements of 1, 2, 4 or 8 "
            f"bytes: pass {argument}= to choose a type, or view the tensor as another dtype (complex128 as float64 "
            "with twice the columns)"
        )
    return _DTYPES[dtype_name][1]


def dtype_name(dtype_like: Any, argument: str = "dtype", others: Sequence[str] = ()) -> str:
    """Return the common name of a NumPy, ml_dtypes, torch or JAX dtype, which may also be given as text in any case.

    The error contains `argument`, the name of the user's argument, and `others`, additional data types that it accepts.

    >>> dtype_name("FLOAT32"), dtype_name(np.float32), dtype_name(np.dtype("=i4")), dtype_name("torch.bfloat16")
    ('float32', 'float32', 'int32', 'bfloat16')
    """
    text = str(dtype_like)
    name = text.removeprefix("torch.").lower()
    name = _SHORT_NAMES.get(name, name)
    if name in DLPACK_DTYPES or text.startswith("torch."):
        return name
    dtype = _numpy_dtype_like(dtype_like)
    if dtype is None:
        kind = "neither a dtype nor a TensorMapDataType" if others else "not a dtype"
        choices = ", ".join([*DLPACK_DTYPES, *others])
        raise TensorMapError(f"{argument}={dtype_like!r} is {kind}; choose one of {choices}")
    if not dtype.isnative:
        raise TensorMapError(
            f"{argument}={dtype_like!r} is not in native byte order, which TMA needs; pass a dtype in native byte order"
        )
    return dtype.name


def _numpy_dtype_like(value: Any) -> np.dtype | None:
    """Return NumPy's dtype for a value; return None for None and for numbers, which NumPy would also convert."""
    if value is None or isinstance(value, np.generic):
        return None
    try:
        return np.dtype(value)
    except (TypeError, ValueError, SyntaxError):  # NumPy raises SyntaxError for some texts with commas.
        return None


def parse_data_type(value: object, argument: str = "data_type") -> T:
    """Return a data type from a TensorMapDataType (ours or cuda.core's), a driver value, a name, or any dtype.

    The name may be the driver's (``"TFLOAT32"``) or that of a dtype (``"int8"``); a name that both use has the same
    meaning for both. Errors contain `argument`.

    >>> parse_data_type("16U4_ALIGN8B").name, parse_data_type(np.int16).name, parse_data_type("bf16").name
    ('PACKED_16U4_ALIGN8B', 'UINT16', 'BFLOAT16')
    """
    if isinstance(value, str) and value.lower() == _TFLOAT32:
        return T.TFLOAT32
    if isinstance(value, int | np.integer) or (isinstance(value, str) and value.upper() in _DRIVER_NAMES):
        return T.parse(value, argument)
    others = [member.short_name for member in T if member.short_name.lower() not in DLPACK_DTYPES]
    return data_type_of(dtype_name(value, argument, others), argument)


def numpy_dtype(dtype_name: str) -> np.dtype:
    """Return the NumPy dtype of a name; narrow floats are from ml_dtypes, or are uint8 without it.

    float4_e2m1fn_x2 is always uint8, because NumPy has no dtype for two elements in a byte.
    """
    if dtype_name == "float4_e2m1fn_x2":
        return np.dtype(np.uint8)
    try:
        return np.dtype(dtype_name)
    except TypeError:
        return _ml_dtype(dtype_name)


def _ml_dtype(dtype_name: str) -> np.dtype:
    try:
        import ml_dtypes
    except ImportError:
        return np.dtype(f"uint{_DTYPES[dtype_name][0]}")
    return np.dtype(getattr(ml_dtypes, dtype_name))
