"""Torch's function that tells a negative view, found in its library: its Python method takes as long as half a map.

That method lets the GIL go, warns and may run Python, all for one bit. The C++ function behind it,
``at::native::is_neg``, takes an ``at::Tensor``, which lies in torch's Python object: where, torch itself tells by
``_cdata``. Nothing of this is documented, so that both are tried on a tensor and on a negative view of it; where one of
them is not as it should be, the method is called.
"""

from __future__ import annotations

import ctypes
from functools import cache
from inspect import getattr_static
from types import ModuleType
from typing import Any

IS_NEG = "_ZN2at6native6is_negERKNS_6TensorE"  # bool at::native::is_neg(const at::Tensor&)


@cache
def find_is_neg(torch: ModuleType) -> tuple[int, int] | None:
    """The function's address, and how far behind the beginning of a tensor's object the ``at::Tensor`` lies."""
    try:
        plain = torch.empty(1, device="cpu")
        negative = torch._neg_view(plain)
        function = ctypes.CDLL(torch._C.__file__)[IS_NEG]  # loaded already; what it depends on is looked through, too
        function.restype = ctypes.c_bool
        offsets = {_offset(plain), _offset(negative)}
        if len(offsets) != 1 or (offset := offsets.pop()) is None:
            return None
        answers = [function(ctypes.c_void_p(id(tensor) + offset)) for tensor in (plain, negative)]
        found = ctypes.cast(function, ctypes.c_void_p).value
    except Exception:  # another torch, or a stand-in
        return None
    return (found, offset) if answers == [False, True] and found else None


def answers_for_methods(torch: ModuleType, tensor_type: type) -> bool:
    """Whether the type has a ``__torch_function__`` of its own, which torch's methods ask and its C++ does not."""
    own = getattr_static(tensor_type, "__torch_function__", None)
    plain = (getattr_static(torch.Tensor, "__torch_function__", None), torch._C._disabled_torch_function_impl)
    return not any(own is each for each in plain)


def _offset(tensor: Any) -> int | None:
    """Where in the object is the address that ``_cdata`` says."""
    words = type(tensor).__basicsize__ // 8
    found = (ctypes.c_uint64 * words).from_address(id(tensor))
    return next((8 * place for place in range(2, words) if found[place] == tensor._cdata), None)
