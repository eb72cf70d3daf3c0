"""Torch's function that detects a negative view, found in its library: its Python method takes half as long as a map.

That method releases the GIL, warns and may run Python, all for one bit. The C++ function that it calls,
``at::native::is_neg``, takes an ``at::Tensor`` inside torch's Python object; ``_cdata`` gives its address. This is not
documented, so both are tested on a tensor and on a negative view of it. If one of them fails, the method is called.
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
    """Return the function's address, and the offset of the ``at::Tensor`` in a tensor's object."""
    try:
        plain = torch.empty(1, device="cpu")
        negative = torch._neg_view(plain)
        function = ctypes.CDLL(torch._C.__file__)[IS_NEG]  # loaded already; its dependencies are searched too
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
    """Return whether the type has its own ``__torch_function__``, which torch's methods call and its C++ does not."""
    own = getattr_static(tensor_type, "__torch_function__", None)
    plain = (getattr_static(torch.Tensor, "__torch_function__", None), torch._C._disabled_torch_function_impl)
    return not any(own is each for each in plain)


def _offset(tensor: Any) -> int | None:
    """Return the offset in the object of the address in ``_cdata``."""
    words = type(tensor).__basicsize__ // 8
    found = (ctypes.c_uint64 * words).from_address(id(tensor))
    return next((8 * place for place in range(2, words) if found[place] == tensor._cdata), None)
