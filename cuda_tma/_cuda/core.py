"""All that is private or optional in cuda.core: what it is, and what stands for it where a cuda.core lacks it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from cuda.core._kernel_arg_handler import ParamHolder
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.utils import StridedMemoryView

__all__ = [
    "CUDAError",
    "ClosedWithoutHandle",
    "GraphCondition",
    "ParamHolder",
    "TensorMapDescriptor",
    "itemsize_of",
    "torch_reader",
]

try:
    from cuda.core.graph import GraphCondition
except ImportError:

    class GraphCondition:  # type: ignore[no-redef]
        """A cuda.core without conditional graph nodes: nothing is an instance."""


try:
    from cuda.core import TensorMapDescriptor
except ImportError:

    class TensorMapDescriptor:  # type: ignore[no-redef]
        """A cuda.core without descriptors of its own: nothing is an instance."""


class ClosedWithoutHandle:
    """A stream of a cuda.core before 1.2, which has no `is_closed`: the handle of a closed one is None or 0."""

    handle: Any

    @property
    def is_closed(self) -> bool:
        """Of any stream: the getter is called with it."""
        return self.handle is None or int(self.handle) == 0


def itemsize_of(view: StridedMemoryView) -> int:
    """Bytes of an element, of dtypes that NumPy has no name for, too."""
    itemsize: int = view._layout.itemsize
    return itemsize


def torch_reader(tensor: object) -> Callable[[object, int, StridedMemoryView], object] | None:
    """The function by which cuda.core 1.2 fills a view from a torch tensor, without DLPack; None if there is none.

    cuda.core loads it with the first tensor that it views, and only for a torch that it was tried with; so it is asked
    to view this one.
    """
    with suppress(Exception):  # what it thinks of this tensor does not matter
        StridedMemoryView.from_any_interface(tensor, stream_ptr=-1)
    loaded: Any = sys.modules.get("cuda.core._tensor_bridge")
    return getattr(loaded, "view_as_torch_tensor", None)
