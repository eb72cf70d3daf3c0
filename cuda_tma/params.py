"""The content of a tensor map with the driver's names, order and units, which is the central value of the package.

Every array is in driver order, in which index 0 is the innermost dimension. There are ``rank - 1`` strides in bytes,
because the innermost dimension has no stride. The constructors convert integers of any type to plain ints, and refuse
other types. :func:`cuda_tma.check` checks that the map is legal. :func:`cuda_tma.encode` writes the numbers to 128
bytes, and :func:`cuda_tma.decode` returns them.

The source of names and order is the CUDA driver API, ``cuTensorMapEncodeTiled``, ``...Im2col`` and ``...Im2colWide``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cache
from operator import attrgetter, index
from typing import Any

from ._enum_members import member_of
from ._errors import TensorMapError
from ._given import integer, shown

__all__ = ["Im2colParams", "Im2colWideParams", "Params", "TiledParams"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Params:
    """The parameters that the three modes share.

    Attributes
    ----------
    data_type : int
        A ``TensorMapDataType`` value.
    global_address : int
        The address of the first element in global memory.
    global_dim : tuple of int
        The extents in elements, innermost first. The length is the rank of the tensor.
    global_strides : tuple of int
        The bytes from one index to the next in the dimensions 1, 2, ..., which are ``rank - 1`` values.
    element_strides : tuple of int
        The steps in elements between the elements that a load visits, for each dimension.
    interleave, swizzle, l2_promotion, oob_fill : int
        The values of the enums with these names.
    allocation_class : int
        A ``TensorMapAllocationClass`` value, 1 (SMALL) or 2 (LARGE), as ``cuTensorMapSetAllocationClass`` sets it after
        encoding. A map cannot contain 0 (AUTO), which is only a request. The class is documented, but not verified on
        hardware.
    unexplained : tuple of (int, int)
        Pairs (word index, XOR mask) for the 32-bit words in which decoded bytes differ from the encoding of these
        parameters. The tuple is empty for every map of the driver.

    Raises
    ------
    TensorMapError
        If a field does not have its type. Members of enums and NumPy's integers are integers, but floats and None are
        not.
    """

    data_type: int
    global_address: int
    global_dim: tuple[int, ...]
    global_strides: tuple[int, ...]
    element_strides: tuple[int, ...]
    interleave: int = 0
    swizzle: int = 0
    l2_promotion: int = 0
    oob_fill: int = 0
    allocation_class: int = 1
    unexplained: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if not _is_plain(self):
            for field in dataclass_fields(self):
                plain = _PLAIN.get(field.type)
                if plain:
                    object.__setattr__(self, field.name, plain(field.name, getattr(self, field.name)))

    def __repr__(self) -> str:
        """Return the call that returns an equal value, with names of enum members and a hexadecimal address."""
        fields = (f"{f.name}={_written(f.name, getattr(self, f.name))}" for f in dataclass_fields(self))
        return f"{type(self).__name__}({', '.join(fields)})"

    @property
    def rank(self) -> int:
        """The number of dimensions of the tensor."""
        return len(self.global_dim)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TiledParams(Params):
    """The parameters of ``cuTensorMapEncodeTiled``, with which a load delivers a box.

    Attributes
    ----------
    box_dim : tuple of int
        The extents of the box in elements of the tensor, innermost first.
    """

    box_dim: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Im2colParams(Params):
    """The parameters of ``cuTensorMapEncodeIm2col``, with which a load delivers pixels in convolution order.

    Attributes
    ----------
    pixel_box_lower_corner, pixel_box_upper_corner : tuple of int
        The corners of the box of pixels, relative to the tensor's first and last pixel. Each corner has ``rank - 2``
        values (W, H, D), with the innermost spatial dimension first.
    channels_per_pixel : int
        The elements of dimension 0 that a load delivers for each pixel.
    pixels_per_column : int
        The pixels that one load delivers.
    """

    pixel_box_lower_corner: tuple[int, ...]
    pixel_box_upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Im2colWideParams(Params):
    """The parameters of ``cuTensorMapEncodeIm2colWide``, im2col along W only (compute capability 10 and later).

    Attributes
    ----------
    pixel_box_lower_corner_width, pixel_box_upper_corner_width : int
        The corners of the box of pixels along W.
    channels_per_pixel, pixels_per_column : int
        The elements of each pixel and the pixels of one load, as in :class:`Im2colParams`.
    mode : int
        A ``TensorMapIm2ColWideMode`` value.
    """

    pixel_box_lower_corner_width: int
    pixel_box_upper_corner_width: int
    channels_per_pixel: int
    pixels_per_column: int
    mode: int = 0


def _written(name: str, value: Any) -> str:
    member = member_of(name, value)
    if member is not None:
        return f"{type(member).__name__}.{member.name}"
    return f"{value:#x}" if name == "global_address" else _digits(value)


def _digits(value: Any) -> str:
    """Return the text of integers, nested or not. Python refuses to write thousands of decimal digits."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_digits, value))}{',' * (len(value) == 1)})"
    return repr(value) if -(2**128) < value < 2**128 else hex(value)


# The fields are ints, because numbers of other types that are equal as keys of a cache give other results in
# arithmetic. For example, np.uint8(64) * 4 is 0, and 64.0 // 3 is a float.

# _INTEGER, _INTEGERS and _PAIRS are the annotations of the fields.
_INTEGER, _INTEGERS, _PAIRS = "int", "tuple[int, ...]", "tuple[tuple[int, int], ...]"


@cache
def _getters(kind: Any) -> tuple[Callable[[Params], Any], Callable[[Params], Any]]:
    """Return the function that gets the integers of the parameters, and the function that gets their arrays."""
    names = {wanted: [f.name for f in dataclass_fields(kind) if f.type == wanted] for wanted in (_INTEGER, _INTEGERS)}
    return attrgetter(*names[_INTEGER]), attrgetter(*names[_INTEGERS])


def _is_plain(params: Params) -> bool:
    """Return whether all numbers already are ints.

    In the common case all numbers are ints, and loops are the fastest test of decoded maps.
    """
    kind: Any = type(params)  # The type is Any, because for mypy a dataclass is not hashable.
    get_integers, get_arrays = _getters(kind)
    for value in get_integers(params):
        if type(value) is not int:
            return False
    for values in get_arrays(params):
        if type(values) is not tuple:
            return False
        for value in values:
            if type(value) is not int:
                return False
    return params.unexplained == ()


def _integers(name: str, values: object) -> tuple[int, ...]:
    try:
        if isinstance(values, tuple):
            return tuple(map(index, values))
    except TypeError:
        pass
    raise TensorMapError(f"{name} is {shown(values)}; pass a tuple of integers")


def _pairs(name: str, values: Iterable[Any]) -> tuple[tuple[int, int], ...]:
    """Return pairs of a word in a descriptor and bits in that word."""
    try:
        pairs = tuple((index(word), index(mask)) for word, mask in values)
        if all(0 <= word < 32 and 0 <= mask < 1 << 32 for word, mask in pairs):
            return pairs
    except (TypeError, ValueError):  # Python raises ValueError for a value that is not a pair.
        pass
    raise TensorMapError(f"{name} is {shown(values)}; pass pairs of a word's index, 0 to 31, and a mask of its 32 bits")


_PLAIN: dict[Any, Callable[[str, Any], Any]] = {_INTEGER: integer, _INTEGERS: _integers, _PAIRS: _pairs}
