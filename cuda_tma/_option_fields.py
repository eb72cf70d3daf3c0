"""The fields of the three kinds of options.

The tool tools/write_options.py writes this file from cuda_tma/_option_table.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, SupportsIndex, TypedDict

from ._option_values import ROWS, CheckedOptions, Choice, Integers
from .enums import (
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapIm2ColWideMode,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)

__all__ = ["Im2colOptionsFields", "Im2colWideOptionsFields", "OptionsFields", "TiledKeywords"]


class TiledKeywords(TypedDict, total=False):
    """The fields of TensorMapOptions as keywords of a function. None selects the default."""

    box_dim: Integers | None
    element_strides: Integers | None
    data_type: Any
    interleave: Choice | None
    swizzle: Choice | None
    l2_promotion: Choice | None
    oob_fill: Choice | None
    allocation_class: Choice | None


@dataclass(frozen=True, slots=True)
class OptionsFields(CheckedOptions):
    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] | None = field(default=None, metadata=ROWS["element_strides"])
    data_type: TensorMapDataType | None = field(default=None, metadata=ROWS["data_type"])
    interleave: TensorMapInterleave = field(default=TensorMapInterleave.NONE, metadata=ROWS["interleave"])
    swizzle: TensorMapSwizzle = field(default=TensorMapSwizzle.NONE, metadata=ROWS["swizzle"])
    l2_promotion: TensorMapL2Promotion = field(default=TensorMapL2Promotion.NONE, metadata=ROWS["l2_promotion"])
    oob_fill: TensorMapOOBFill = field(default=TensorMapOOBFill.NONE, metadata=ROWS["oob_fill"])
    allocation_class: TensorMapAllocationClass | None = field(default=None, metadata=ROWS["allocation_class"])

    if TYPE_CHECKING:

        def __init__(
            self,
            box_dim: Integers,
            element_strides: Integers | None = None,
            data_type: Any = None,
            interleave: Choice = TensorMapInterleave.NONE,
            swizzle: Choice = TensorMapSwizzle.NONE,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            allocation_class: Choice | None = None,
        ) -> None: ...


@dataclass(frozen=True, slots=True)
class Im2colOptionsFields(CheckedOptions):
    pixel_box_lower_corner: tuple[int, ...]
    pixel_box_upper_corner: tuple[int, ...]
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] | None = field(default=None, metadata=ROWS["element_strides"])
    data_type: TensorMapDataType | None = field(default=None, metadata=ROWS["data_type"])
    interleave: TensorMapInterleave = field(default=TensorMapInterleave.NONE, metadata=ROWS["interleave"])
    swizzle: TensorMapSwizzle = field(default=TensorMapSwizzle.NONE, metadata=ROWS["swizzle"])
    l2_promotion: TensorMapL2Promotion = field(default=TensorMapL2Promotion.NONE, metadata=ROWS["l2_promotion"])
    oob_fill: TensorMapOOBFill = field(default=TensorMapOOBFill.NONE, metadata=ROWS["oob_fill"])
    allocation_class: TensorMapAllocationClass | None = field(default=None, metadata=ROWS["allocation_class"])

    if TYPE_CHECKING:

        def __init__(
            self,
            pixel_box_lower_corner: Integers,
            pixel_box_upper_corner: Integers,
            channels_per_pixel: SupportsIndex,
            pixels_per_column: SupportsIndex,
            element_strides: Integers | None = None,
            data_type: Any = None,
            interleave: Choice = TensorMapInterleave.NONE,
            swizzle: Choice = TensorMapSwizzle.NONE,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            allocation_class: Choice | None = None,
        ) -> None: ...


@dataclass(frozen=True, slots=True)
class Im2colWideOptionsFields(CheckedOptions):
    pixel_box_lower_corner_width: int
    pixel_box_upper_corner_width: int
    channels_per_pixel: int
    pixels_per_column: int
    element_strides: tuple[int, ...] | None = field(default=None, metadata=ROWS["element_strides"])
    data_type: TensorMapDataType | None = field(default=None, metadata=ROWS["data_type"])
    interleave: TensorMapInterleave = field(default=TensorMapInterleave.NONE, metadata=ROWS["interleave"])
    mode: TensorMapIm2ColWideMode = field(default=TensorMapIm2ColWideMode.W, metadata=ROWS["mode"])
    swizzle: TensorMapSwizzle = field(default=TensorMapSwizzle.SWIZZLE_128B, metadata=ROWS["swizzle"])
    l2_promotion: TensorMapL2Promotion = field(default=TensorMapL2Promotion.NONE, metadata=ROWS["l2_promotion"])
    oob_fill: TensorMapOOBFill = field(default=TensorMapOOBFill.NONE, metadata=ROWS["oob_fill"])
    allocation_class: TensorMapAllocationClass | None = field(default=None, metadata=ROWS["allocation_class"])

    if TYPE_CHECKING:

        def __init__(
            self,
            pixel_box_lower_corner_width: SupportsIndex,
            pixel_box_upper_corner_width: SupportsIndex,
            channels_per_pixel: SupportsIndex,
            pixels_per_column: SupportsIndex,
            element_strides: Integers | None = None,
            data_type: Any = None,
            interleave: Choice = TensorMapInterleave.NONE,
            mode: Choice = TensorMapIm2ColWideMode.W,
            swizzle: Choice = TensorMapSwizzle.SWIZZLE_128B,
            l2_promotion: Choice = TensorMapL2Promotion.NONE,
            oob_fill: Choice = TensorMapOOBFill.NONE,
            allocation_class: Choice | None = None,
        ) -> None: ...
