from collections.abc import Iterable
from typing import Any

from ._tensor_map import TensorMapDescriptor
from .enums import (
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from .options import Options

# An option is an enum (ours or cuda.core's), its short name or its driver value.
def create_tensor_map(
    tensor: object,
    options: object = None,
    *,
    box_dim: Iterable[int] | None = None,
    element_strides: Iterable[int] | None = None,
    data_type: TensorMapDataType | Any = None,
    interleave: TensorMapInterleave | str | int | None = None,
    swizzle: TensorMapSwizzle | str | int | None = None,
    l2_promotion: TensorMapL2Promotion | str | int | None = None,
    oob_fill: TensorMapOOBFill | str | int | None = None,
    allocation_class: TensorMapAllocationClass | str | int | None = None,
) -> TensorMapDescriptor: ...
def as_tensor_map(
    self: Any,
    box_dim: Iterable[int] | None = None,
    *,
    options: object = None,
    element_strides: Iterable[int] | None = None,
    data_type: TensorMapDataType | Any = None,
    interleave: TensorMapInterleave | str | int | None = None,
    swizzle: TensorMapSwizzle | str | int | None = None,
    l2_promotion: TensorMapL2Promotion | str | int | None = None,
    oob_fill: TensorMapOOBFill | str | int | None = None,
    allocation_class: TensorMapAllocationClass | str | int | None = None,
) -> TensorMapDescriptor: ...
def options_from(options: object, keywords: tuple[Any, ...]) -> Options: ...
