"""The doors: every way from a tensor to a descriptor."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from cuda.core.utils import StridedMemoryView as _CoreView

from . import _tensor_map
from ._dlpack import ExportedTensor, describe_tensor, export_tensor
from .data_type import numpy_dtype
from .options import as_options

__all__ = ["StridedMemoryView", "create_tensor_map"]


def create_tensor_map(tensor, options=None, **keywords) -> _tensor_map.TensorMapDescriptor:
    """Make a descriptor of a tensor in the current CUDA context.

    Parameters
    ----------
    tensor : tensor or view
        A torch, CuPy, JAX or numba-cuda array, a cuda.core Buffer, or a ``StridedMemoryView`` (ours or cuda.core's),
        on the current device or in pinned or managed memory.
    options : TensorMapOptions, cuda.core.TensorMapDescriptorOptions or mapping, optional
    **keywords
        Fields of :class:`TensorMapOptions`, instead of `options`.

    Returns
    -------
    TensorMapDescriptor

    Raises
    ------
    TensorMapError
        If the tensor or the options cannot make a map, with every reason and its remedy.
    """
    return _tensor_map.create(export_tensor(tensor), as_options(keywords.pop("box_dim", None), options, **keywords))


class StridedMemoryView(_CoreView):
    """cuda.core's view, which here also reads fp8 and fp4 tensors and makes tensor maps.

    It is made as cuda.core's is: ``from_any_interface(tensor, stream_ptr=-1)`` and the other constructors.
    """

    def __init__(self, obj=None, stream_ptr=None):
        if obj is None or not hasattr(obj, "__dlpack__"):
            super().__init__(obj, stream_ptr)
        else:
            source = _Reexport(obj)
            super().__init__(source, stream_ptr)
            self._exported = source.exported

    @classmethod
    def from_dlpack(cls, obj, stream_ptr=None):
        """Create a view of an object that has ``__dlpack__``. See cuda.core's documentation."""
        source = _Reexport(obj)
        view = super().from_dlpack(source, stream_ptr)
        view._exported = source.exported
        return view

    @classmethod
    def from_any_interface(cls, obj, stream_ptr=None):
        """Create a view through DLPack if `obj` has it, else through ``__cuda_array_interface__``."""
        if hasattr(obj, "__dlpack__"):
            return cls.from_dlpack(obj, stream_ptr)
        return super().from_any_interface(obj, stream_ptr)

    def view(self, layout=None, dtype=None):
        """Create a new view with another layout or dtype. See cuda.core's documentation."""
        core = super().view(layout, dtype)
        return type(self).from_buffer(
            core.exporting_obj, core.shape, core.strides, dtype=core.dtype, is_readonly=core.readonly
        )

    @cached_property
    def _exported(self) -> ExportedTensor:
        """What the view shows; set by the DLPack constructors, else read off the view itself."""
        exported = describe_tensor(self.shape, self.strides, np.dtype(super().dtype).name, self.ptr)
        exported.keep(self.exporting_obj)  # not self: a cycle would outlive its last user
        return exported

    @property
    def exporting_obj(self):
        """The tensor that is viewed."""
        source = super().exporting_obj
        return source.tensor if isinstance(source, _Reexport) else source

    @property
    def dtype(self):
        """NumPy dtype of an element; of the narrow floats from ml_dtypes, or uint8 where that is not installed."""
        if isinstance(super().exporting_obj, _Reexport):
            return numpy_dtype(self._exported.dtype_name)
        return super().dtype

    @property
    def dlpack_dtype(self) -> tuple[int, int, int]:
        """DLPack's (code, bits, lanes), which tells apart what `dtype` cannot."""
        return self._exported.dlpack_dtype

    def as_tensor_map(
        self,
        box_dim=None,
        *,
        options=None,
        element_strides=None,
        data_type=None,
        interleave=None,
        swizzle=None,
        l2_promotion=None,
        oob_fill=None,
    ) -> _tensor_map.TensorMapDescriptor:
        """Make a descriptor of this view. The arguments are those of :class:`TensorMapOptions`, or `options` alone.

        Returns
        -------
        TensorMapDescriptor

        Raises
        ------
        TensorMapError
            If the view or the options cannot make a map, with every reason and its remedy.
        """
        return _tensor_map.create(
            self._exported,
            as_options(
                box_dim,
                options,
                element_strides=element_strides,
                data_type=data_type,
                interleave=interleave,
                swizzle=swizzle,
                l2_promotion=l2_promotion,
                oob_fill=oob_fill,
            ),
        )


class _Reexport:
    """What cuda.core's constructor is given in a tensor's place: the same memory, in a dtype that it can read."""

    def __init__(self, tensor):
        self.tensor = tensor
        self.exported = export_tensor(tensor)

    def __dlpack_device__(self):
        return self.exported.dlpack_device

    def __dlpack__(self, *, stream=None, max_version=None, **_):
        if stream not in (None, -1):
            # Asking the tensor to order itself before the stream; the capsule itself is not wanted.
            tensor = self.tensor.detach() if getattr(self.tensor, "requires_grad", False) else self.tensor
            tensor.__dlpack__(stream=stream)
        return self.exported.capsule()
