"""Private and optional parts of cuda.core, and replacements for the parts that a version of cuda.core lacks."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
from cuda.bindings.driver import CUtensorMap
from cuda.core import Buffer
from cuda.core._kernel_arg_handler import ParamHolder
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.utils import StridedMemoryView

from .._limits import DESCRIPTOR_BYTES

__all__ = [
    "CUDAError",
    "ClosedWithoutHandle",
    "GraphCondition",
    "ParamHolder",
    "TensorMapDescriptor",
    "bytes_of_map",
    "core_descriptor",
    "core_map",
    "itemsize_of",
    "torch_reader",
]

try:
    from cuda.core.graph import GraphCondition
except ImportError:

    class GraphCondition:  # type: ignore[no-redef]
        """A class without instances, for a version of cuda.core without conditional graph nodes."""


try:
    from cuda.core import TensorMapDescriptor
except ImportError:

    class TensorMapDescriptor:  # type: ignore[no-redef]
        """A class without instances, for a version of cuda.core without descriptors of tensor maps."""


class ClosedWithoutHandle:
    """The state of a stream of cuda.core before 1.2, which has no `is_closed`.

    The handle of a closed stream is None or 0.
    """

    handle: Any

    @property
    def is_closed(self) -> bool:
        """Return whether the stream is closed.

        The package calls this getter with any stream.
        """
        return self.handle is None or int(self.handle) == 0


def itemsize_of(view: StridedMemoryView) -> int:
    """Return the size of an element in bytes, also for dtypes that have no name in NumPy."""
    itemsize: int = view._layout.itemsize
    return itemsize


def torch_reader(tensor: object) -> Callable[[object, int, StridedMemoryView], object] | None:
    """Return the function by which cuda.core 1.2 fills a view from a torch tensor without DLPack, or None.

    cuda.core loads the reader only with the first tensor of a view, and only for tested versions of torch. This
    function therefore creates a view of a tensor first.
    """
    with suppress(Exception):  # Only the import matters, so an error of the view has no effect.
        StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    loaded: Any = sys.modules.get("cuda.core._tensor_bridge")
    return getattr(loaded, "view_as_torch_tensor", None)


_ELEMENTS = 16  # The empty buffer has 16 bytes, which is the size of the smallest tensor that a map can describe.


def core_descriptor(raw: bytes, address: int, owner: object) -> Any:
    """Return cuda.core's own descriptor with these 128 bytes in the current context.

    The descriptor keeps `owner` alive.

    cuda.core creates descriptors only from views, and not for every data type. This function lets cuda.core create a
    descriptor for a few bytes at the tensor's address; the Buffer of these bytes has the owner. The function then
    replaces the 128 bytes of that descriptor.
    """
    memory = Buffer.from_handle(address, _ELEMENTS, owner=owner)
    view = StridedMemoryView.from_buffer(memory, (_ELEMENTS,), dtype=np.dtype(np.uint8))
    if not hasattr(view, "as_tensor_map"):
        raise RuntimeError("the installed cuda.core has no tensor maps; install cuda-core 1.0 or later")
    descriptor = view.as_tensor_map(box_dim=(_ELEMENTS,))
    ctypes.memmove(core_map(descriptor), raw, len(raw))
    return descriptor


def core_map(descriptor: Any) -> int:
    """Return the address of the 128 bytes that a descriptor of cuda.core passes to a launch."""
    holder = ParamHolder((descriptor,))
    address = ctypes.c_void_p.from_address(holder.ptr).value or 0
    if not 0 <= address - id(descriptor) < type(descriptor).__basicsize__:
        raise RuntimeError(
            "the bytes of the descriptor cannot be read, because the installed cuda.core passes only a copy of them to "
            "launches"
        )
    return address


def bytes_of_map(raw: Any) -> Any:
    """Return the bytes of a map of cuda.core or cuda.bindings, or of a bytes-like object.

    Return other objects unchanged.
    """
    if isinstance(raw, CUtensorMap):
        return ctypes.string_at(int(raw.getPtr()), DESCRIPTOR_BYTES)
    if isinstance(raw, TensorMapDescriptor):
        return ctypes.string_at(core_map(raw), DESCRIPTOR_BYTES)
    try:
        return bytes(memoryview(raw))
    except TypeError:
        return raw  # The function decode() reports an object without a buffer as an error.
