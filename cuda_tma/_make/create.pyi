# The tool tools/write_options.py writes this file from cuda_tma/_option_table.py.
from typing import Any

from .._device import Device
from .._option_values import Choice, Integers
from .._options import Options
from .._tensor_map import TensorMapDescriptor

def create_tensor_map(
    tensor: object,
    options: object = None,
    *,
    box_dim: Integers | None = None,
    element_strides: Integers | None = None,
    data_type: Any = None,
    interleave: Choice | None = None,
    swizzle: Choice | None = None,
    l2_promotion: Choice | None = None,
    oob_fill: Choice | None = None,
    allocation_class: Choice | None = None,
) -> TensorMapDescriptor: ...
def as_tensor_map(
    self: Any,
    box_dim: Integers | None = None,
    *,
    options: object = None,
    element_strides: Integers | None = None,
    data_type: Any = None,
    interleave: Choice | None = None,
    swizzle: Choice | None = None,
    l2_promotion: Choice | None = None,
    oob_fill: Choice | None = None,
    allocation_class: Choice | None = None,
) -> TensorMapDescriptor: ...
def options_by_keywords(options: object, keywords: tuple[Any, ...]) -> Options: ...
def register_ordinal(device_type: type[Device]) -> None: ...

class OnDevice:
    def create_tensor_map(
        self,
        tensor: object,
        options: object = None,
        *,
        box_dim: Integers | None = None,
        element_strides: Integers | None = None,
        data_type: Any = None,
        interleave: Choice | None = None,
        swizzle: Choice | None = None,
        l2_promotion: Choice | None = None,
        oob_fill: Choice | None = None,
        allocation_class: Choice | None = None,
    ) -> TensorMapDescriptor: ...
