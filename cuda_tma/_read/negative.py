"""The search for the C++ function of torch that detects a negative view.

The corresponding Python method takes half of the time in which the package makes a map.

The method releases the GIL, warns, and may run Python code. The C++ function that the method calls,
``at::native::is_neg``, takes the ``at::Tensor`` in torch's Python object, whose address is in ``_cdata``. torch does
not document this. The module therefore tests the function and the address on a tensor and on a negative view of that
tensor. If a test fails, the package calls the method.
"""

from __future__ import annotations

import ctypes
from functools import cache
from inspect import getattr_static
from types import ModuleType
from typing import Any

# The symbol is the mangled name of bool at::native::is_neg(const at::Tensor&).
IS_NEG = "_ZN2at6native6is_negERKNS_6TensorE"


@cache
def find_is_neg(torch: ModuleType) -> tuple[int, int] | None:
    """Return the address of the C++ function, and the offset of the ``at::Tensor`` in the object of a tensor."""
    try:
        plain = torch.empty(1, device="cpu")
        negative = torch._neg_view(plain)
        function = ctypes.CDLL(torch._C.__file__)[
            IS_NEG
        ]  # The process has already loaded the library, and the search for the symbol includes its dependencies.
        function.restype = ctypes.c_bool
        offsets = {_offset(plain), _offset(negative)}
        if len(offsets) != 1 or (offset := offsets.pop()) is None:
            return None
        answers = [function(ctypes.c_void_p(id(tensor) + offset)) for tensor in (plain, negative)]
        found = ctypes.cast(function, ctypes.c_void_p).value
    except Exception:  # The module may be another version of torch or a substitute for torch.
        return None
    return (found, offset) if answers == [False, True] and found else None


def answers_for_methods(torch: ModuleType, tensor_type: type) -> bool:
    """Return whether the type has its own ``__torch_function__``.

    Only torch's Python methods call this function.
    """
    own = getattr_static(tensor_type, "__torch_function__", None)
    plain = (getattr_static(torch.Tensor, "__torch_function__", None), torch._C._disabled_torch_function_impl)
    return not any(own is each for each in plain)


def _offset(tensor: Any) -> int | None:
    """Return the offset, in the object of a tensor, at which the address in ``_cdata`` is stored."""
    words = type(tensor).__basicsize__ // 8
    found = (ctypes.c_uint64 * words).from_address(id(tensor))
    return next((8 * place for place in range(2, words) if found[place] == tensor._cdata), None)
