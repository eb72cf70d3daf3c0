"""The class StridedMemoryView, which extends cuda.core's view by dtypes and by methods for tensor maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuda.core import Buffer
from cuda.core.utils import StridedMemoryView as _CoreView

from ._cuda.core import itemsize_of
from ._data_type import numpy_dtype
from ._make.create import as_tensor_map
from ._read.dlpack import ExportedTensor, contiguous_strides, describe_tensor
from ._read.export import borrow, describe_torch_view, export_located, export_tensor, register_view, torch_first
from .rules import _refusals

if TYPE_CHECKING:
    import numpy as np
    from typing_extensions import Self

__all__ = ["StridedMemoryView"]


class StridedMemoryView(_CoreView):
    """A view of cuda.core that also reads fp8 and fp4 tensors, and that creates tensor maps.

    The constructors are those of cuda.core, such as ``from_any_interface(tensor, stream_ptr=-1)``.
    """

    # The constructors for DLPack, or otherwise the first call of export(), set the slot `_exported`. The slot
    # `_storage` contains the owner of the memory of a torch tensor that cuda.core itself has read.
    __slots__ = ("_exported", "_storage")

    if TYPE_CHECKING:  # The library cuda.core has no annotations, so type checkers do not find inherited attributes.
        ptr: int
        device_id: int
        is_device_accessible: bool
        readonly: bool
        shape: tuple[int, ...]
        strides: tuple[int, ...] | None

        @classmethod
        def from_buffer(
            cls,
            buffer: Buffer,
            shape: tuple[int, ...],
            strides: tuple[int, ...] | None = None,
            *,
            itemsize: int | None = None,
            dtype: np.dtype[Any] | None = None,
            is_readonly: bool = False,
        ) -> Self: ...

    def __init__(self, obj: Any = None, stream_ptr: int | None = None) -> None:
        if obj is None or not hasattr(obj, "__dlpack__"):
            super().__init__(obj, stream_ptr)
        else:
            exported = export_located(obj)
            super().__init__(exported, stream_ptr)
            self._exported = exported

    @classmethod
    @torch_first
    def from_dlpack(cls, obj: Any, stream_ptr: int | None = None) -> Self:
        """Create a view of an object that has ``__dlpack__``; cuda.core's documentation describes the arguments."""
        return cls._from_export(obj, stream_ptr)

    @classmethod
    @torch_first
    def from_any_interface(cls, obj: Any, stream_ptr: int | None = None) -> Self:
        """Create a view through DLPack if `obj` supports it, or else through ``__cuda_array_interface__``."""
        if hasattr(obj, "__dlpack__"):
            return cls._from_export(obj, stream_ptr)
        return super().from_any_interface(obj, stream_ptr)

    @classmethod
    def _from_export(cls, obj: Any, stream_ptr: int | None) -> Self:
        exported = export_located(obj)
        view = super().from_dlpack(exported, stream_ptr)
        view._exported = exported
        return view

    @classmethod
    def from_cuda_array_interface(cls, obj: Any, stream_ptr: int | None = None) -> Self:
        """Create a view through ``__cuda_array_interface__``, or through DLPack for a torch tensor."""
        if hasattr(obj, "untyped_storage"):
            return cls.from_dlpack(obj, stream_ptr)
        return super().from_cuda_array_interface(obj, stream_ptr)

    def view(self, layout: Any = None, dtype: Any = None) -> Self:
        """Create a new view with another layout or dtype; cuda.core's documentation describes the arguments."""
        core = super().view(layout, dtype)
        itemsize = itemsize_of(core)
        strides = core.strides or contiguous_strides(core.shape)
        if any(stride < 0 for stride in strides):
            raise _refusals.buffer_strides(strides)
        reach = sum((extent - 1) * stride for extent, stride in zip(core.shape, strides, strict=True))
        span = 0 if 0 in core.shape else reach + 1
        owner = export_tensor(self) if hasattr(self, "_storage") else core.exporting_obj
        memory = Buffer.from_handle(core.ptr, span * itemsize, owner=owner)
        return type(self).from_buffer(
            memory, core.shape, strides, itemsize=itemsize, dtype=core.dtype, is_readonly=core.readonly
        )

    def _describe(self) -> ExportedTensor:
        """Return the description of the tensor from the attributes of the view itself."""
        dtype = super().dtype
        if hasattr(self, "_storage"):
            return describe_torch_view(self, dtype)
        if dtype is not None and not dtype.isnative:
            raise _refusals.byte_order(dtype.str)
        exported = describe_tensor(
            self.shape,
            self.strides,
            None if dtype is None else dtype.name,
            self.ptr,
            itemsize=itemsize_of(self),
        )
        # The capsule has no reference to the view, because a reference cycle would keep the tensor alive.
        borrow(exported, self.exporting_obj)
        return exported

    @property
    def exporting_obj(self) -> Any:
        """The tensor that the view describes."""
        source = super().exporting_obj
        return source.exporting_obj if isinstance(source, ExportedTensor) else source

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The NumPy dtype of an element.

        For narrow floats it is a dtype of ml_dtypes, or uint8 if ml_dtypes is not installed.
        """
        if isinstance(super().exporting_obj, ExportedTensor):
            return numpy_dtype(self._exported.dtype_name)
        return super().dtype

    @property
    def dlpack_dtype(self) -> tuple[int, int, int]:
        """The (code, bits, lanes) of DLPack, which distinguish types that have the same `dtype`."""
        return export_tensor(self).dlpack_dtype

    as_tensor_map = as_tensor_map


register_view(StridedMemoryView)
