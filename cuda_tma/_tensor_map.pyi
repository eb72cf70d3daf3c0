from collections.abc import Iterable
from typing import Any, ClassVar, final

from .device import Device
from .enums import (
    TensorMapAllocationClass,
    TensorMapDataType,
    TensorMapInterleave,
    TensorMapL2Promotion,
    TensorMapOOBFill,
    TensorMapSwizzle,
)
from .params import TiledParams

@final
class TensorMapDescriptor:
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def params(self) -> TiledParams | Any: ...  # Im2colParams, Im2colWideParams: as the options' type says
    @property
    def tensor(self) -> Any: ...
    @property
    def device(self) -> Device: ...
    @property
    def context(self) -> int: ...
    @property
    def address(self) -> int: ...
    @property
    def tx_bytes(self) -> int: ...
    @property
    def smem_bytes(self) -> int: ...
    @property
    def smem_alignment(self) -> int: ...
    @staticmethod
    def from_bytes(raw: bytes | bytearray | memoryview, tensor: object = None) -> TensorMapDescriptor: ...
    def is_stale(self) -> bool: ...
    def replace_address(self, tensor: object) -> None: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __bytes__(self) -> bytes: ...

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
