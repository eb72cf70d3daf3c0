"""The table from which the classes, keywords, flags, bits and reference pages of the options are made.

``tools/write_options.py`` writes the files that contain the options as text: ``_option_fields.py`` and
``_make/doors.pxi``.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

from ._limits import MAX_BOX_DIM, MAX_ELEMENT_STRIDE, MAX_PIXELS_PER_COLUMN, TMA_EXTENDED_SINCE
from .enums import (
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)

__all__ = ["COMMON", "KINDS", "OPTIONS", "REQUIRED", "SIZES", "Option"]

REQUIRED: Any = object()
SIZES = tuple  # SIZES is the type of an option with one integer for each dimension.

# A piece of a field is (word, lowest bit, width), and the first piece contains the least significant bits.
Bits = tuple[tuple[int, int, int], ...]


class Option(NamedTuple):
    """One option of a tensor map.

    Attributes
    ----------
    name : str
    type : type
        An enum, ``int``, or SIZES.
    A member of the enum, None (the tensor or the driver determines the value) or REQUIRED.
        A member, None (derived from the tensor or the driver) or REQUIRED.
    meaning : str
        The text of the option in the reference.
    range : (int, int) or None
        Least and greatest legal value of an integer.
    c_type : str
        The type in the driver's encoder.
    bits : tuple of Bits
        The bits of the option in the 128 bytes, with one entry for each dimension, in driver order. The tuple is empty
        if the place depends on the rank, or if the option has no bits.
    bias : int
        The number that is subtracted before the value is stored.
    codes : tuple of int or None
        The stored number of each member; None if the stored number is the member's value.
    legal, rule, source : tuple of members, str, str
        The legal members, the rule as text, and the rule's source. All three are empty if :mod:`cuda_tma.rules` has its
        own rules.
    since : (int, int) or None
        The first compute capability with the option; None if every device with TMA has it.
    flag : str
        The help of the option's flag on the command line; empty if no flag has the option's name.
    """

    name: str
    type: type
    default: Any
    meaning: str
    range: tuple[int, int] | None = None
    c_type: str = "uint32_t"
    bits: tuple[Bits, ...] = ()
    bias: int = 0
    codes: tuple[int | None, ...] = ()
    legal: tuple[IntEnum, ...] = ()
    rule: str = ""
    source: str = ""
    since: tuple[int, int] | None = None
    flag: str = ""

    @property
    def is_enum(self) -> bool:
        """Return whether the values of the option are members of an enum."""
        return issubclass(self.type, IntEnum)


CHANNELS_PER_PIXEL = Option(
    "channels_per_pixel", int, REQUIRED, "Elements of the innermost dimension that a load delivers of each pixel.",
    (1, MAX_BOX_DIM), bits=(((13, 24, 8),),), bias=1)  # fmt: skip
PIXELS_PER_COLUMN = Option(
    "pixels_per_column", int, REQUIRED, "Pixels of one load.",
    (1, MAX_PIXELS_PER_COLUMN), bits=(((15, 0, 10),),), bias=1)  # fmt: skip

SWIZZLE = Option(
    "swizzle", TensorMapSwizzle, TensorMapSwizzle.NONE,
    '``"128B"`` is ``TensorMapSwizzle.SWIZZLE_128B``, and likewise for the others.',
    bits=(((2, 13, 2), (2, 19, 2), (2, 22, 1)),), flag="permutation of rows in shared memory")  # fmt: skip

_TRAVERSAL = (
    Option("element_strides", SIZES, None,
           "Steps between the elements that a load visits in each dimension, in tensor order; all 1 if None.",
           (1, MAX_ELEMENT_STRIDE), bits=tuple(((13, 3 * dim, 3),) for dim in range(5)), bias=1),
    Option("data_type", TensorMapDataType, None,
           "How the engine reads an element; follows from the tensor's dtype if None.",
           bits=(((2, 7, 4), (2, 16, 1)),)),
    Option("interleave", TensorMapInterleave, TensorMapInterleave.NONE,
           "The layout of channels in global memory.",
           bits=(((2, 11, 2),),), codes=(0, 1, 2), flag="interleaved layout of the tensor's channels"),
)  # fmt: skip
_DELIVERY = (
    SWIZZLE,
    Option("l2_promotion", TensorMapL2Promotion, TensorMapL2Promotion.NONE,
           "How many bytes L2 fetches at a time.",
           bits=(((2, 17, 2),),), flag="size to which L2 widens a fetch"),
    Option("oob_fill", TensorMapOOBFill, TensorMapOOBFill.NONE,
           "What a load delivers of elements outside the tensor: zeros, or NaN.",
           bits=(((2, 15, 1),),),
           flag="value of elements outside the tensor in a load (NONE: zero, NAN)"),
    Option("allocation_class", TensorMapAllocationClass, None,
           "With a driver of CUDA 13.5 or later: how far beyond the tensor the engine may prefetch. If None, SMALL "
           "if the driver can set it. Documented, not verified on hardware.",
           c_type="CUtensorMapAllocClass", bits=(((2, 21, 1),),), codes=(None, 0, 1),
           legal=(TensorMapAllocationClass.SMALL, TensorMapAllocationClass.LARGE),
           rule="SMALL or LARGE: the driver replaces AUTO, so a map contains its choice",
           source="CUDA 13.5 driver API, cuTensorMapSetAllocationClass",
           since=TMA_EXTENDED_SINCE, flag="reach of a prefetch on compute capability 10.0"),
)  # fmt: skip
COMMON = (*_TRAVERSAL, *_DELIVERY)  # Every kind of options contains the options in COMMON.

_TILED = (
    Option("box_dim", SIZES, REQUIRED,
           "Extent of the tile in each dimension, in elements (of a packed type: in packed elements), in tensor order.",
           (1, MAX_BOX_DIM), bits=(((13, 24, 8),), *(((14, 8 * dim, 8),) for dim in range(4))), bias=1),
)  # fmt: skip
_IM2COL = (
    Option("pixel_box_lower_corner", SIZES, REQUIRED,
           "Start of the box of pixels, from the tensor's first pixel: (W,), (H, W) or (D, H, W). For a "
           "convolution, the negative padding.", c_type="int32_t"),
    Option("pixel_box_upper_corner", SIZES, REQUIRED,
           "End of the box of pixels, from the tensor's last pixel. For a convolution, "
           "``padding - (kernel_size - 1) * dilation``.", c_type="int32_t"),
    CHANNELS_PER_PIXEL,
    PIXELS_PER_COLUMN,
)  # fmt: skip
_WIDE = (
    Option("pixel_box_lower_corner_width", int, REQUIRED,
           "Start of the row of pixels, from the tensor's first pixel along W.", c_type="int32_t"),
    Option("pixel_box_upper_corner_width", int, REQUIRED,
           "End of the row of pixels, from the tensor's last pixel along W.", c_type="int32_t"),
    CHANNELS_PER_PIXEL,
    PIXELS_PER_COLUMN,
)  # fmt: skip
_MODE = Option(
    "mode", TensorMapIm2ColWideMode, TensorMapIm2ColWideMode.W,
    '``"W"``, or ``"W128"``: 128 pixels for any `pixels_per_column`.', since=TMA_EXTENDED_SINCE)  # fmt: skip
# The swizzle of a wide map cannot be NONE.
_WIDE_DELIVERY = (SWIZZLE._replace(default=TensorMapSwizzle.SWIZZLE_128B), *_DELIVERY[1:])

# KINDS contains the fields of each class of options in the order of the class's constructor, as in cuda.core.
KINDS: dict[str, tuple[Option, ...]] = {
    "TensorMapOptions": (*_TILED, *COMMON),
    "TensorMapIm2colOptions": (*_IM2COL, *COMMON),
    "TensorMapIm2colWideOptions": (*_WIDE, *_TRAVERSAL, _MODE, *_WIDE_DELIVERY),
}
OPTIONS = {option.name: option for kind in reversed(KINDS.values()) for option in kind}
